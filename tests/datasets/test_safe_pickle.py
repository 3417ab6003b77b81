"""Pickles from elsewhere: nothing that they name is touched, and none takes long."""

import collections
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.support import as_users_run_it

from optexp_jax.datasets import LayoutError, safe_pickle
from optexp_jax.datasets.safe_pickle import UnsafePickleError, read_pickle

PUSH_FUNCTION = b"cnumpy.core.multiarray\n_reconstruct\n"


def read(folder: Path, content: bytes) -> Any:
    path = folder / "index.pkl"
    path.write_bytes(content)
    with as_users_run_it():
        started = time.monotonic()
        try:
            return read_pickle(path)
        finally:
            assert time.monotonic() - started < 5


def nested(pair: bytes, levels: int, first: bytes = b"]") -> bytes:
    """Each level holds the one before it twice: 2 ** levels of the first."""
    return b"\x80\x02" + first + b"q\x00" + pair * levels + b"."


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("content", [
    nested(b"h\x00h\x00\x86q\x00", 60),  # tuples
    nested(b"](h\x00h\x00eq\x00", 60),  # lists
    nested(b"h\x00h\x00\x86q\x00", 60, b"K\x01") [:-1] + b"}h\x00K\x01s.",  # a tuple as a key
    nested(b"}K\x01h\x00sK\x02h\x00sq\x00", 60),  # dictionaries
    b"]q\x00h\x00a.",  # a list in itself
    b"(" * 100_000 + b"t" * 100_000 + b".",
    b"\x80\x02K\x01" + b"\x85" * 100_000 + b".",
])  # fmt: skip
def test_nested_data_is_refused_at_once(tmp_path: Path, content: bytes):
    with pytest.raises(LayoutError, match=r"nested more than|more than \d+ values|a key|index"):
        read(tmp_path, content)


@pytest.mark.chaos("hostile files refused")
def test_attributes_of_functions_are_not_set(tmp_path: Path):
    before = [getattr(safe_pickle, name) for name in dir(safe_pickle)]
    defaults = {
        function: function.__defaults__ for function in before if hasattr(function, "__defaults__")
    }
    for state in (b"}X\x0c\x00\x00\x00__defaults__K\x01\x85s", b"N}X\x01\x00\x00\x00aK\x01s\x86"):
        with pytest.raises(
            UnsafePickleError, match=r"attributes of numpy\.core\.multiarray\._recon"
        ):
            read(tmp_path, PUSH_FUNCTION + state + b"b.")
    with pytest.raises(UnsafePickleError, match="attributes of list"):
        read(tmp_path, b"]K\x01b.")
    assert all(function.__defaults__ == value for function, value in defaults.items())


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize(("content", "kind"), [
    (b"cos\nsystem\n(X\x04\x00\x00\x00truetR.", UnsafePickleError),
    (b"(X\x04\x00\x00\x00trueios\nsystem\n.", UnsafePickleError),
    (b"(cos\nsystem\nX\x04\x00\x00\x00trueo.", UnsafePickleError),
    (b"cnumpy\nndarray\n)\x81.", UnsafePickleError),
    (b"cnumpy\nndarray\n)R.", UnsafePickleError),
    (b"cnumpy\nndarray\n.", LayoutError),  # A name alone is no data.
    (b"K\x01)R.", UnsafePickleError),
    (b"P0\n.", LayoutError),
    (b"\x82\x01.", LayoutError),
    (b"c__builtin__\nbytes\nK\x05\x85R.", LayoutError),
    (b"]]\x93.", LayoutError),
    (b"", LayoutError),
    (b".", LayoutError),
])  # fmt: skip
def test_programs_are_refused(tmp_path: Path, content: bytes, kind: type[LayoutError]):
    with pytest.raises(kind) as refused:
        read(tmp_path, content)
    assert type(refused.value) is kind


@pytest.mark.chaos("hostile files refused")
def test_one_long_argument_for_many_makers(tmp_path: Path):
    text = b"X" + (2**20).to_bytes(4, "little") + b"a" * 2**20 + b"q\x00"
    encode = b"c_codecs\nencode\nq\x010" + b"h\x01h\x00\x85R0" * 100_000
    with pytest.raises(LayoutError, match="makes more of its data than it holds"):
        read(tmp_path, text + encode + b"h\x00.")


@pytest.mark.chaos("hostile files refused")
def test_numbers_that_fall_into_one_place(tmp_path: Path):
    prime = 2**61 - 1
    with pytest.raises(LayoutError, match="too large a number"):
        read(tmp_path, pickle.dumps({k * prime: 0 for k in range(2, 2000)}))


@pytest.mark.chaos("hostile files refused")
def test_a_step_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("optexp_jax.datasets.pickle_machine.MOST_STEPS", 100)
    assert read(tmp_path, pickle.dumps(list(range(20)))) == list(range(20))
    with pytest.raises(LayoutError, match="more than 100 instructions"):
        read(tmp_path, pickle.dumps(list(range(200))))
    monkeypatch.setattr(safe_pickle, "MOST_BYTES", 10)
    with pytest.raises(LayoutError, match="larger than 10 bytes"):
        read(tmp_path, pickle.dumps(list(range(20))))


@pytest.mark.parametrize("protocol", range(6))
def test_shared_and_plain_data_is_as_python_reads_it(tmp_path: Path, protocol: int):
    shared = ["x", ("y", 2.5)]
    data = {
        "shared": [shared, shared, (shared,)],
        "ordered": collections.OrderedDict([("b", 1), ("a", shared)]),
        "sets": [{1, "a", ("b", 2)}, frozenset([b"c", None])],
        "numbers": [0, -1, 255, 65536, -(2**31), 2**70, True, 1e300, 2 + 3j],
        "bytes": [b"", b"\xff" * 300],
        "keys": {1: 2, (1, "a"): 3, None: 4, 2.5: 5},
    }
    found = read(tmp_path, pickle.dumps(data, protocol))
    assert found == data


def test_text_of_python_2(tmp_path: Path):
    assert read(tmp_path, b"(S'a\\xe9'\nS\"b\"\nU\x01\xe9l.") == ["aé", "b", "é"]
