"""Reading images and label maps; whatever goes wrong names the file."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Int32, UInt8
from PIL import Image, UnidentifiedImageError

from optexp_jax.datasets.label_arrays import MOST_PIXELS, read_label_array
from optexp_jax.datasets.orientation import Exif, upright
from optexp_jax.datasets.protocol import BadSampleError

IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""Of the images that are looked for in folders."""
LABEL_SUFFIXES = (".bmp", ".gif", ".npy", ".png", ".tif", ".tiff")
"""Of label maps: the formats that keep every value."""
Read = TypeVar("Read")


def read_image(
    path: Path, sample: str, exif: Exif = Exif.REFUSE
) -> UInt8[np.ndarray, "height width 3"]:
    """An image as RGB. Grey, palette, 16-bit and transparent images are converted."""
    return _read(path, sample, exif, _to_rgb)


def read_labels(
    path: Path, sample: str, exif: Exif = Exif.REFUSE
) -> Int32[np.ndarray, "height width"]:
    """A label map with one value a pixel: grey of 1 to 32 bits, indices of a palette, or an array.

    Arrays, `.npy` files, are whole numbers `[height, width]`; they are in the frame of the image.
    """
    if path.suffix.lower() == ".npy":
        return read_label_array(path, sample)
    return _read(path, sample, exif, _to_labels)


def read_channels(
    path: Path, sample: str, exif: Exif = Exif.REFUSE
) -> UInt8[np.ndarray, "height width 3"]:
    """The red, green and blue of a label map that spreads its values over them."""
    return _read(path, sample, exif, _to_channels)


def read_colours(
    path: Path, sample: str, exif: Exif = Exif.REFUSE
) -> UInt8[np.ndarray, "height width 3"]:
    """The colours of a label map that tells concepts by them; palettes and grey are colours too."""
    return _read(path, sample, exif, _to_colours)


def has_colours(path: Path) -> bool:
    """Whether a file is a colour image, by its header, and not one value a pixel."""
    try:
        with path.open("rb") as file, Image.open(file) as image:
            return image.mode in ("RGB", "RGBA")
    except Exception:  # Whatever is wrong with it is told when it is read.
        return False


def rgb_of(image: Image.Image, exif: Exif) -> UInt8[np.ndarray, "height width 3"]:
    """An image that is open already, as `read_image` reads files; or ValueError."""
    _check_pixels(image)
    return _to_rgb(upright(image, exif))


def labels_of(image: Image.Image, exif: Exif) -> Int32[np.ndarray, "height width"]:
    """A label map that is open already, as `read_labels` reads files; or ValueError."""
    _check_pixels(image)
    return _to_labels(upright(image, exif))


def check_aspect(
    image: tuple[int, int], labels: tuple[int, int], what: str | Path, sample: str
) -> None:
    """Refuse a map that is of another shape than its image; scaling may round it by a pixel.

    Both are height and width. A map is stretched over its image, so that one in a turned or
    cropped frame would be read without a word, misaligned.
    """
    small, large = sorted((image, labels), key=lambda shape: shape[0] * shape[1])
    (h, w), (height, width) = small, large
    # Some scale s has |h - s * height| < 1 and |w - s * width| < 1.
    if (h - 1) * width < (w + 1) * height and (w - 1) * height < (h + 1) * width:
        return
    raise BadSampleError(
        sample,
        f"{what} is {labels[0]} x {labels[1]} (height x width), but its image is {image[0]} x "
        f"{image[1]}: one of them is turned, cropped or stretched.",
    )


def _read(path: Path, sample: str, exif: Exif, convert: Callable[[Image.Image], Read]) -> Read:
    try:
        # By a file object: of a path, Pillow maps some files, and then mistakes turned ones.
        with path.open("rb") as file, Image.open(file) as image:
            _check_pixels(image)
            return convert(upright(image, exif))
    except FileNotFoundError:
        raise BadSampleError(sample, f"{path} does not exist.") from None
    except UnidentifiedImageError:
        raise BadSampleError(sample, f"{path} is not an image, or it is corrupt.") from None
    except Exception as error:  # Files that hold nonsense can make a decoder raise anything.
        raise BadSampleError(sample, f"{path}: {error or type(error).__name__}") from error


def _check_pixels(image: Image.Image) -> None:
    if image.width * image.height > MOST_PIXELS:
        raise ValueError(
            f"it is {image.height} x {image.width} pixels; at most {MOST_PIXELS} are read."
        )


def _to_rgb(image: Image.Image) -> UInt8[np.ndarray, "height width 3"]:
    if image.mode.startswith("I"):
        # Pillow would clip 16 bits at 255. Files of mode "I" are 16-bit PNG in older versions.
        values = np.asarray(image).astype(np.int64)
        if values.size and (values.min() < 0 or values.max() > 0xFFFF):
            raise ValueError("it is a 32-bit image; convert it to 8 bits.")
        grey = (values >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    if image.mode == "F":
        raise ValueError("it holds floating-point values; convert it to 8 bits.")
    if "transparency" in image.info:
        image = image.convert("RGBA")  # Pillow asks for this detour with palettes.
    return np.array(image.convert("RGB"), np.uint8)


def _refuse_jpeg(image: Image.Image) -> None:
    if image.format == "JPEG":
        raise ValueError(
            "it is a JPEG image, which mixes the values of neighbouring pixels. Label maps have to "
            "be stored without loss, as PNG or TIFF: make them again from their source."
        )


def _to_colours(image: Image.Image) -> UInt8[np.ndarray, "height width 3"]:
    _refuse_jpeg(image)
    if image.mode not in ("1", "L", "P", "RGB", "RGBA"):
        raise ValueError(f"it is of mode {image.mode!r}; these label maps have colours of 8 bits.")
    return np.array(image.convert("RGB"), np.uint8)


def _to_labels(image: Image.Image) -> Int32[np.ndarray, "height width"]:
    _refuse_jpeg(image)
    if image.mode in ("RGB", "RGBA"):
        channels = np.asarray(image.convert("RGB"), np.uint8)
        red = channels[:, :, 0]
        if (channels == red[:, :, None]).all():
            return red.astype(np.int32)
        raise ValueError(
            "it is a colour image; a label map has one value a pixel. If its colours mean the "
            "concepts, list them in a table name,r,g,b (kind folder); or save it as grey-scale or "
            "as a palette image whose indices are the values."
        )
    if image.mode not in ("1", "L", "P", "I") and not image.mode.startswith("I;16"):
        raise ValueError(f"it is of mode {image.mode!r}; a label map has one integer a pixel.")
    return np.asarray(image).astype(np.int32)


def _to_channels(image: Image.Image) -> UInt8[np.ndarray, "height width 3"]:
    if image.mode not in ("RGB", "RGBA", "P"):
        raise ValueError(f"it is of mode {image.mode!r}; these label maps are red-green-blue.")
    return np.array(image.convert("RGB"), np.uint8)
