"""Random weights that are the same every time."""

from collections.abc import Callable
from typing import Any

import torch

RANDOM_SEED = 0


def made_randomly(make: Callable[[], Any]) -> Any:
    """What the call returns, with random weights that are the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(RANDOM_SEED)
        return make()
