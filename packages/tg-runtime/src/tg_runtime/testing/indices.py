"""Index arithmetic beyond 2^31 elements: run where there is so much memory, read off the kernel everywhere."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyOp, ast
from tg_shape import ShapeTracker

from ..device.allocator import BufferOptions
from ..execution.item import ExecItem
from ..kernels.programs import get_runner
from ..memory.buffer import Buffer
from .base import Absent, Group
from .kernels import unpack

_FAR = 2**31 + 2**20
_STEP = 2**29


class Indices(Group):
    """Elements that no int32 can count."""

    group = "indices > 2^31"

    def kernels(self) -> tuple[LazyOp, LazyOp]:
        """Two kernels: 5 elements, 2^29 apart, are written; the same elements are read."""
        far = ShapeTracker.from_shape((_FAR,)).shrink(((77, _FAR),)).stride((_STEP,))
        near = ShapeTracker.from_shape((5,))
        big, small = ast.BufferArg(dtypes.uint8, _FAR), ast.BufferArg(dtypes.uint8, 5)
        write = ast.sink((ast.store(0, far, ast.load(1, dtypes.uint8, near)),), (big, small))
        read = ast.sink((ast.store(0, near, ast.load(1, dtypes.uint8, far)),), (small, big))
        return write, read

    def test_index_types(self) -> None:
        """No index of the kernels, and no part of one, leaves its integer type."""
        renderer = self.opened.renderer
        self.need(renderer, "index types: it is interpreted")
        assert renderer is not None
        from tg_codegen import compile_ast
        from tg_codegen.ir.bounds import wrapping_indices

        for sink in self.kernels():
            for actions in (None, ()):
                found = wrapping_indices(compile_ast(sink, renderer, actions=actions).uops)
                assert not found, f"{self.device}: indices of 2^31 elements are computed in {found[0]!r}"

    def test_far_elements(self) -> None:
        """What is written beyond 2^31 elements is read there."""
        self.need(self.opened.executes, "memory")
        try:
            big = Buffer(self.device, _FAR, dtypes.uint8, options=BufferOptions(nolru=True)).allocate()
        except MemoryError as error:
            raise Absent(f"{self.device} has no buffers of 2^31 elements: {error}") from None
        write, read = self.kernels()
        values = memoryview(bytes((3, 1, 4, 1, 5)))
        source, out = Buffer(self.device, 5, dtypes.uint8).copyin(values), Buffer(self.device, 5, dtypes.uint8)
        ExecItem(get_runner(self.opened, write), [big, source.ensure_allocated()]).run(wait=True)
        ExecItem(get_runner(self.opened, read), [out.ensure_allocated(), big]).run(wait=True)
        self.check("elements beyond 2^31", unpack(out.as_buffer(), dtypes.uint8), [3, 1, 4, 1, 5])
