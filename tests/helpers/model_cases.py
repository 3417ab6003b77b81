"""A small model and few images, for the tests of models and recordings."""

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

from optexp_jax.activations import Images, LoadedModel, Preprocessing
from optexp_jax.activations.torch_import import import_extra
from optexp_jax.datasets import DatasetSpec


class Small(nn.Module):
    """Two convolutions; the second's output is changed in place by the ReLU behind it."""

    def __init__(self, seed: int = 0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.first = nn.Conv2d(3, 4, 3, stride=2)
            self.second = nn.Conv2d(4, 5, 3, stride=2)
            self.relu = nn.ReLU(inplace=True)
            self.unused = nn.Linear(1, 1)
            self.head = nn.Linear(5, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.relu(self.second(self.relu(self.first(images))))
        return self.head(maps.mean((2, 3)))


def small_model(seed: int = 0, size: int = 20) -> LoadedModel:
    return LoadedModel.of(Small(seed), f"small{seed}", Preprocessing(size))


def make_small() -> nn.Module:
    return Small()


def make_nothing() -> int:
    return 3


SHAPES = DatasetSpec.parse("shapes:n=10,size=24")


def shapes_images() -> Images:
    return Images(SHAPES.open(), SHAPES.fingerprint, SHAPES)


def make_failure() -> nn.Module:
    raise RuntimeError("no weights here")


def make_with_argument(depth: int) -> nn.Module:
    return Small(depth)


def save_hf(kind: str, folder: Path) -> Any:
    """Write a tiny model of transformers with random weights; the processor that goes with it."""
    kept: Any = import_extra("transformers", "a test")
    kept.utils.logging.disable_progress_bar()
    small = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}
    images = {"image_size": 32, "patch_size": 8, "intermediate_size": 24}
    crop = {"do_center_crop": True, "crop_size": {"height": 32, "width": 32}}
    shorter = {"size": {"shortest_edge": 36}, **crop}  # margins are even: backends round otherwise
    ends = {"bos_token_id": 0, "eos_token_id": 1}
    processor: Any = None
    if kind == "ViT":
        model = kept.ViTForImageClassification(kept.ViTConfig(**small, **images))
        processor = kept.ViTImageProcessorPil(size={"height": 32, "width": 32})
    elif kind == "DINOv2 with registers":
        options = {**small, "image_size": 32, "patch_size": 8, "mlp_ratio": 2}
        model = kept.Dinov2WithRegistersModel(kept.Dinov2WithRegistersConfig(**options))
        processor = kept.BitImageProcessorPil(**shorter)
    elif kind == "CLIP":
        config = kept.CLIPConfig(
            text_config={**small, "intermediate_size": 24, "vocab_size": 50, **ends},
            vision_config={**small, **images},
        )
        model, processor = kept.CLIPModel(config), kept.CLIPImageProcessorPil(**shorter)
    elif kind == "ConvNext":
        options = {"depths": [1, 1], "hidden_sizes": [8, 12], "num_stages": 2, "image_size": 32}
        model = kept.ConvNextForImageClassification(kept.ConvNextConfig(**options))
        processor = kept.ConvNextImageProcessorPil(size={"shortest_edge": 32})
    elif kind == "Swin":
        options = {"image_size": 32, "patch_size": 4, "embed_dim": 6, "depths": [1, 1]}
        config = kept.SwinConfig(**options, num_heads=[2, 2], window_size=4)
        model = kept.SwinForImageClassification(config)
    else:
        options = {**small, "intermediate_size": 24, "vocab_size": 50}
        model = kept.BertModel(kept.BertConfig(**options))
    model.save_pretrained(str(folder))
    if processor is not None:
        processor.save_pretrained(str(folder))
    return processor


def scripted(module: nn.Module) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(module.eval())
