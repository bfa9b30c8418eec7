"""HCQProgram: a kernel that is loaded on a queue-driven device."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import dtypes
from tg_runtime.device.launch import Launch, LoadedProgram
from tg_shape import sint

from .args import ArgsLayout, HCQArgsState
from .buffer import HCQBuffer
from .compiled import HCQCompiled
from .profiling import timed


class HCQProgram(LoadedProgram[HCQBuffer]):
    """A kernel and the layout of its arguments. What makes it run is the subclass's, and its queue's.

    Attributes:
      device: where it is loaded.
      name: the kernel's name.
      layout: the layout of its argument block; None for buffers and then int32 scalars, as many as it is called with.
    """

    def __init__(self, device: HCQCompiled, name: str, layout: ArgsLayout | None = None) -> None:
        self.device, self.name, self.layout = device, name, layout

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
        block = self.device.kernargs.alloc(layout.nbytes) if memory is None else memory
        try:
            return HCQArgsState(block, layout, bufs, vals)
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
        device = self.device
        groups, items, vals, wait = how
        if not how.runs(f"{device.device}: {self.name}"):
            return how.idle
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
