"""The presets: what the paper has in each of its settings, and what stands in for it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.concepts import ConceptTable
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.spec import DatasetSpec
from optexp_jax.reproduction.request import TableRequest
from optexp_jax.stand_ins import BrodenGroups, broden_scenes, disjoint_scenes


@dataclass(frozen=True)
class StandIn:
    """A generated dataset, by a name that tells its size."""

    name: str
    n_units: int
    """Units that are planted, unless others are asked for."""
    budget: float
    """Seconds a unit."""
    build: Callable[[Path], ConceptTable]
    """Makes its table at a path."""


@dataclass(frozen=True)
class TablePreset:
    """One of the paper's settings."""

    name: str
    title: str
    table: str
    """Its number in the paper."""
    dataset: str
    """What the paper uses, in words."""
    kind: str
    """The same as a kind of dataset."""
    model: str
    """The one that was asked for, or else that of the published table."""
    n_units: int | None
    """Units of a real layer; None for all."""
    full: StandIn
    small: StandIn
    range: str = "quantile:0.005"
    """Which activations are active, as `parse_rule` reads it."""

    def stand_in(self, small: bool) -> StandIn:
        """What is generated where there is no data."""
        return self.small if small else self.full


@dataclass(frozen=True)
class ModelLayer:
    """The layer of a Places365 model that the paper explains."""

    layer: str
    cells: int
    """Along one side of its maps."""
    relu: bool
    """Whether its values are never negative."""


LAYERS = {
    "resnet18": ModelLayer("layer4", 7, relu=True),
    "alexnet": ModelLayer("features", 6, relu=True),
    "densenet161": ModelLayer("features", 7, relu=False),  # ends in a normalisation
}

BUDGET = 600.0
SMALL_BUDGET = 3.0
PUBLISHED_UNITS = 50


def _disjoint(
    n_concepts: int, n_samples: int, size: int = 112
) -> tuple[str, Callable[[Path], ConceptTable]]:
    def build(path: Path) -> ConceptTable:
        return disjoint_scenes(n_concepts, n_samples, size=size, path=path)

    return f"disjoint-{n_concepts}x{n_samples}x{size}", build


def _broden(
    share: float, n_samples: int, size: int = 112
) -> tuple[str, Callable[[Path], ConceptTable]]:
    groups = BrodenGroups() if share == 1.0 else BrodenGroups().scaled(share)
    n_concepts = sum(1 for _ in groups.names())

    def build(path: Path) -> ConceptTable:
        return broden_scenes(n_samples, groups=groups, size=size, path=path)

    return f"broden-{n_concepts}x{n_samples}x{size}", build


def _shapes(n_scenes: int, n_units: int) -> StandIn:
    """Generated scenes, which have images; the demo network looks at them."""
    spec = DatasetSpec("shapes", options=(("n", n_scenes),))

    def build(path: Path) -> ConceptTable:
        return build_table(spec.open(), path, spec=spec)

    return StandIn(str(spec), n_units, SMALL_BUDGET, build)


def _stand_in(
    made: tuple[str, Callable[[Path], ConceptTable]],
    n_units: int = PUBLISHED_UNITS,
    budget: float = BUDGET,
) -> StandIn:
    name, build = made
    return StandIn(name, n_units, budget, build)


def find_preset(request: TableRequest) -> TablePreset:
    """The preset of a request."""
    model = request.model or ("densenet161" if request.preset == "clusters" else "resnet18")
    return {
        "low": TablePreset(
            "low",
            "Low complexity: work a unit",
            "Table 2" if model == "resnet18" else "Table 5",
            "Cityscapes, 19 disjoint concepts, 500 images",
            "cityscapes",
            model,
            PUBLISHED_UNITS,
            _stand_in(_disjoint(19, 500)),
            _stand_in(_disjoint(19, 500), 10, SMALL_BUDGET),
        ),
        "intermediate": TablePreset(
            "intermediate",
            "Intermediate complexity: work a unit",
            "Table 2" if model == "resnet18" else "Table 6",
            "ADE20K-Full, 847 disjoint concepts, 2000 images",
            "ade20k",
            model,
            PUBLISHED_UNITS,
            _stand_in(_disjoint(847, 2000)),
            _stand_in(_disjoint(150, 400, 56), 5, SMALL_BUDGET),
        ),
        "high": TablePreset(
            "high",
            "High complexity: work a unit",
            "Table 2" if model == "resnet18" else "Table 7",
            "Broden's ADE20K part, 1198 overlapping concepts, 22 210 images",
            "broden",
            model,
            PUBLISHED_UNITS,
            _stand_in(_broden(1.0, 22_210)),
            _stand_in(_broden(0.1, 400, 56), 5, SMALL_BUDGET),
        ),
        "categories": TablePreset(
            "categories",
            "How often a beam is not optimal",
            "Tables 3 and 4",
            "Broden's ADE20K part, 1198 overlapping concepts, 22 210 images",
            "broden",
            model,
            None,
            _stand_in(_broden(1.0, 22_210)),
            _stand_in(_broden(1.0, 4000), 40, 10 * SMALL_BUDGET),
        ),
        "hyperparameters": TablePreset(
            "hyperparameters",
            "Minutes a unit by length and size of a beam",
            "Table 8",
            "ADE20K-Full, 847 disjoint concepts, 2000 images",
            "ade20k",
            model,
            PUBLISHED_UNITS,
            _stand_in(_disjoint(847, 2000)),
            _stand_in(_disjoint(150, 300, 56), 3, 10 * SMALL_BUDGET),
        ),
        "clusters": TablePreset(
            "clusters",
            "How often a beam is not optimal, the highest of five clusters as range",
            "Table 9",
            "Broden's ADE20K part, 1198 overlapping concepts, 22 210 images",
            "broden",
            model,
            PUBLISHED_UNITS,
            _stand_in(_broden(1.0, 22_210)),
            _stand_in(_broden(1.0, 4000), 24, 10 * SMALL_BUDGET),
            range="clusters:5:5",
        ),
        "figures": TablePreset(
            "figures",
            "Units whose beam and optimum differ",
            "Figures of the appendix",
            "Broden's ADE20K part, 1198 overlapping concepts, 22 210 images",
            "broden",
            "demo" if request.data is None else model,
            PUBLISHED_UNITS,
            _shapes(1000, PUBLISHED_UNITS),
            _shapes(200, 32),
        ),
    }[request.preset]
