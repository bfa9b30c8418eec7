"""Writing to devices that hold memory and run nothing, files foremost: a range of memory is copied to, at once."""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.lazybuffer import byte_range
from tg_lazy.ops import LEAVES
from tg_runtime import BufferCopy, ExecItem, buffer_of, capturing
from tg_runtime.host.interrupts import Uninterrupted
from tg_shape import prod

from ..host.transfer import runs_nothing
from .realization import realize_all, realize_readers, spare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .home import Memory

HOST = "CPU"  # where values are made that the device cannot make


def write(home: Memory, target: LazyBuffer, value: LazyBuffer, what: str) -> None:
    """Copies ``value``, from any device, to the memory that ``target`` shows.

    Nothing is written before everything is known to fit, and the value is computed. Who has yet to read the old
    content reads it before.

    Args:
      home: the memory.
      target: a range of it, row-major, on a device that runs nothing.
      value: of the target's shape and dtype.
      what: the operation, for messages.

    Raises:
      ValueError: if the target is no such range, or the value is a computation on a device that runs nothing.
      RuntimeError: if TinyJit records: a replay would not write again.
      DeviceError: if the memory is read-only, or shorter than the tensor.
    """
    if capturing():
        raise RuntimeError(f"{what}: {target.device} was written to while TinyJit records; a replay would not do it")
    if prod(target.shape) == 0:
        return
    place = byte_range(target)
    if place is None:
        raise ValueError(
            f"{what}: {target.device} runs no kernels: of shape {target.shape}, only a contiguous range of memory can "
            f"be written; compute the whole on another device, as x = t.to({HOST!r}), and assign that"
        )
    source = _computed(value, target, what)
    base = target.base
    realize_all([source, base])
    spare(base)
    realize_readers(base)
    begin = byte_range(source)
    assert begin is not None and base.storage is not None and source.base.storage is not None
    dest = buffer_of(base.storage).view(int(prod(target.shape)), target.dtype, place)
    src = buffer_of(source.base.storage).view(dest.size, target.dtype, begin)
    copy = ExecItem(BufferCopy(dest.nbytes, dest.device, src.device), [dest, src])
    with Uninterrupted():
        copy.run()
        home.rewritten()


def _computed(value: LazyBuffer, target: LazyBuffer, what: str) -> LazyBuffer:
    """The value as a range of memory that is none of the target's."""
    base = value.base
    if base.op in LEAVES and runs_nothing(value.device):
        value = value.copy_to(HOST)
    elif base.op is Ops.COPY and not base.is_realized and value.device == target.device:
        # x.to("DISK:p"), which would make the copy first, at the beginning of the file that is the target
        if not value.is_whole:
            raise ValueError(f"{what}: a part of a copy to {value.device}, which is not made yet; take the part first")
        return base.srcs[0].reshape(value.shape).in_memory()
    elif runs_nothing(value.device):
        if base.op in (Ops.BUFFER, Ops.EMPTY, Ops.COPY) and byte_range(value) is not None:
            return value.copy_to(HOST) if value.device == target.device else value
        raise ValueError(f"{what}: a value that {value.device} would compute, which runs no kernels; use .to() first")
    return value.in_memory()
