"""RecordedLaunch: one launch of a program, recorded once and replayed with other buffers, sizes and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from tg_dtype import DType
from tg_shape import Variable, sint

from .args import ArgsLayout, HCQArgsState
from .buffer import HCQBuffer
from .compiled import HCQCompiled
from .fileio import MMIO

_ADDRESS_MAX: Final = 2**64 - 1
_BLOCK: Final = Variable("kernargs", 0, _ADDRESS_MAX)


class Recordable(Protocol):
    """What is asked of a program."""

    name: str
    device: HCQCompiled
    outs: Sequence[int] | None

    @property
    def most_groups(self) -> tuple[int, int, int]:
        """The most work-groups along x, y and z."""

    def layout_of(self, buffers: int, scalars: int) -> ArgsLayout:
        """The layout of the argument block of a call."""

    def fill_args(self, bufs: Sequence[HCQBuffer], vals: Sequence[sint], memory: HCQBuffer) -> HCQArgsState:
        """An argument block in ``memory``."""


class RecordedLaunch:
    """A launch in a submission of its own. Everything about it is a variable but the number of arguments and ``items``.

    Its arguments are patched in a draft, which each launch copies to a short-lived block: launches need not wait for
    those before them.

    Args:
      program: what to launch; the caller keeps it alive.
      buffers: number of buffers.
      scalars: number of scalars, which are integers.
      items: work-items of a group.
    """

    def __init__(self, program: Recordable, buffers: int, scalars: int, items: tuple[int, int, int]) -> None:
        self._device = device = program.device
        layout = program.layout_of(buffers, scalars)
        self._nbytes, self._alignment = layout.nbytes, layout.alignment
        self._outs = range(buffers) if program.outs is None else program.outs
        ring = device.kernargs.memory
        assert isinstance(ring.address, int)
        self._block, self._host = ring.address, ring.host_view().address
        addresses = [Variable(f"buffer{i}", 0, _ADDRESS_MAX) for i in range(buffers)]
        values = [Variable(f"scalar{i}", *_limits(dtype)) for i, dtype in enumerate(layout.scalars)]
        x, y, z = (Variable(f"groups{i}", 1, most) for i, most in enumerate(program.most_groups))
        self._variables = (_BLOCK, x, y, z, *addresses, *values)
        draft = HCQBuffer(_BLOCK, self._nbytes, MMIO.of(bytearray(self._nbytes)))
        args = program.fill_args([HCQBuffer(address, 0) for address in addresses], values, draft)
        self._queue = device.compute_queue()
        with device.timeline.recording(self._queue) as queue:
            queue.exec(program, args, (x, y, z), items)
        self._queue.complete(device).release()
        self._draft = draft  # what is patched

    def __call__(self, bufs: Sequence[HCQBuffer], groups: Sequence[int], vals: Sequence[int]) -> None:
        """Launches it once.

        Raises:
          ValueError: if there are other numbers of arguments, or a value does not fit; nothing is submitted then.
          DeviceFault: if the device is stopped.
        """
        device = self._device
        with device.timeline.lock:
            at = device.kernargs.place(self._nbytes, self._alignment)
            self._queue.direct(0, self._host + at)
            values = (self._block + at, *groups, *[buffer.address for buffer in bufs], *vals)
            named = dict(zip(self._variables, values, strict=True))
            written = [bufs[index] for index in self._outs]
            device.timeline.replay(self._queue, named, written)  # type: ignore[arg-type]


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype.kind == "bool":
        return 0, 1
    least = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return least, least + (1 << dtype.bits) - 1
