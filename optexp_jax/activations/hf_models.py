"""Models of transformers from a folder, as `save_pretrained` writes it; nothing is downloaded."""

import contextlib
import json
import math
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from optexp_jax.activations.checkpoints import State, read_state
from optexp_jax.activations.preprocessing import Preprocessing
from optexp_jax.activations.random_weights import made_randomly
from optexp_jax.activations.stated_input import PAPER_SIZE, StatedInput
from optexp_jax.activations.torch_import import import_extra

_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
"""Files that say how images are prepared."""
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
"""Neither downloads nor code that a folder brings along; left open, transformers would ask."""
_WARPED_FROM = 384
"""From this size on ConvNeXt's images are stretched, not cropped."""


def make_hf_model(folder: Path, weights: str | Path | None, trust: bool) -> torch.nn.Module:
    """The model of a folder, or its part that looks at images."""
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"There is no config.json in {folder}. Pass a folder that save_pretrained wrote, or "
            "that was downloaded whole: hf:FOLDER."
        )
    transformers = import_extra("transformers", f"hf:{folder}")
    state = None if weights in (None, "random") else read_state(str(weights), trust=trust)
    try:
        with _quiet(transformers):
            model = _make(transformers, folder, state, random=weights == "random")
    except Exception as error:  # readers raise many kinds for damaged files and files of others
        said = str(error).strip().partition("\n")[0]
        raise ValueError(f"{folder} cannot be read as a model of transformers: {said}") from error
    return _looking_at_images(model, folder)


def hf_input(module: torch.nn.Module, folder: Path) -> StatedInput | None:
    """How the folder's image processor prepares images; None if there is none."""
    if not any((folder / name).is_file() for name in _PROCESSORS):
        return None
    transformers = import_extra("transformers", f"hf:{folder}")
    try:
        with _quiet(transformers):
            processor = transformers.AutoImageProcessor.from_pretrained(str(folder), **_LOCAL)
    except Exception as error:  # as above
        said = str(error).strip().partition("\n")[0]
        raise ValueError(f"The image processor in {folder} cannot be read: {said}") from error
    return _stated_by(processor, hf_image_size(module), f"hf:{folder}")


def hf_image_size(module: torch.nn.Module) -> int | None:
    """The side of the images that the model's configuration names, if it does."""
    size: Any = getattr(getattr(module, "config", None), "image_size", None)
    sides = {size} if isinstance(size, int) else set(size or ())
    return sides.pop() if len(sides) == 1 else None


def _make(transformers: Any, folder: Path, state: State | None, random: bool) -> Any:
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if any("/" in str(each) for each in _values(written, "attn_implementation")):
        raise ValueError("its configuration names attention that would be downloaded as code.")
    config = transformers.AutoConfig.from_pretrained(str(folder), **_LOCAL)
    named: list[str] = getattr(config, "architectures", None) or []
    # The class that was saved, so that layers have the names that they have there.
    kind: Any = getattr(transformers, named[0], None) if named else None
    if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)):
        kind = transformers.AutoModel
    if random:
        make = getattr(kind, "_from_config", None) or kind.from_config
        return made_randomly(lambda: make(config))
    model, missing = _loaded(kind, folder, config, state)
    if missing and all("pooler." in name for name in missing):
        # Many folders are without it; it comes behind all other layers.
        model, missing = _loaded(kind, folder, config, state, add_pooling_layer=False)
    if missing:  # or they would be random
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise ValueError(
            f"{len(missing)} tensors of {type(model).__name__} are missing or differ in shape "
            f"({shown})."
        )
    return model


def _loaded(
    kind: Any, folder: Path, config: Any, state: State | None, **options: bool
) -> tuple[Any, list[str]]:
    """The model, and which of its tensors were not found.

    Transformers gives tensors of older files their present names.
    """
    model, told = kind.from_pretrained(
        str(folder) if state is None else None,
        config=config,
        state_dict=state,
        output_loading_info=True,
        **_LOCAL,
        **options,
    )
    return model, sorted(map(str, [*told["missing_keys"], *told["mismatched_keys"]]))


def _values(settings: Any, ending: str) -> list[Any]:
    """All values in nested settings whose names end so."""
    found: list[Any] = []
    for name, value in settings.items() if isinstance(settings, Mapping) else ():
        found += [value] if str(name).endswith(ending) else _values(value, ending)
    return found


def _looking_at_images(model: Any, folder: Path) -> torch.nn.Module:
    """The model, if images are all that it takes, or its part of which that is so."""
    if getattr(model, "main_input_name", "") == "pixel_values":
        return model
    for name in ("vision_model", "vision_tower", "visual"):
        part: Any = getattr(model, name, None) or getattr(getattr(model, "model", None), name, None)
        if getattr(part, "main_input_name", "") == "pixel_values":
            return part
    raise ValueError(
        f"{type(model).__name__} takes {getattr(model, 'main_input_name', 'other inputs')}, not "
        "images alone. Wrap it in a module that gives it the other inputs, and name that as "
        f"module:function instead of hf:{folder}."
    )


def _stated_by(processor: Any, takes: int | None, name: str) -> StatedInput:
    size, crop = _sizes(processor, "size"), _sizes(processor, "crop_size")
    shorter, square = size.get("shortest_edge"), _square(size)
    cropped = _square(crop) if getattr(processor, "do_center_crop", None) else None
    crop_pct: float | None = getattr(processor, "crop_pct", None)
    if crop_pct and shorter is not None:
        side = shorter
        shorter = None if side >= _WARPED_FROM else math.floor(side / crop_pct)
    else:
        side = cropped or square
    known = getattr(processor, "do_resize", True) and not getattr(processor, "rescale_offset", 0)
    if side is None or not known:
        raise ValueError(
            f"{name}: {type(processor).__name__} prepares images in a way that is not known here. "
            "Name a module:function that returns the model and its Preprocessing."
        )
    how: Any = Image.Resampling(int(processor.resample)).name.lower()
    mean, std = _colours(processor)
    whole = Preprocessing(side, filter=how).changed(mean=mean, std=std)
    if shorter is not None:
        return StatedInput(whole.cropped_from(shorter), takes or PAPER_SIZE)
    other = None if square in (None, side) else f"{side} pixels of a square of {square}"
    return StatedInput(whole, takes or PAPER_SIZE, other)


def _square(sizes: Mapping[str, int]) -> int | None:
    sides = {sizes.get("height"), sizes.get("width")}
    return sides.pop() if len(sides) == 1 else None


def _sizes(processor: Any, name: str) -> Mapping[str, int]:
    stated: Any = getattr(processor, name, None) or {}
    if isinstance(stated, int):
        return {"height": stated, "width": stated}
    keys = ("height", "width", "shortest_edge")
    return {key: int(stated[key]) for key in keys if stated.get(key)}


def _colours(processor: Any) -> tuple[list[float], list[float]]:
    """Mean and deviation of colours from 0 to 1, whatever scale the processor takes them in."""
    mean, std = [0.0] * 3, [1.0] * 3
    if getattr(processor, "do_normalize", True):
        mean, std = list(processor.image_mean), list(processor.image_std)
    scale = 255 * (processor.rescale_factor if getattr(processor, "do_rescale", True) else 1)
    return [each / scale for each in mean], [each / scale for each in std]


@contextlib.contextmanager
def _quiet(transformers: Any) -> Generator[None]:
    """Without bars and remarks on what is loaded; errors are raised all the same."""
    logging = transformers.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
