"""Which instructions tests execute, by their names: a plugin of pytest, ``-p tg_hcq.simulate.amd.testing.reached``.

Each process of the run writes a file of its own into the folder ``--reached``, with a line ``ARCH NAME`` for each.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from ...engine.code import Code
from ...engine.state import Status
from ...engine.testing import Bench
from ...engine.wave import Wave

_SUFFIX = re.compile(r"(_e32|_e64|_dpp|_sdwa|_e64_dpp)$")
_names: set[tuple[str, str]] = set()


def _of_text(text: str) -> Iterable[str]:
    """The mnemonics of an instruction, or of a pair."""
    return (_SUFFIX.sub("", half.split()[0]) for half in text.split(" :: ") if half)


class _Options(Protocol):
    def addoption(self, *names: str, **how: object) -> None: ...


class _Config(Protocol):
    def getoption(self, name: str) -> object: ...


def pytest_addoption(parser: _Options) -> None:
    """Takes the folder."""
    parser.addoption("--reached", help="the folder into which the names of executed instructions are written")


def pytest_configure() -> None:
    """Begins to note what machines come to, and what benches execute."""
    enter, step = Code.enter, Bench.step

    @functools.wraps(enter)
    def entering(code: Code, pc: int) -> tuple[int, int, int, int]:
        found = enter(code, pc)
        _names.update((code.engine.instructions.name, name) for name in _of_text(code.text(pc)))
        return found

    @functools.wraps(step)
    def stepping(
        bench: Bench, wave: Wave, handler: str, operands: tuple[int, ...], immediate: int = 0,
        parts: Sequence[int] = (),
    ) -> Status:  # fmt: skip
        native = bench.engine
        _names.add((native.instructions.name, handler.partition(".")[0]))
        if parts:
            halves = {native.addresses[name]: name for name in native.instructions.handlers if native.has(name)}
            for part in parts:
                _names.add((native.instructions.name, halves[part].partition(".")[0].replace("v_", "v_dual_", 1)))
        return step(bench, wave, handler, operands, immediate, parts)

    Code.enter, Bench.step = entering, stepping  # type: ignore[method-assign, assignment]


def pytest_unconfigure(config: _Config) -> None:
    """Writes the file."""
    lines = sorted(f"{arch} {name}\n" for arch, name in _names)
    (Path(str(config.getoption("--reached"))) / f"{os.getpid()}.txt").write_text("".join(lines), encoding="utf-8")


def read(folder: Path) -> dict[str, set[str]]:
    """What files say: names by architecture."""
    found = dict[str, set[str]]()
    for file in folder.glob("*.txt"):
        for line in file.read_text(encoding="utf-8").splitlines():
            arch, name = line.split()
            found.setdefault(arch, set()).add(name)
    return found


__all__ = ["pytest_addoption", "pytest_configure", "pytest_unconfigure", "read"]
