"""Photographs that say in their EXIF data that they are to be shown turned or mirrored.

Label maps are drawn over what a program shows, which may be the pixels as they are stored or as
they are turned. Sizes cannot tell which, of half turns, mirrors and squares, so the user says it.
"""

import enum

from PIL import ExifTags, Image


class Exif(enum.Enum):
    """What is done with an image that is to be shown turned."""

    REFUSE = None
    """Nobody has said what to do."""
    APPLY = "apply"
    """Turn it as viewers do."""
    IGNORE = "ignore"
    """Take the pixels as they are stored."""

    @classmethod
    def parse(cls, option: str | None) -> "Exif":
        """From the option `exif` of a dataset."""
        try:
            return cls(option)
        except ValueError:
            raise ValueError(
                f"The option exif is 'apply' or 'ignore'; got {option!r}. It says what to do with "
                "images whose EXIF data tells to show them turned."
            ) from None


_UPRIGHT = 1
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""How to show an image of each orientation. Other values have no meaning; viewers pass them by."""
_BACK = {
    **_TURNS,
    6: Image.Transpose.ROTATE_90,
    8: Image.Transpose.ROTATE_270,
}


def upright(image: Image.Image, exif: Exif) -> Image.Image:
    """The opened image in the frame that was asked for; ValueError if it is turned and none was."""
    orientation = _orientation(image)
    if orientation not in _TURNS:
        return image
    if exif is Exif.REFUSE:
        raise ValueError(
            f"it is to be shown turned or mirrored (EXIF orientation {orientation}), and only you "
            "know in which frame its annotations are. Say so with an option of the dataset: "
            "exif=apply turns such images as viewers do, exif=ignore takes the pixels as they are "
            "stored."
        )
    image.load()
    turned = _orientation(image) != orientation  # Pillow has turned a TIFF file by now.
    if exif is Exif.APPLY:
        return image if turned else image.transpose(_TURNS[orientation])
    return image.transpose(_BACK[orientation]) if turned else image


def _orientation(image: Image.Image) -> int:
    found = image.getexif().get(ExifTags.Base.Orientation)
    return found if isinstance(found, int) else _UPRIGHT
