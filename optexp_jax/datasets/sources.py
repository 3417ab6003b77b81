"""Where datasets can be downloaded, and how to get those that need a registration."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A dataset that anybody may download: a ZIP archive with one folder in it."""

    name: str
    url: str
    folder: str
    """The folder in the archive."""
    kind: str
    """The kind of dataset that reads it."""
    sha256: str | None = None
    """None where no checksum has been published."""


@dataclass(frozen=True)
class Registration:
    """A dataset that is given to registered users only."""

    name: str
    steps: tuple[str, ...]


SOURCES = {
    source.name: source
    for source in (
        Source(
            f"broden1_{side}",
            f"http://netdissect.csail.mit.edu/data/broden1_{side}.zip",
            f"broden1_{side}",
            "broden",
        )
        for side in (224, 227)
    )
}

REGISTRATIONS = {
    registration.name: registration
    for registration in (
        Registration(
            "ade20k",
            (
                "Register at https://groups.csail.mit.edu/vision/datasets/ADE20K/ and accept the "
                "terms of use.",
                "Download the full dataset, release ADE20K_2021_17_01, from the link you are sent.",
                "Unpack it. The folder has images/ADE/ and index_ade20k.pkl in it.",
                "optexp data build ade20k --root ADE20K_2021_17_01 --out ade20k.zarr",
            ),
        ),
        Registration(
            "cityscapes",
            (
                "Register at https://www.cityscapes-dataset.com/ and wait for the confirmation.",
                "Download leftImg8bit_trainvaltest.zip and gtFine_trainvaltest.zip.",
                "Unpack both into one folder, which then has leftImg8bit/ and gtFine/ in it.",
                "optexp data build cityscapes --root FOLDER --out cityscapes.zarr",
            ),
        ),
    )
}
