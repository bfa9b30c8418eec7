"""Schedule items to ExecItems: the runner of each step, and its buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tg_lazy import Ops, ScheduleItem

from ..device.registry import Device
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer, buffer_of
from ..steps.other import CustomOp, EmptyOp, ViewOp
from ..steps.runner import Runner
from ..steps.transfer import BufferCopy, BufferXfer
from ..telemetry.profiler import PROFILE, span
from .item import ExecItem


def lower(item: ScheduleItem, awake: int = 0) -> ExecItem:
    """The ExecItem of a schedule item: compiles its kernel if this process has not yet.

    Args:
      item: the step.
      awake: how many threads are awake to share its kernel.

    Raises:
      CompileError: if the kernel does not compile; the message names the file that keeps its source, and a note the
        line of the user's program that it stems from.
    """
    try:
        return lowered(item, awake)
    except Exception as error:
        tell_origin(error, item)
        raise


def tell_origin(error: Exception, item: ScheduleItem) -> None:
    if item.origin:
        error.add_note(f"in the step {item!r}, which stems from {item.origin}")


def lowered(item: ScheduleItem, awake: int = 0, shared: bool = False) -> ExecItem:
    if not PROFILE.value:
        return _lower_item(item, awake, shared)
    with span("lower", line=str(item.origin)):
        return _lower_item(item, awake, shared)


def _lower_item(item: ScheduleItem, awake: int, shared: bool) -> ExecItem:
    ast, origin = item.ast, item.origin
    bufs = [buffer_of(storage) for storage in item.bufs]
    device = bufs[0].device
    if ast.op is Ops.SINK:
        return ExecItem(get_runner(Device[device], ast, awake, shared), bufs, origin)
    if ast.op is Ops.COPY:
        return ExecItem(_copy_runner(bufs[0], bufs[1]), bufs, origin)
    if ast.op is Ops.BUFFER_VIEW:
        return ExecItem(ViewOp(ast.arg, device), bufs, origin)
    if ast.op is Ops.EMPTY:
        return ExecItem(EmptyOp(device), bufs, origin)
    if ast.op is Ops.CUSTOM and isinstance(ast.arg, Runner):
        return ExecItem(ast.arg, bufs, origin)
    if ast.op is Ops.CUSTOM:
        return ExecItem(CustomOp(ast.arg, device), bufs, origin)
    raise ValueError(f"a schedule item ends in SINK, COPY, BUFFER_VIEW, EMPTY or CUSTOM, not {ast.op.name}")


def _copy_runner(dest: Buffer, src: Buffer) -> BufferCopy:
    same_kind = dest.device.partition(":")[0] == src.device.partition(":")[0]
    return (BufferXfer if same_kind else BufferCopy)(src.nbytes, dest.device, src.device)


def lower_schedule(items: Iterable[ScheduleItem]) -> Iterator[ExecItem]:
    """Lowers schedule items one by one, as they are asked for."""
    for item in items:
        yield lower(item)
