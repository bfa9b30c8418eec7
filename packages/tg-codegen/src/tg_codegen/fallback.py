"""Plans that fail: the plain kernel runs in their place, and it is told and counted.

A plan is a guess at what is fast. Where the heuristic raises, or its loops cannot be emitted, rendered, or held by the
machine, the kernel as it was stated is right and merely slow. That is a defect of the planner, never of the user's
program: ``DEBUG=1`` prints it, tests and ``hatch run sweep`` count it, and ``FALLBACK=0`` raises it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tg_lazy import DEBUG, ContextVar

from .nest.kernel import Kernel
from .nest.text import print_kernel

FALLBACK: ContextVar[int] = ContextVar("FALLBACK", 1)
"""Whether the plain kernel runs where a plan fails; with 0 the plan's error is raised."""
KEPT = 32
"""Most plans that failed of which more is known than that they did."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A plan that failed.

    Attributes:
      kernel: the kernel's plain loops.
      error: what went wrong, and after which actions.
    """

    kernel: str
    error: str

    def __str__(self) -> str:
        return f"{self.error}\n{self.kernel}"


class Fallbacks:
    """Plans that failed in this process.

    Attributes:
      count: how many.
      latest: the last of them.

    Example:
      >>> Fallbacks().count
      0
    """

    def __init__(self) -> None:
        self.count = 0
        self.latest: deque[Fallback] = deque(maxlen=KEPT)

    def tell(self, kernel: Kernel, error: Exception) -> Fallback:
        """Counts a plan that failed, and tells of it at ``DEBUG=1``.

        Raises:
          Exception: where ``FALLBACK`` is 0, ``error`` itself.
        """
        found = Fallback(print_kernel(kernel), "\n".join([f"{type(error).__name__}: {error}", *notes(error)]))
        self.count += 1
        self.latest.append(found)
        if not FALLBACK.value:
            raise error
        if DEBUG.value >= 1:
            print(f"a plan failed, and the plain kernel runs in its place: {found}")
        return found


fallbacks = Fallbacks()
"""The plans that failed in this process."""


def notes(error: BaseException) -> list[str]:
    """What was noted on an error on its way."""
    return list(getattr(error, "__notes__", ()))
