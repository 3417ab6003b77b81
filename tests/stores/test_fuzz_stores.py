"""Stores with right digests, but made up by somebody: they are read, or refused as damaged."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.activations import ActivationStore
from optexp_jax.stores.digests import digest_of, read_digests, write_digests
from optexp_jax.stores.store import DataFileError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2**31, 2**63, 10**12, 10**400])
    | st.integers(-5, 300)
    | st.floats()
    | st.sampled_from(["int8", "float32", "<U4", "object", "zstd", "pickle", "../x", "\x1b[2J", ""])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def write_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    ox.ConceptTable.from_masks(rng.random((3, 4, 5)) < 0.5, list("abc")).save(path)


def read_table(path: Path) -> None:
    table = ox.ConceptTable.load(path, verify=True)
    table.count(np.ones((table.n_samples, *table.require_map("this").location_shape), bool))


def write_activations(path: Path) -> None:
    ActivationStore.from_array(path, np.random.default_rng(0).random((4, 3, 2, 2)))


def read_activations(path: Path) -> None:
    store = ActivationStore.open(path)
    store.block(0, 2)
    store.units(0, 1)


KINDS = {"table": (write_table, read_table), "activations": (write_activations, read_activations)}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    folder = tmp_path_factory.mktemp("fuzz")
    write, read = KINDS[request.param]
    write(folder / "whole")
    return folder / "whole", read


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as the container and the key in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list):
            yield from nodes(inner)


def copy_of(whole: Path) -> Path:
    """A copy to change, in the place of the last one."""
    store = whole.with_name("changed")
    shutil.rmtree(store, ignore_errors=True)
    return Path(shutil.copytree(whole, store))


def seal(store: Path, name: str, content: bytes) -> None:
    """Change a file and its digest."""
    (store / name).write_bytes(content)
    write_digests(store, {**read_digests(store), name: digest_of(content)})


@examples(60)
@given(data=st.data())
def test_metadata_of_any_kind(kind: tuple, data: st.DataObject):
    whole, read = kind
    store = copy_of(whole)
    name = data.draw(st.sampled_from(sorted(n for n in read_digests(store) if "json" in n)))
    if data.draw(st.booleans()):
        stored = json.loads((store / name).read_bytes())
        where, key = data.draw(st.sampled_from(list(nodes(stored))))
        if data.draw(st.booleans()):
            where[key] = data.draw(JSON)
        else:
            del where[key]
    else:
        stored = data.draw(JSON)
    seal(store, name, json.dumps(stored).encode())
    with as_users_run_it(), contextlib.suppress(DataFileError):
        read(store)


@examples(40)
@given(data=st.data())
def test_content_of_any_kind(kind: tuple, data: st.DataObject):
    whole, read = kind
    store = copy_of(whole)
    files = sorted(read_digests(store))
    name, other = data.draw(st.sampled_from(files)), data.draw(st.sampled_from(files))
    content = data.draw(st.binary(max_size=40) | st.just((store / other).read_bytes()))
    seal(store, name, content)
    with as_users_run_it(), contextlib.suppress(DataFileError):
        read(store)
