"""Launch: how a loaded program runs once; and the base of programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from .limits import ONE, Sizes, runs_at_all, threads_of

if TYPE_CHECKING:
    from .compiled import Program

M = TypeVar("M")
"""The memory that a device's allocator hands out."""


class Launch(NamedTuple):
    """How a program runs once.

    Attributes:
      groups: work-groups along x, y, z; on a CPU the number of threads, then ones.
      items: work-items of a group along x, y, z.
      vals: values of the variables, int32.
      wait: wait for the end, and measure.
    """

    groups: Sizes = ONE
    items: Sizes = ONE
    vals: Sequence[int] = ()
    wait: bool = False

    @property
    def idle(self) -> float | None:
        """What a launch that has nothing to do returns."""
        return 0.0 if self.wait else None

    def runs(self, what: str) -> bool:
        """Whether there are any work-groups. ``what`` begins the message of an error: the device and the kernel.

        Raises:
          DeviceError: if the sizes are none (:func:`~tg_runtime.device.limits.runs_at_all`).
        """
        return runs_at_all(what, self.groups, self.items)

    def threads(self, what: str, most: int) -> int:
        """How many threads of a CPU it asks for.

        Raises:
          DeviceError: for more than ``most``, or other sizes (:func:`~tg_runtime.device.limits.threads_of`).
        """
        return threads_of(what, self.groups, self.items, most)


class LoadedProgram(ABC, Generic[M]):
    """A program loaded on a device. It is called with memory and sizes, or given a :class:`Launch`.

    Attributes:
      outs: which of its buffers it writes; None if nobody knows, and it may write any.
    """

    outs: Sequence[int] | None = None

    @abstractmethod
    def launch(self, bufs: Sequence[M], how: Launch) -> float | None:
        """Runs it, or queues it behind what was queued before.

        Args:
          bufs: memory of the device's allocator, in the order of the program's arguments.
          how: sizes, values, and whether to wait.

        Returns:
          Seconds that it ran, if it was waited for.

        Raises:
          DeviceError: if the sizes are none, the driver refuses the launch, or, if it is waited for, the program
            failed.
        """

    def __call__(
        self,
        *bufs: M,
        global_size: Sizes = ONE,
        local_size: Sizes = ONE,
        vals: Sequence[int] = (),
        wait: bool = False,
    ) -> float | None:
        """:meth:`launch` with everything by name.

        Args:
          bufs: memory of the device's allocator.
          global_size: work-groups along x, y, z.
          local_size: work-items of a group along x, y, z.
          vals: values of the variables, int32.
          wait: wait for the end, and measure.

        Returns:
          Seconds that it ran, if ``wait``.

        Raises:
          DeviceError: as for :meth:`launch`.
        """
        return self.launch(bufs, Launch(global_size, local_size, vals, wait))


def launcher(program: Program) -> Callable[[Sequence[Any], Launch], float | None]:
    """What launches a program, of a device here or of one that only has ``__call__``."""
    if isinstance(program, LoadedProgram):
        return program.launch

    def by_name(bufs: Sequence[Any], how: Launch) -> float | None:
        groups, items, vals, wait = how
        return program(*bufs, global_size=groups, local_size=items, vals=vals, wait=wait)

    return by_name
