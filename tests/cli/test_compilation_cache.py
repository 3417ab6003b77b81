"""Programs are kept for the next command: none is compiled twice on a machine."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.run_cases import TESTS, stored_layer

from optexp_jax.cli import compilation_cache
from optexp_jax.cli.compilation_cache import FOLDER, TIME, VARIABLE, keep_programs

# The command, with what JAX says of its cache counted.
COUNTED = """
import json, sys
from optexp_jax.cli.compilation_cache import keep_programs
keep_programs()
import collections, jax
counts = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: counts.update([event.split("/")[-1]]))
from optexp_jax.cli.__main__ import main
code = main()
print(json.dumps(counts))
sys.exit(code)
"""


def explain(folder: Path, run: str, cache: str) -> dict[str, int]:
    layer = stored_layer(folder / run, 1)
    made = subprocess.run(
        [
            *(sys.executable, "-c", COUNTED, "explain", "--quiet"),
            *("--table", layer.table, "--activations", layer.activations, "--range", layer.range),
            *("--run", str(folder / run / "run")),
        ],
        env={
            **{name: value for name, value in os.environ.items() if name not in (FOLDER, TIME)},
            VARIABLE: cache,
            "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(made.stdout.splitlines()[-1])


def test_a_second_command_compiles_nothing(tmp_path: Path):
    for run in ("first", "second", "third", "off"):
        (tmp_path / run).mkdir()
    cache = tmp_path / "cache"
    first = explain(tmp_path, "first", str(cache))
    assert first["cache_misses"] > 0
    (folder,) = cache.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    second = explain(tmp_path, "second", str(cache))
    assert second.get("cache_misses", 0) == 0
    assert second["cache_hits"] > 0

    # What is damaged is compiled again, and stops nobody.
    for program in folder.iterdir():
        program.write_bytes(program.read_bytes()[:-20])
    third = explain(tmp_path, "third", str(cache))
    assert third["cache_misses"] > 0
    assert "cache_misses" not in explain(tmp_path, "off", "off")


def test_settings_of_the_user_come_first(tmp_path: Path):
    for given in ({FOLDER: "mine"}, {"JAX_ENABLE_COMPILATION_CACHE": "0"}, {VARIABLE: "off"}):
        environment = dict(given)
        assert keep_programs(environment) is None
        assert environment == given
    environment = {VARIABLE: str(tmp_path), TIME: "1"}
    folder = keep_programs(environment)
    assert folder is not None
    assert folder.parent == tmp_path
    assert environment[FOLDER] == str(folder)
    assert environment[TIME] == "1"


def test_the_cache_of_the_user_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path))
    folder = keep_programs({})
    assert folder is not None
    assert folder.parent == tmp_path / "compiled"


def test_other_processors_have_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = keep_programs({VARIABLE: str(tmp_path)})
    monkeypatch.setattr(compilation_cache, "_processor_features", lambda: ("flags: other",))
    assert keep_programs({VARIABLE: str(tmp_path)}) != here
    monkeypatch.setattr("importlib.metadata.version", lambda _: "99")
    there = keep_programs({VARIABLE: str(tmp_path)})
    assert there is not None
    assert there.name.startswith("jaxlib-99-")


@pytest.mark.parametrize("named", [True, False])
def test_a_place_that_cannot_be_written_is_told_if_it_was_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    named: bool,
):
    (tmp_path / "file").touch()
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "file"))
    environment = {VARIABLE: str(tmp_path / "file")} if named else {}
    assert keep_programs(environment) is None
    assert FOLDER not in environment
    assert ("programs are not kept" in capsys.readouterr().err) == named


def test_programs_of_others_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    assert keep_programs({VARIABLE: str(tmp_path)}) is None
