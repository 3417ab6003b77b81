"""Scenes whose concepts overlap as in the part of Broden that the paper explains with.

That part is ADE20K's: 22 210 images. Every image has objects and colours; 17 746 have one of 468
scenes, which holds everywhere; 7307, 4079 and 174 have one, two and three layers of parts. Its
materials and textures, and the number 0 that stands for no label, are candidates without a single
location.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64

from optexp_jax.concepts import ConceptTable, TableBuilder
from optexp_jax.stand_ins.mosaics import Grid, draw_bends, draw_cells
from optexp_jax.stand_ins.zipf import draw_all, zipf

BRODEN_SAMPLES = 22_210
WITH_SCENE = 17_746 / BRODEN_SAMPLES
PART_LAYERS = np.array([10_650, 7_307, 4_079, 174]) / BRODEN_SAMPLES
"""Shares of samples with no, one, two and three layers of parts."""
NO_LABEL = "-"
"""Broden's number 0: a candidate of the published search that holds nowhere."""
BLOCK = 64
"""Samples that are drawn together."""
FAVOURITES, PARTS_OF = 40, 8
"""Objects that a scene has most of the time, and parts that an object has."""
UNLABELLED, WITH_PART = 0.08, 0.45
"""Shares of cells without an object, and of pieces of objects with a part."""


@dataclass(frozen=True)
class BrodenGroups:
    """Concepts of each group. With the number 0 they are Broden's 1198."""

    scene: int = 468
    object: int = 485
    part: int = 161
    material: int = 25
    texture: int = 47
    colour: int = 11

    def scaled(self, share: float) -> "BrodenGroups":
        """A share of each group, at least two; colours stay."""
        sizes = dataclasses.asdict(self)
        return BrodenGroups(
            **{
                name: n if name == "colour" else max(2, round(share * n))
                for name, n in sizes.items()
            }
        )

    def names(self) -> Iterator[str]:
        """Names of the concepts, group by group, behind the number 0."""
        yield NO_LABEL
        for group, n in dataclasses.asdict(self).items():
            yield from (f"{group}-{k}" for k in range(n))

    def categories(self) -> Iterator[str | None]:
        """The group of each concept."""
        yield None
        for group, n in dataclasses.asdict(self).items():
            yield from (group for _ in range(n))

    def first(self, group: str) -> int:
        """The id of a group's first concept."""
        sizes = dataclasses.asdict(self)
        return 1 + sum(sizes[name] for name in list(sizes)[: list(sizes).index(group)])


def broden_scenes(
    n_samples: int = BRODEN_SAMPLES,
    *,
    groups: BrodenGroups = BrodenGroups(),
    size: int = 112,
    seed: int = 0,
    unlabelled: float = UNLABELLED,
    path: str | Path | None = None,
) -> ConceptTable:
    """Overlapping concepts over samples of `size` x `size` locations.

    With `unlabelled=0` every location has an object and a colour, so that no location is unique to
    a concept. With `path` the table is stored there as it is made.
    """
    rng = np.random.default_rng(seed)
    world = _World.draw(rng, groups, n_samples)
    builder = TableBuilder(list(groups.names()), list(groups.categories()), path=path)
    grid = Grid(size)
    for start in range(0, n_samples, BLOCK):
        count = min(BLOCK, n_samples - start)
        bends = draw_bends(rng, count, grid)
        n_cells = rng.integers(6, 18, count)
        cells = draw_cells(rng, bends, n_cells)
        pieces = draw_cells(rng, bends, 3 * n_cells)
        for x in range(count):
            sample = world.sample(rng, start + x, cells[x], pieces[x], unlabelled)
            keys, members = np.unique(sample.keys, return_inverse=True)
            builder.add_sets(
                world.sets(keys, sample.scene), grid.enlarge(members.reshape(-1)), (size, size)
            )
    return builder.build()


@dataclass(frozen=True, eq=False)
class _Sample:
    scene: int
    """Its id, -1 if it has none."""
    keys: Int64[np.ndarray, " fields"]
    """Object, parts and colour of each field as one number."""


@dataclass(frozen=True, eq=False)
class _World:
    """What is found where: objects of scenes, parts and colours of objects."""

    groups: BrodenGroups
    scene: Int64[np.ndarray, " samples"]
    part_layers: Int64[np.ndarray, " samples"]
    objects: Int64[np.ndarray, "scenes favourites"]
    parts: Int64[np.ndarray, "objects parts_of"]
    colours: Float64[np.ndarray, " objects"]
    ensured_object: Int64[np.ndarray, " samples"]
    ensured_part: Int64[np.ndarray, " samples"]

    @classmethod
    def draw(cls, rng: np.random.Generator, groups: BrodenGroups, n_samples: int) -> "_World":
        objects, parts = zipf(groups.object, 0.8), zipf(groups.part, 0.7)
        scene = np.full(n_samples, -1)
        known = rng.permutation(n_samples)[: round(WITH_SCENE * n_samples)]
        scene[known] = draw_all(rng, groups.scene, len(known), zipf(groups.scene, 0.9))
        layers = np.repeat(np.arange(4), np.diff(np.round(n_samples * _steps()).astype(np.int64)))
        layers = rng.permutation(layers)
        ensured_part = np.zeros(n_samples, np.int64)
        with_parts = np.flatnonzero(layers)
        ensured_part[with_parts] = draw_all(rng, groups.part, len(with_parts), parts)
        return cls(
            groups,
            scene,
            layers,
            # One row more, for samples without a scene.
            rng.choice(groups.object, size=(groups.scene + 1, FAVOURITES), p=objects),
            rng.choice(groups.part, size=(groups.object, PARTS_OF), p=parts),
            rng.uniform(0, groups.colour, groups.object),
            draw_all(rng, groups.object, n_samples, objects),
            ensured_part,
        )

    def sample(
        self,
        rng: np.random.Generator,
        x: int,
        cells: Int64[np.ndarray, " fields"],
        pieces: Int64[np.ndarray, " fields"],
        unlabelled: float,
    ) -> _Sample:
        """The labels of sample x, whose fields lie in these cells and pieces of cells."""
        n_cells, n_pieces = int(cells.max()) + 1, int(pieces.max()) + 1
        favourites = self.objects[self.scene[x]]
        labels = favourites[rng.choice(FAVOURITES, size=n_cells, p=zipf(FAVOURITES, 0.7))]
        bare = rng.random(n_cells) < unlabelled
        sure = rng.choice(cells)
        labels[sure], bare[sure] = self.ensured_object[x], False
        shade = self.colours[labels][cells] + rng.normal(0, 0.7, n_pieces)[pieces]
        shade += rng.normal(0, 0.5, len(cells))
        n_colours = self.groups.colour
        keys = np.floor(np.mod(shade, n_colours)).astype(np.int64).clip(0, n_colours - 1)
        keys = keys + n_colours * np.where(bare[cells], 0, 1 + labels[cells])
        covered = ~bare[cells]
        for layer in range(3):
            keys *= self.groups.part + 1
            if layer < self.part_layers[x]:
                kind = rng.integers(PARTS_OF, size=n_pieces)
                found = 1 + self.parts[labels[cells], kind[pieces]]
                there = (rng.random(n_pieces) < WITH_PART)[pieces] & covered
                if layer == 0:
                    sure_piece = pieces == pieces[rng.choice(np.flatnonzero(covered))]
                    found[sure_piece] = 1 + self.ensured_part[x]
                    there |= sure_piece & covered
                keys += np.where(there, found, 0)
        return _Sample(int(self.scene[x]), keys)

    def sets(self, keys: Int64[np.ndarray, " sets"], scene: int) -> list[np.ndarray]:
        """The concepts behind numbers of fields, each set in ascending order."""
        groups = self.groups
        columns: list[np.ndarray] = []
        for _ in range(3):
            keys, part = np.divmod(keys, groups.part + 1)
            columns.append(np.where(part > 0, groups.first("part") + part - 1, -1))
        thing, colour = np.divmod(keys, groups.colour)
        columns.append(np.where(thing > 0, groups.first("object") + thing - 1, -1))
        columns.append(groups.first("colour") + colour)
        columns.append(np.full(len(keys), -1 if scene < 0 else groups.first("scene") + scene))
        rows = np.sort(np.stack(columns, 1), axis=1).astype(np.int32)
        repeated = np.diff(rows, axis=1, prepend=-1) == 0  # the same part twice, or none
        return [row[~drop] for row, drop in zip(rows, repeated, strict=True)]


def _steps() -> Float64[np.ndarray, " five"]:
    return np.concatenate([[0.0], np.cumsum(PART_LAYERS)])
