"""`docs/add-a-device.md`: the package that the page spells out is built, installed, conforms, and runs a tensor."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

_FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def package(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page."""
    text = (repository / "docs" / "add-a-device.md").read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("tg-gcc")
    for name, content in _FILE.findall(text):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def installed(package: Path) -> Path:
    """The wheel, built from the files and unpacked: all that installing a wheel of Python alone amounts to."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"],
        cwd=package, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    target = package / "installed"
    (wheel,) = (package / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def python(installed: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs this interpreter beside the installed package, as if somebody had cloned nothing."""
    path = os.pathsep.join([str(installed), *(entry for entry in sys.path if entry)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=installed.parent, env={**os.environ, "PYTHONPATH": path, **variables}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip


def test_the_page_is_the_whole_package(package: Path) -> None:
    found = sorted(str(path.relative_to(package)) for path in package.rglob("*.*") if path.is_file())
    modules = [f"src/tg_gcc/{name}.py" for name in ("__init__", "compiler", "device", "memory")]
    assert [name for name in found if name.split("/")[0] not in ("dist", "installed")] == [
        "pyproject.toml", *modules, "tests/test_gcc.py", "use.py",
    ]  # fmt: skip


def test_the_device_is_offered(installed: Path) -> None:
    done = python(installed, "-m", "tinytg.cli", "devices")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("GCC "))
    assert " tg-gcc " in line and line.endswith("available"), done.stdout + done.stderr


COMPILED_LONG = (
    "elementwise or reductions or functions_over_their_range or one_operand_twice or test_casts or far_elements"
)
"""Tests of the conformance class with many kernels, or large ones: each is a process of gcc."""


@pytest.mark.parametrize("chosen", [f"not ({COMPILED_LONG})", pytest.param(COMPILED_LONG, marks=pytest.mark.slow)])
def test_the_device_conforms(installed: Path, chosen: str) -> None:
    alone = ("-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-k", chosen)
    done = python(installed, "-m", "pytest", "-q", "-x", "-rs", *alone, "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d\d passed" if chosen != COMPILED_LONG else r"\b[4-9] passed", done.stdout), done.stdout
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all("GCC has no " in line for line in skipped), done.stdout  # work-groups, graphs, images


def test_a_tensor_is_computed_on_it(installed: Path) -> None:
    done = python(installed, "use.py", DEV="GCC")
    assert done.stdout == "GCC [[3.0], [7.0]]\n", done.stdout + done.stderr


def test_without_gcc_it_says_so(installed: Path) -> None:
    done = python(installed, "use.py", DEV="GCC", PATH="/nowhere")
    assert done.returncode == 1 and "there is no gcc on the PATH" in done.stderr
