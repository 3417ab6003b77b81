"""What a run folder names is never imported or made, unless the user names it too."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.run_cases import SlowBounds, forged, stored_layer

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.runs import Run, explain_layer
from optexp_jax.runs.settings import (
    OWN_CLASSES,
    ForeignClassError,
    class_name,
    describe,
    find_class,
    rebuild,
)
from optexp_jax.runs.store import RunStore


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("trust")
    return explain_layer(folder / "run", stored_layer(folder, 2), ox.NetDissect())


def with_meta(run: Run, folder: Path, key: str, value: Any) -> Run:
    def forge(store: RunStore) -> None:
        store._set_meta(key, value)

    return forged(run, folder, forge)


def module_that_tells(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that leaves a file when it is imported, where it can be imported from."""
    trace = folder / "imported"
    (folder / "hostile.py").write_text(
        f"import pathlib\npathlib.Path({str(trace)!r}).write_text('ran')\nclass Evil: pass\n"
    )
    monkeypatch.syspath_prepend(folder)
    return trace


def hostile(trace: Path) -> list[dict[str, Any]]:
    return [
        {"class": "subprocess:Popen", "args": ["touch", str(trace)]},
        {"class": "os:system", "command": f"touch {trace}"},
        {"class": "hostile:Evil"},
        {"class": "optexp_jax.runs.owner:Owner", "host": "", "pid": 1, "started": ""},
        {"class": "optexp_jax.runs.workers:LocalWorkers", "n": 1},
        {"class": ["subprocess:Popen"]},
        {"class": None},
    ]


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize("k", range(7))
@pytest.mark.parametrize("key", ["inputs", "method", "bounds", "null"])
def test_nothing_that_a_run_names_is_run(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    key: str,
    k: int,
):
    trace = module_that_tells(tmp_path, monkeypatch)
    evil = hostile(trace)[k]
    if key == "inputs":
        wrong = with_meta(run, tmp_path, "inputs", evil)
    else:
        configuration = json.loads(json.dumps(run.configuration))
        configuration["null" if key == "null" else "method"] = evil
        if key == "bounds":
            method = rebuild_json(ox.Optimal())
            configuration["method"] = {**method, "bounds": evil}
        wrong = with_meta(run, tmp_path, "configuration", configuration)
    for command in ("verify", "explain --run"):
        assert cli.main([*command.split(), str(wrong.path)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
    assert not trace.exists()
    assert "hostile" not in sys.modules


def rebuild_json(value: Any) -> Any:
    from optexp_jax.runs.settings import describe

    return json.loads(json.dumps(describe(value)))


def test_classes_of_the_user_are_used_when_the_user_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    method = ox.Optimal(length=2, bounds=SlowBounds())
    run = explain_layer(tmp_path / "run", stored_layer(tmp_path, 1), method)
    assert run.method == method, "who made the run knows its classes"
    stored = str(run.path)
    with pytest.raises(ForeignClassError):
        assert Run(stored).method
    assert Run(stored, allow=[SlowBounds]).method == method
    for command in (["verify", stored], ["explain", "--run", stored, "-q"]):
        assert cli.main(command) == 1
        assert "pass --allow helpers.run_cases:SlowBounds" in capsys.readouterr().err
        assert cli.main([*command, "--allow", "helpers.run_cases:SlowBounds"]) == 0
        capsys.readouterr()
    config = tmp_path / "run.toml"
    config.write_text(f'run = "{stored}"\nallow = "helpers.run_cases:SlowBounds"\n')
    assert cli.main(["explain", "--config", str(config), "-q"]) == 0


def test_the_list_of_own_classes_is_right():
    for name, module in OWN_CLASSES.items():
        kind = find_class(f"{module}:{name}")
        assert kind.__module__ == module
        assert class_name(kind) == f"optexp_jax:{name}"


def test_a_class_that_is_only_called_like_ours_is_foreign():
    named_alike = dataclasses.make_dataclass("TightBounds", [])
    assert class_name(named_alike) != "optexp_jax:TightBounds"
    with pytest.raises(ForeignClassError):
        rebuild(describe(named_alike()))
    for name in ("TightBounds", "optexp_jax:Run", "optexp_jax:optexp_jax:TightBounds"):
        with pytest.raises(ForeignClassError):
            rebuild({"class": name})


@pytest.mark.chaos("hostile files refused")
@pytest.mark.parametrize(
    "wrong",
    [
        {"length": "3"},
        {"length": True},
        {"length": -1},
        {"callback": 3},
        {"callback": {"operator": "OR"}},
        {"bounds": None},
        {"bounds": rebuild_json(ox.Beam())},
        {"operators": []},
        {"operators": ["OR"]},
        {"operators": [{"operator": {"name": "XOR", "bits": [1, 1]}}]},
        {"unknown": 1},
        {"top_k": 10**12},
    ],
    ids=repr,
)
def test_fields_must_be_of_their_type(wrong: dict[str, Any]):
    stored = rebuild_json(ox.Optimal())
    assert rebuild(stored) == ox.Optimal()
    with pytest.raises(ValueError, match=r"."):
        rebuild({**stored, **wrong})
    with pytest.raises(ValueError, match="lacks length"):
        rebuild({key: value for key, value in stored.items() if key != "length"})
