"""The one version of every package: show it, check it, or change it everywhere.

    python -m tools.version            # print the version; exit with 1 when two files disagree
    python -m tools.version 0.2.0      # write it to every pyproject.toml, and to the pins between the packages
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_VERSION = re.compile(r'^version = "([^"]*)"$', re.MULTILINE)
_RELEASE = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?(\.dev\d+)?")


def project_files(root: Path) -> list[Path]:
    """The ``pyproject.toml`` of the meta-package and of every member."""
    return [root / "pyproject.toml", *sorted((root / "packages").glob("*/pyproject.toml"))]


def versions(root: Path) -> dict[str, str]:
    """The version that each place states: a distribution's own, and each pin of one of ours."""
    projects = {path: tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in project_files(root)}
    ours = "|".join(re.escape(project["name"]) for project in projects.values())
    pin = re.compile(rf"({ours})(?:\[[^\]]*\])?==(.+)")
    found = {}
    for path, project in projects.items():
        place = str(path.relative_to(root))
        found[place] = str(project["version"])
        extras = project.get("optional-dependencies", {}).values()
        for line in [*project.get("dependencies", []), *(line for lines in extras for line in lines)]:
            if match := pin.fullmatch(line.replace(" ", "")):
                found[f"{place}: {match[1]}"] = match[2]
    return found


def set_version(root: Path, version: str) -> None:
    """Write ``version`` into every project file and into every pin of one of our distributions.

    Raises:
        ValueError: if ``version`` is not of the form 1.2.3, with an optional a1, b1, rc1 or .dev1.
    """
    if not _RELEASE.fullmatch(version):
        raise ValueError(f"not a version: {version!r} (expected 1.2.3, 1.2.3rc1 or 1.2.3.dev1)")
    names = [tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"] for path in project_files(root)]
    pin = re.compile(rf'("(?:{"|".join(map(re.escape, names))})(?:\[[^\]]*\])?==)[^"]*"')
    for path in project_files(root):
        text = path.read_text(encoding="utf-8")
        text = _VERSION.sub(f'version = "{version}"', text, count=1)
        path.write_text(pin.sub(rf'\g<1>{version}"', text), encoding="utf-8")


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parents[1]
    if arguments:
        set_version(root, arguments[0])
    found = versions(root)
    if len(set(found.values())) != 1:
        for place, version in found.items():
            print(f"{place}: {version}")
        return 1
    print(next(iter(found.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
