"""What holds for every package: metadata, licence, marker files, and the order of the layers in every place."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tools import version

LAYERS = ["tg-dtype", "tg-shape", "tg-lazy", "tg-codegen", "tg-runtime", "tg-hcq", "tg-frontend"]


def project(path: Path) -> dict[str, Any]:
    return tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_version_is_the_same(repository: Path) -> None:
    found = version.versions(repository)
    assert len(set(found.values())) == 1, found
    assert len([place for place in found if ":" not in place]) == len(LAYERS) + 1


def test_the_packages_are_the_layers(repository: Path) -> None:
    assert sorted(path.parent.name for path in (repository / "packages").glob("*/pyproject.toml")) == sorted(LAYERS)
    isolated = project(repository)["tool"]["hatch"]["envs"]["isolated"]["matrix"][0]["package"]
    assert [f"tg-{name}" for name in isolated] == LAYERS


@pytest.mark.parametrize("name", LAYERS)
def test_a_package_is_complete(repository: Path, name: str) -> None:
    home = repository / "packages" / name
    data = project(home)
    assert data["project"]["name"] == name
    assert data["project"]["requires-python"] == ">=3.11"
    assert data["build-system"]["build-backend"] == "hatchling.build"
    assert "pytest" not in data.get("tool", {}), "pytest is configured at the root alone: a member's options would win"
    assert (home / "src" / name.replace("-", "_") / "py.typed").is_file()
    assert (home / "LICENSE").read_bytes() == (repository / "LICENSE").read_bytes()
    assert any((home / "tests").glob("test_*.py"))
    assert "```python\n" in (home / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LAYERS)
def test_a_package_depends_on_lower_layers_alone(repository: Path, name: str) -> None:
    data = project(repository / "packages" / name)["project"]
    ours = [line.split("==")[0] for line in data.get("dependencies", [])]
    assert set(ours) <= set(LAYERS[: LAYERS.index(name)]), "third parties are extras; siblings come from below"


def test_the_meta_package_pins_every_member(repository: Path) -> None:
    lines = project(repository)["project"]["dependencies"]
    assert sorted(line.split("==")[0].split("[")[0] for line in lines) == sorted(LAYERS)


def test_the_installation_without_hatch_takes_every_package(repository: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        found = re.search(r"pip install (\$\(printf .*?-e \.)", (repository / name).read_text(encoding="utf-8"))
        assert found is not None, name
        words = subprocess.run(["sh", "-c", f"echo {found[1]}"], cwd=repository, capture_output=True, text=True).stdout
        editable = words.split()
        assert set(editable[::2]) == {"-e"}
        assert sorted(editable[1::2]) == sorted([".", *(f"packages/{layer}" for layer in LAYERS)])


def test_packages_claim_the_system_that_they_are_tried_on(repository: Path) -> None:
    for path in (repository, *(repository / "packages" / name for name in LAYERS)):
        classifiers = project(path)["project"]["classifiers"]
        assert [line for line in classifiers if line.startswith("Operating")] == ["Operating System :: POSIX :: Linux"]
    assert "`Operating System :: POSIX :: Linux`" in (repository / "docs" / "platforms.md").read_text(encoding="utf-8")
