"""Updates: elements at computed places, combined with values in their order."""

from __future__ import annotations

from collections.abc import Callable

from tg_dtype import ConstType, dtypes
from tg_lazy import Ops, ast
from tg_shape import ShapeTracker

from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from .base import Group
from .kernels import buffer_with, unpack

_COMBINE: dict[Ops | None, Callable[[int, int], int]] = {
    Ops.ADD: lambda old, new: old + new, Ops.MUL: lambda old, new: old * new, Ops.MAX: max,
    None: lambda old, new: new,
}  # fmt: skip


class Updates(Group):
    """Elements at computed places."""

    group = "updates"

    def test_rows(self) -> None:
        """Rows of a table are combined with values: one is named twice, one by nobody, and some are out of range."""
        for values, width, places in ((7, 1, 3), (9, 5, 4), (13, 16, 6), (3, 33, 8)):
            for op in _COMBINE:
                self.update(values, width, places, op, keep=False)

    def test_what_was_found(self) -> None:
        """Each value learns what was there before it came."""
        for values, width, places in ((11, 1, 3), (5, 6, 2)):
            for op in _COMBINE:
                self.update(values, width, places, op, keep=True)

    def update(self, values: int, width: int, places: int, op: Ops | None, keep: bool) -> None:
        """One update of ``places`` rows of ``width``, at indices that a kernel computes."""
        size = places * width
        whole = size + values * width * keep
        table: list[int] = [n % 5 - 2 for n in range(whole)]
        new: list[int] = [n * 7 % 11 - 5 for n in range(values * width)]
        index = [(n * 5 + 1) % (places + 3) - 1 for n in range(values)]
        own = ShapeTracker.from_shape((values, width))
        where = ShapeTracker.from_shape((whole,)).shrink(((0, size),)).reshape((places, width)).permute((1, 0))
        where = where.reshape((1, width, places)).expand((values, width, places))
        found = ShapeTracker.from_shape((whole,)).shrink(((size, whole),)).reshape((values, width)) if keep else None
        at = ast.load(2, dtypes.int32, ShapeTracker.from_shape((values, 1)).expand((values, width)))
        at = ast.alu(Ops.SUB, at, ast.const(1, dtypes.int32, (values, width)))
        update = ast.update(0, where, ast.load(1, dtypes.int32, own), at, op, found)
        sizes = (whole, values * width, values)
        sink = ast.sink((update,), tuple(ast.BufferArg(dtypes.int32, n) for n in sizes))
        out, *inputs = (
            buffer_with(self.device, list[ConstType](content), dtypes.int32)
            for content in (table, new, [i + 1 for i in index]))
        ExecItem(get_runner(self.opened, sink), [out, *inputs]).run(wait=True)
        for n, i in enumerate(index):
            for column in range(width):
                element, old = i * width + column, 0
                if 0 <= i < places:
                    old = table[element]
                    table[element] = _COMBINE[op](old, new[n * width + column])
                if keep:
                    table[size + n * width + column] = old
        name = "replaced" if op is None else op.name
        self.check(f"{name}, {values} of {places} rows of {width}", unpack(out.as_buffer(), dtypes.int32), table)
