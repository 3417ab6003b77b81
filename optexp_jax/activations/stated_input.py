"""What weights state of the images they want, and the protocols that follow or leave it."""

from dataclasses import dataclass, replace

from optexp_jax.activations.preprocessing import Preprocessing, Protocol

PAPER_SIZE = 224


@dataclass(frozen=True)
class StatedInput:
    """How weights want images to be prepared."""

    exactly: Preprocessing
    """With the crop that they state."""
    paper_size: int = PAPER_SIZE
    """The side of images that the paper's protocol shows the network."""
    other_crop: str | None = None
    """What they state that `Preprocessing` cannot do, such as a padded border."""

    def prepared(self, protocol: Protocol, name: str) -> Preprocessing:
        """As a protocol has it."""
        if protocol == "paper":
            return Preprocessing(self.paper_size)
        if protocol == "whole":
            return replace(self.exactly, shorter=None)
        if self.other_crop is not None:
            raise ValueError(
                f"The weights of {name} want images with {self.other_crop}, which cannot be done "
                "here. Take the protocol `whole`."
            )
        return self.exactly
