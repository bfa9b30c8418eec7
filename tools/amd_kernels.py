"""Which versions of Linux know which architectures: ``headers/amd/linux.py``, and the table of ``docs/amd.md``.

    apt-get install linux-source-6.1 linux-source-6.12           # and unpack them; linux-source-7.2 is in Debian's sid
    git clone https://github.com/freebsd/drm-kmod                # imports amdgpu from each Linux; has no amdkfd
    python -m tools.amd_kernels 6.1=linux-source-6.1 6.10=drm-kmod@97acd04c2e … 7.2=linux-source-7.2
    python -m tools.amd_kernels                                  # writes the table of the docs anew

A folder is a kernel's source, ``FOLDER@COMMIT`` a commit of a git repository. An architecture is known where amdgpu's
``amdgpu_discovery.c`` loads its graphics and copy blocks and amdkfd's ``kfd_device.c`` has its number. A source without
``kfd_device.c`` tells only where it is not known.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tg_hcq.amd.architecture import ARCHITECTURES
from tg_hcq.amd.kfd.kernels import known, text_of

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "amd.md"
MODULE: Final = ROOT / "packages/tg-hcq/src/tg_hcq/headers/amd/linux.py"
BEGIN: Final = "<!-- kernels: python -m tools.amd_kernels -->"
END: Final = "<!-- end of kernels -->"

AMD: Final = "drivers/gpu/drm/amd"
LISTS: Final = tuple(f"Documentation/gpu/amdgpu/{kind}-asic-info-table.csv" for kind in ("apu", "dgpu"))
"""Which copy block a chip has beside its graphics block."""

HEAD: Final = '''"""Which versions of Linux know the architectures of this driver, by KFD's numbers.

Made by ``python -m tools.amd_kernels`` from {files} of these:

{sources}
"""

'''

Version = tuple[int, int]


class Source:
    """A kernel's source: a folder, or a commit of a repository."""

    def __init__(self, where: str) -> None:
        self.where, _, self.commit = where.partition("@")

    @property
    def name(self) -> str:
        """What is written down as the source of facts."""
        folder = Path(self.where).name
        if self.commit:
            return f"{folder}, commit {self.commit}"
        numbers = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", self.read("Makefile") or "", re.M))
        return f"{folder}, {'.'.join(numbers.values())}"

    def read(self, path: str) -> str | None:
        """A file's text; None if it is not there."""
        if not self.commit:
            file = Path(self.where) / path
            return file.read_text(encoding="utf-8") if file.exists() else None
        command = ["git", "-C", self.where, "show", f"{self.commit}:{path}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None


class Facts(NamedTuple):
    """What one source says.

    Attributes:
      graphics: versions of graphics blocks that amdgpu loads.
      copies: versions of copy blocks that it loads.
      compute: KFD's number of each graphics block that amdkfd knows; None if the source has no amdkfd.
    """

    graphics: frozenset[str]
    copies: frozenset[str]
    compute: Mapping[str, int] | None


def blocks(text: str, kind: str) -> frozenset[str]:
    """The versions of a kind of block that ``amdgpu_discovery.c`` loads."""
    body = text[text.index(f"static int amdgpu_discovery_set_{kind}_ip_blocks(") :].split("\n}\n")[0]
    return frozenset(".".join(found) for found in re.findall(r"case IP_VERSION\((\d+), (\d+), (\d+)\)", body))


def compute(text: str) -> dict[str, int]:
    """KFD's number of each graphics block in ``kfd_device.c``."""
    found: dict[str, int] = {}
    waiting: list[str] = []
    for version, number in re.findall(r"case IP_VERSION\(([\d, ]+)\)|gfx_target_version = (\d+);", text):
        if version:
            waiting.append(version.replace(", ", "."))
        elif waiting:
            found |= dict.fromkeys(waiting, int(number))
        if number:
            waiting = []
    return found


def facts(source: Source) -> Facts:
    """What a source says.

    Raises:
      ValueError: if it is no source of a kernel.
    """
    discovery = source.read(f"{AMD}/amdgpu/amdgpu_discovery.c")
    device = source.read(f"{AMD}/amdkfd/kfd_device.c")
    if discovery is None:
        raise ValueError(f"{source.where} has no {AMD}/amdgpu/amdgpu_discovery.c")
    numbers = None if device is None else compute(device)
    return Facts(blocks(discovery, "gc"), blocks(discovery, "sdma"), numbers)


def pairs(text: str) -> dict[str, str]:
    """The copy block of each graphics block in one of the kernel's lists of chips."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    graphics, copies = (rows[0].index(f"{name} version") for name in ("GC", "SDMA"))
    return {
        version: row[copies]
        for row in rows[1:]
        if len(row) > copies
        for version in re.findall(r"[\d.]+", row[graphics])
    }


def module(given: Mapping[Version, Source]) -> str:
    """The text of the module.

    Raises:
      ValueError: if a later source lacks what an earlier one knows.
    """
    told = {version: facts(source) for version, source in sorted(given.items())}
    numbers: dict[str, int] = {}
    beside: dict[str, str] = {}
    for version, fact in told.items():
        numbers |= fact.compute or {}
        for path in LISTS:
            beside |= pairs(given[version].read(path) or "GC version,SDMA version")
    of_number = {number: [block for block in numbers if numbers[block] == number] for number in ARCHITECTURES}
    loaded, computing = _loaded(told, of_number, beside), _computing(told)
    lines = [*_seen("GRAPHICS_SEEN", loaded), *_firsts("GRAPHICS", loaded), ""]
    lines += [*_seen("COMPUTE_SEEN", computing), *_firsts("COMPUTE", computing)]
    files = "``amdgpu_discovery.c``, ``kfd_device.c`` and the lists of chips"
    sources = "\n".join(f"  Linux {text_of(version)}: {given[version].name}" for version in told)
    return HEAD.format(files=files, sources=sources) + "\n".join(lines) + "\n"


EXPLAINED: Final = {
    "GRAPHICS_SEEN": '"""The versions whose amdgpu was at hand."""',
    "GRAPHICS": '"""The first of them that loads the graphics and copy blocks of each architecture."""',
    "COMPUTE_SEEN": '"""The versions whose amdkfd was at hand."""',
    "COMPUTE": '"""The first of them that has the number of each architecture."""',
}


def _seen(title: str, versions: Iterable[Version]) -> Iterator[str]:
    yield f"{title} = ("
    yield from (f"    {version}," for version in versions)
    yield ")"
    yield EXPLAINED[title]


def _firsts(title: str, known_in: Mapping[Version, Sequence[int]]) -> Iterator[str]:
    """The first version that knows each number.

    Raises:
      ValueError: if a later one does not.
    """
    first: dict[int, Version] = {}
    for version, numbers in known_in.items():
        if gone := sorted(set(first) - set(numbers)):
            raise ValueError(f"{title}: a later kernel lacks {gone}")
        first = {number: first.get(number, version) for number in numbers}
    yield f"{title} = {{"
    yield from (f"    {number}: {version}," for number, version in first.items())
    yield "}"
    yield EXPLAINED[title]


def _loaded(
    told: Mapping[Version, Facts], of_number: Mapping[int, Sequence[str]], beside: Mapping[str, str]
) -> dict[Version, list[int]]:
    def loads(fact: Facts, block: str) -> bool:
        copies = beside.get(block)
        return block in fact.graphics and (copies is None or copies in fact.copies)

    return {
        version: [number for number, found in of_number.items() if any(loads(fact, block) for block in found)]
        for version, fact in told.items()
    }


def _computing(told: Mapping[Version, Facts]) -> dict[Version, list[int]]:
    return {
        version: [number for number in ARCHITECTURES if number in fact.compute.values()]
        for version, fact in told.items()
        if fact.compute is not None
    }


def table() -> str:
    """A row for each span of versions: what is known from there on."""
    rows: dict[tuple[Version | None, Version], list[str]] = {}
    for number, found in ARCHITECTURES.items():
        span = known(number)
        rows.setdefault((span.absent, span.present), []).append(found.name)
    lines = ["| architectures | seen in Linux | not yet in |", "|---|---|---|"]
    for (absent, present), names in sorted(rows.items(), key=lambda row: (row[0][1], row[0][0] or (0, 0))):
        lines.append(f"| {', '.join(names)} | {text_of(present)} | {text_of(absent) if absent else '-'} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its table written anew."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def main(arguments: list[str]) -> int:
    """Writes the module from ``VERSION=SOURCE`` arguments, or, without any, the table of the page."""
    if not arguments:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    given: dict[Version, Source] = {}
    for argument in arguments:
        version, _, where = argument.partition("=")
        major, _, minor = version.partition(".")
        if not (major.isdigit() and minor.isdigit() and where):
            print(__doc__)
            return 2
        given[int(major), int(minor)] = Source(where)
    MODULE.write_text(module(given), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
