"""Work-groups: memory that their items share, and barriers."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import ConstType, DType, dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_shape import ShapeTracker

from ..execution.item import ExecItem
from ..kernels.runner import CompiledRunner
from ..memory.buffer import Buffer
from .base import Group
from .kernels import buffer_with, kernel, matmul, matrix_product, unpack


class LocalMemory(Group):
    """Reductions that the items of a group do together."""

    group = "local memory"

    def run_with(
        self, sink: LazyOp, actions: str, inputs: Sequence[Buffer], size: int, dtype: DType
    ) -> list[ConstType]:
        """The output of a kernel to which these actions were applied."""
        from tg_codegen import compile_ast, parse_action
        from tg_codegen.ir.uop import UOps

        renderer = self.opened.renderer
        assert renderer is not None
        steps = [parse_action(action) for action in actions.split(";")]
        spec = compile_ast(sink, renderer, actions=steps)
        used = {u.op for u in spec.uops}
        assert {UOps.BARRIER, UOps.SCRATCH} <= used, f"{actions}: no barrier"
        runner = CompiledRunner(spec, self.opened)
        out = Buffer(self.device, size, dtype).allocate()
        for _ in range(3):  # what a work-group leaves behind must not be seen by the next
            ExecItem(runner, [out, *inputs]).run(wait=True)
        return unpack(out.as_buffer(), dtype)

    def groups_there(self) -> None:
        """Ends the test on devices without work-groups."""
        renderer = self.opened.renderer
        self.need(renderer is not None and renderer.target.shared_bytes, "memory that work-items share")

    def test_sums_of_a_group(self) -> None:
        """Rows that a group sums, also where the last round is partial."""
        self.groups_there()
        for dtype in (dtypes.float32, dtypes.int32, dtypes.float16, dtypes.uint8):
            if dtype not in self.dtypes:
                continue
            for columns, width in ((64, 16), (100, 16), (33, 32), (7, 4)):
                rows = 5
                values: list[ConstType] = [dtypes.as_const(i % 3, dtype) for i in range(rows * columns)]
                x = ast.load(1, dtype, ShapeTracker.from_shape((rows, columns)))
                sink = kernel([(ast.reduce(x, Ops.ADD, (1,)), rows)], [(dtype, rows * columns)])
                buffer = buffer_with(self.device, values, dtype)
                got = self.run_with(sink, f"split(r0, {width}, GROUP);mark(i0, GLOBAL)", [buffer], rows, dtype)
                want = [dtypes.as_const(sum(values[i * columns : (i + 1) * columns]), dtype) for i in range(rows)]
                self.check(f"sum of {columns} x {dtype.name} by a group of {width}", got, want)

    def test_two_reductions(self) -> None:
        """A second reduction that needs the first: two rounds through shared memory."""
        self.groups_there()
        rows, columns = 3, 48
        values = [float(i % 5) for i in range(rows * columns)]
        x = ast.load(1, dtypes.float32, ShapeTracker.from_shape((rows, columns)))
        total = ast.reduce(x, Ops.ADD, (1,))
        spread = ast.view(total, ShapeTracker.from_shape((rows, 1)).expand((rows, columns)))
        sink = kernel([(ast.reduce(ast.alu(Ops.MUL, x, spread), Ops.MAX, (1,)), rows)], [(dtypes.float32, len(values))])
        buffer = buffer_with(self.device, values, dtypes.float32)
        actions = "split(r0, 16, GROUP);split(r1, 16, GROUP);mark(i0, GLOBAL)"
        got = self.run_with(sink, actions, [buffer], rows, dtypes.float32)
        parts = [values[i * columns : (i + 1) * columns] for i in range(rows)]
        self.check("two reductions", got, [max(part) * sum(part) for part in parts])

    def test_matmul_of_groups(self) -> None:
        """Groups of two dimensions: outputs along one, parts of the sum along the other."""
        self.groups_there()
        n, k, m = 6, 40, 12
        a = [float(self.random.randint(-4, 4)) for _ in range(n * k)]
        b = [float(self.random.randint(-4, 4)) for _ in range(k * m)]
        sink = matmul(n, k, m)
        buffers = [buffer_with(self.device, a, dtypes.float32), buffer_with(self.device, b, dtypes.float32)]
        actions = "split(i1, 4, LOCAL);mark(i1, GLOBAL);mark(i0, GLOBAL);split(r0, 8, GROUP)"
        got = self.run_with(sink, actions, buffers, n * m, dtypes.float32)
        want = matrix_product(a, b, n, k, m)
        self.check("matmul", got, want)
