"""Build every wheel, then install them from ``dist`` alone into fresh environments, one for each Python, and use them.

    python -m tools.wheels [DIST]

What this proves is the published metadata: names, pins, extras, entry points and the files that each wheel carries.
The third parties are installed first, from the index; then our packages with no index at all, so a pin that nothing in
``DIST`` satisfies fails, and so does a package that reaches another one of ours by the source tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from tools.installer import uv
from tools.pythons import find, wanted

ROOT = Path(__file__).resolve().parents[1]

_SMOKE = """
import importlib.metadata as metadata, sys
ours = sorted(d.name for d in metadata.distributions() if d.name == "tinytg" or d.name.startswith("tg-"))
assert len(ours) == {count}, ours
assert all(metadata.version(name) == {version!r} for name in ours)
import tinytg
assert "site-packages" in tinytg.__file__, tinytg.__file__
offered = sorted(entry.name for entry in metadata.entry_points(group="tg.devices"))
assert {{"CPU", "NULL", "NUMPY"}} <= set(offered), offered
from tinytg import Tensor
assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]
print("installed from dist alone:", *ours, "devices:", *offered)
"""


def homes() -> list[Path]:
    """The folder of every distribution, members first."""
    return [*sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml")), ROOT]


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command, with its output shown; raise CalledProcessError when it fails."""
    print("+", *command, flush=True)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    # Outside of the repository uv does not read our setting to trust the certificates of the system.
    environment |= {"UV_SYSTEM_CERTS": "true"}
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, env=environment)


def build(dist: Path) -> list[Path]:
    """The wheel of every distribution, built from its sdist into ``dist``, which is emptied first."""
    shutil.rmtree(dist, ignore_errors=True)
    for home in homes():
        run(uv(), "build", "--quiet", "--no-sources", "--out-dir", dist, home)
    return sorted(dist.glob("*.whl"))


def check_contents(wheel: Path) -> None:
    """Each wheel is typed, licensed, and holds nothing but its package.

    Raises:
        ValueError: if a file is missing or out of place.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    module = wheel.name.split("-")[0]
    strays = [name for name in names if not name.startswith((f"{module}/", f"{module}-"))]
    licensed = any(name.endswith("licenses/LICENSE") for name in names)
    if f"{module}/py.typed" not in names or not licensed or strays:
        raise ValueError(f"{wheel.name}: needs py.typed and a licence, and nothing beside its package; has {strays}")


def third_parties() -> list[str]:
    """The requirements of every distribution, extras included, that are not ours."""
    projects = [tomllib.loads((home / "pyproject.toml").read_text(encoding="utf-8"))["project"] for home in homes()]
    ours = tuple(project["name"] for project in projects)
    lines = [
        line
        for project in projects
        for group in [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
        for line in group
    ]
    return sorted({line for line in lines if not line.startswith(ours)})


def install(dist: Path, interpreter: Path) -> None:
    """Install ``tinytg`` from ``dist`` alone, in an environment of an interpreter's own, and run a program there."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    with tempfile.TemporaryDirectory(prefix="tinytg-wheels-") as scratch:
        place = Path(scratch)
        run(uv(), "venv", "--quiet", "--python", interpreter, place / "env", cwd=place)
        python = place / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        target: list[str | Path] = ["--quiet", "--python", python]
        run(uv(), "pip", "install", *target, *third_parties(), cwd=place)
        run(uv(), "pip", "install", *target, "--no-index", "--find-links", dist, "tinytg", cwd=place)
        run(python, "-c", _SMOKE.format(count=len(homes()), version=version), cwd=place)
        run(python.with_name("tinytg"), "--version", cwd=place)


def build_checked(dist: Path) -> None:
    """Build an sdist and a wheel of every distribution into ``dist``, and look into each wheel.

    Raises:
        ValueError: if a distribution has no wheel, or a wheel misses a file or holds one too many.
    """
    wheels = build(dist)
    if len(wheels) != len(homes()):
        raise ValueError(f"{len(homes())} packages, but {len(wheels)} wheels: {[wheel.name for wheel in wheels]}")
    for wheel in wheels:
        check_contents(wheel)


def install_everywhere(dist: Path) -> list[str]:
    """Install from ``dist`` on every wanted Python; returns a line for each: where it passed, or why it was skipped."""
    report = []
    for python in map(find, wanted()):
        if python.path is None:
            report.append(f"Python {python.version}: skipped, {python.missing}")
        else:
            install(dist, python.path)
            report.append(f"Python {python.version}: installed and used")
    return report


def main(arguments: list[str]) -> int:
    dist = Path(arguments[0] if arguments else ROOT / "dist").resolve()
    build_checked(dist)
    print(*install_everywhere(dist), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
