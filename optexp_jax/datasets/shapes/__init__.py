"""Generated scenes with exact annotations: a dataset that needs no files.

Scenes of coloured and textured shapes and of objects made of parts, which cover one another, stand
on grounds and cast shadows. Every concept of every pixel is known, because the same step paints
the pixel and notes what it shows.
"""

from optexp_jax.datasets.shapes.dataset import Shapes, open_shapes

__all__ = ["Shapes", "open_shapes"]
