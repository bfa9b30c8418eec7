"""HCQProgram: a kernel that is loaded on a queue-driven device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tg_dtype import dtypes
from tg_runtime import PROFILE
from tg_runtime.device.launch import Launch, LoadedProgram
from tg_shape import sint

from .args import ArgsLayout, HCQArgsState
from .buffer import HCQBuffer
from .compiled import HCQCompiled
from .eager import RecordedLaunch
from .profiling import timed

_MOST_RECORDED: Final = 16
"""Launches that a program remembers: one for each size of its groups."""


class HCQProgram(LoadedProgram[HCQBuffer]):
    """A kernel and the layout of its arguments. What makes it run is the subclass's, and its queue's.

    A launch is recorded when it first happens, and replayed from then on: only what differs is written.

    Attributes:
      device: where it is loaded.
      name: the kernel's name.
      layout: the layout of its argument block; None for buffers and then int32 scalars, as many as it is called with.
      most_groups: the most work-groups along x, y and z that its queue's commands can say.
    """

    most_groups: tuple[int, int, int] = (2**31 - 1, 2**31 - 1, 2**31 - 1)

    def __init__(self, device: HCQCompiled, name: str, layout: ArgsLayout | None = None) -> None:
        self.device, self.name, self.layout = device, name, layout
        self._recorded: dict[tuple[int, int, tuple[int, int, int]], RecordedLaunch] = {}
        # the bits of a number with a fraction are no value of a variable
        self._recordable = layout is None or all(dtype.kind != "float" for dtype in layout.scalars)
        device.loaded.add(self)

    def code(self) -> tuple[int, int]:
        """Where the device finds the kernel's instructions: address and size; (0, 0) if that is not known."""
        return 0, 0

    def layout_of(self, buffers: int, scalars: int) -> ArgsLayout:
        """The layout of the argument block of a call with so many buffers and scalars."""
        return ArgsLayout(buffers, [dtypes.int32] * scalars) if self.layout is None else self.layout

    def fill_args(
        self, bufs: Sequence[HCQBuffer], vals: Sequence[sint | float] = (), memory: HCQBuffer | None = None
    ) -> HCQArgsState:
        """An argument block: in ``memory``, or in a short-lived one, for one submission under the timeline's lock.

        Raises:
          ValueError: if the arguments are not those of the layout.
        """
        layout = self.layout_of(len(bufs), len(vals))
        block = self.device.kernargs.alloc(layout.nbytes, layout.alignment) if memory is None else memory
        try:
            return HCQArgsState(block, layout, bufs, vals, self.outs)
        except ValueError as error:
            raise ValueError(f"{self.name} on {self.device.device}: {error}") from None

    def launch(self, bufs: Sequence[HCQBuffer], how: Launch) -> float | None:
        """Launches the kernel after everything that was submitted before.

        Returns:
          where it is waited for, the seconds it ran by the device's clock; else None.

        Raises:
          ValueError: if the arguments are not those of the layout; nothing is submitted then.
          DeviceError: if a size is negative, or a group has no work-items.
          DeviceFault: if the device is stopped, or stops while it is waited for.
        """
        groups, items, vals, wait = how
        if not how.runs(f"{self.device.device}: {self.name}"):
            return how.idle
        if wait or PROFILE.value or not self._recordable:
            return self._launch_alone(bufs, how)
        key = len(bufs), len(vals), items
        try:
            recorded = self._recorded.get(key)
            if recorded is None:
                if len(self._recorded) == _MOST_RECORDED:
                    self._recorded.clear()
                recorded = self._recorded[key] = RecordedLaunch(self, *key)
            recorded(bufs, groups, vals)
        except (TypeError, ValueError):
            return self._launch_alone(bufs, how)  # which says it in the launch's own words
        return None

    def _launch_alone(self, bufs: Sequence[HCQBuffer], how: Launch) -> float | None:
        """A launch that is put together for once, with timestamps around it where somebody wants the time."""
        device = self.device
        groups, items, vals, wait = how
        start, stop = (device.new_signal(), device.new_signal()) if wait else (None, None)
        with device.submission() as queue:
            args = self.fill_args(bufs, vals)
            if start is not None:
                queue.timestamp(start)
            with timed(device, queue, "compute queue"):
                queue.exec(self, args, groups, items)
            if stop is not None:
                queue.timestamp(stop)
        if start is None or stop is None:
            return None
        device.synchronize()
        return (stop.timestamp - start.timestamp) * 1e-6

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} on {self.device.device}>"
