"""The example that classifies pictures: names of weights, shards that are missing or cut, and packages from npm."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tools import npm

from tinytg import nn


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """``examples/resnet.py`` as a module."""
    path = Path(__file__).parents[1] / "examples" / "resnet.py"
    spec = importlib.util.spec_from_file_location("resnet_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of two weights in three shards, which are cut where no weight ends."""
    data = np.arange(23, dtype=np.float32).tobytes()
    for number, (begin, end) in enumerate(((0, 30), (30, 61), (61, 92))):
        (tmp_path / f"part{number}.bin").write_bytes(data[begin:end])
    weights = [{"name": name, "shape": shape, "dtype": "float32"} for name, shape in (("a", [3, 5]), ("b", [8]))]
    manifest = [{"paths": [f"part{number}.bin" for number in range(3)], "weights": weights}]
    (tmp_path / "model.json").write_text(json.dumps({"weightsManifest": manifest}))
    return tmp_path


def test_shards_are_one_run_of_bytes(example: ModuleType, folder: Path) -> None:
    state = example.shards(folder)
    assert state["a"].tolist() == np.arange(15, dtype=np.float32).reshape(3, 5).tolist()
    assert state["b"].tolist() == list(range(15, 23))


def test_a_missing_and_a_cut_shard_are_named(example: ModuleType, folder: Path) -> None:
    (folder / "part2.bin").write_bytes(b"12345")
    with pytest.raises(ValueError, match="the shards end within b: 66 bytes, 92 are wanted"):
        example.shards(folder)
    (folder / "part1.bin").unlink()
    with pytest.raises(ValueError, match=r"lacks 1 of 3 shards: part1\.bin"):
        example.shards(folder)


def test_every_weight_of_the_model_has_a_name_of_keras(example: ModuleType) -> None:
    """What Keras calls the layers of its first ResNet-50; each of ours is one of them."""
    layers = ["conv1", "bn_conv1"]
    for stage, (_, count) in enumerate(example.STAGES, start=2):
        for block in "abcdef"[:count]:
            branches = ["branch2a", "branch2b", "branch2c", *(["branch1"] if block == "a" else [])]
            layers += [f"{kind}{stage}{block}_{branch}" for kind in ("res", "bn") for branch in branches]
    names = {
        f"{layer}/{kind}" for layer in layers
        for kind in (("gamma", "beta", "moving_mean", "moving_variance") if layer[:2] == "bn" else ("kernel", "bias"))
    } | {"fc1000/kernel", "fc1000/bias"}  # fmt: skip
    assert len(names) == 320
    own = {name for name in nn.state.get_state_dict(example.ResNet50()) if not name.endswith("num_batches_tracked")}
    assert {example.own_name(name) for name in names} == own


def npm_that(folder: Path, text: str) -> None:
    """Makes a program called npm in a folder."""
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_a_package_is_fetched_once_and_nothing_is_half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, content = tmp_path / "bin", tmp_path / "content"
    programs.mkdir()
    (content / "package").mkdir(parents=True)
    (content / "package" / "data.txt").write_text("here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(RuntimeError, match="npm is wanted to fetch thing@1"):
        npm.fetch("thing@1")
    monkeypatch.setenv("PATH", os.pathsep.join((str(programs), os.defpath)))
    npm_that(programs, "echo no such package >&2; exit 1")
    with pytest.raises(RuntimeError, match="could not fetch thing@1:\nno such package"):
        npm.fetch("thing@1")
    assert not npm.kept("thing@1").parent.exists()
    npm_that(programs, f"tar czf thing-1.tgz -C {content} package")
    assert (npm.fetch("thing@1") / "data.txt").read_text() == "here"
    npm_that(programs, "exit 1")
    assert npm.fetch("thing@1") == npm.kept("thing@1")


@pytest.mark.parametrize("command", [
    "tar czf thing-2.tgz -P --transform 's,^,../,' -C {content} package/data.txt",
    "ln -s /etc/passwd {content}/package/link; tar czf thing-2.tgz -C {content} package"])  # fmt: skip
def test_a_package_writes_nothing_elsewhere(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, content = tmp_path / "bin", tmp_path / "content"
    programs.mkdir()
    (content / "package").mkdir(parents=True)
    (content / "package" / "data.txt").write_text("here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.pathsep.join((str(programs), os.defpath)))
    npm_that(programs, command.format(content=content))
    with pytest.raises(RuntimeError, match="thing@2 holds '.*', which is no file of a package"):
        npm.fetch("thing@2")
    assert not npm.kept("thing@2").parent.exists()
    assert list((tmp_path / "cache").rglob("data.txt")) == []
