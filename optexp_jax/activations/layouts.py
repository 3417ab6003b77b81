"""How a layer's output is laid out."""

from typing import Literal, get_args

Layout = Literal["auto", "nchw", "nhwc", "tokens", "tokens_first"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
