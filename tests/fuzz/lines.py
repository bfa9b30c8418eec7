"""Programs of lines that go wrong: what a fuzzer found, and the lines of it that matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A program that goes wrong.

    Attributes:
      seed: of the program.
      lines: the lines that matter.
      what: what goes wrong.
    """

    seed: int
    lines: list[str]
    what: str

    def __str__(self) -> str:
        return "\n".join([f"# seed {self.seed}: {self.what}", *self.lines])


def shortened(lines: Sequence[str], wrong: Callable[[list[str]], str]) -> list[str]:
    """As few of the lines as still go wrong.

    Args:
      lines: of the program.
      wrong: what goes wrong in some lines; empty if nothing does.
    """
    best, before = list(lines), 0
    while before != len(best):
        before = len(best)
        for i in reversed(range(len(best))):
            fewer = best[:i] + best[i + 1 :]
            if wrong(fewer):
                best = fewer
    return best


def found(seed: int, lines: Sequence[str], wrong: Callable[[Sequence[str]], str]) -> Finding | None:
    """What goes wrong in the program of a seed, by as few lines as that takes."""
    if not wrong(lines):
        return None
    short = shortened(lines, wrong)
    return Finding(seed, short, wrong(short))
