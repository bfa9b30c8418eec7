"""The addresses that every package states in its metadata: show them, or write them everywhere.

    python -m tools.urls                                              # print them; exit with 1 when two packages differ
    python -m tools.urls Repository=https://example.org/tinytg …      # write them to every pyproject.toml
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from tools.version import project_files

_TABLE = re.compile(r"^\[project\.urls\]\n(?:(?!\[).*\n)*", re.MULTILINE)
_FIRST_TOOL = re.compile(r"^\[tool\.", re.MULTILINE)
_ADDRESS = re.compile(r'https://[^\s"]+')


def urls(root: Path) -> dict[str, dict[str, str]]:
    """The addresses of each project file, by label; none where it states none."""
    return {
        str(path.relative_to(root)): tomllib.loads(path.read_text(encoding="utf-8"))["project"].get("urls", {})
        for path in project_files(root)
    }


def set_urls(root: Path, addresses: dict[str, str]) -> None:
    """Write the addresses into every project file, instead of those that are there.

    Raises:
        ValueError: if a label is no word, or an address does not begin with https://.
    """
    for label, address in addresses.items():
        if not label.isidentifier() or not _ADDRESS.fullmatch(address):
            raise ValueError(f"not a label and an address: {label}={address} (expected Repository=https://…)")
    table = "".join(["[project.urls]\n", *(f'{label} = "{address}"\n' for label, address in addresses.items()), "\n"])
    for path in project_files(root):
        text = _TABLE.sub("", path.read_text(encoding="utf-8"))
        # Before the first table of a tool, among those of the project.
        path.write_text(_FIRST_TOOL.sub(lambda found: table + found[0], text, count=1), encoding="utf-8")


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parents[1]
    if arguments:
        set_urls(root, dict(argument.partition("=")[::2] for argument in arguments))
    found = urls(root)
    for place, addresses in found.items():
        print(f"{place}: {', '.join(f'{label}={address}' for label, address in addresses.items()) or 'none'}")
    return 0 if len({str(addresses) for addresses in found.values()}) == 1 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
