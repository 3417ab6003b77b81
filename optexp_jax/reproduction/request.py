"""What is asked for: which table, of which model, on which data."""

from dataclasses import dataclass

PRESETS = (
    "low",
    "intermediate",
    "high",
    "categories",
    "hyperparameters",
    "clusters",
    "figures",
)
MODELS = ("resnet18", "alexnet", "densenet161")


@dataclass(frozen=True)
class TableRequest:
    """A table of the paper, on real data if it is given, else on generated stand-ins."""

    preset: str
    """Which table: low, intermediate, high, categories, hyperparameters, clusters; or figures, the
    pictures of the appendix."""
    model: str | None = None
    """The model: resnet18, alexnet or densenet161; by default that of the published table."""
    data: str | None = None
    """The dataset, such as cityscapes:/data/cityscapes; without it a stand-in is generated."""
    weights: str | None = None
    """The model's Places365 checkpoint, which goes with --data."""
    trust: bool = False
    """Allow a checkpoint that runs code when it is read, as the one of densenet161 does."""
    units: int | None = None
    """How many units, drawn as published; by default 50, or all where the paper has all."""
    budget: float | None = None
    """Seconds after which the search for a unit stops; it is then reported as above that."""
    small: bool = False
    """A small stand-in and few units: a minute, to see what the table looks like."""

    def __post_init__(self) -> None:
        _one_of("preset", self.preset, PRESETS)
        if self.model is not None:
            _one_of("model", self.model, MODELS)
        if (self.data is None) != (self.weights is None):
            raise ValueError(
                "data and weights go together: real activations need the images and the model's "
                "checkpoint. Without both, a stand-in is generated."
            )
        if self.small and self.data is not None:
            raise ValueError("small is for stand-ins; for less work on real data, lower units.")
        if self.units is not None and self.units < 1:
            raise ValueError(f"units must be at least 1; got {self.units}.")
        if self.budget is not None and not self.budget > 0:
            raise ValueError(f"budget must be positive seconds; got {self.budget}.")


def _one_of(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}; got {given!r}.")
