"""Names that older documents of this family have for what has another name here.

``docs/seed-names.md`` lists every name of those documents. The classes below are the same objects under both names, and
the methods ``get_linearizer``, ``to_program`` and ``get_runner`` of a device end here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_lazy import LazyOp

from ..device.compiled import Compiled
from ..steps.runner import Runner
from .programs import get_runner, get_spec
from .runner import CompiledRunner, InterpretedRunner

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec

JITRunner = Runner
CompiledASTRunner = CompiledRunner
InterpretedASTRunner = InterpretedRunner


class MadeHere:
    """Kernels for devices, made by this room."""

    def linearized(self, device: Compiled, ast: LazyOp) -> ProgramSpec:
        """The kernel of ``ast`` with its UOps, which are neither kept on disk nor in memory: they are made again."""
        spec = get_spec(device, ast)
        if spec.uops:
            return spec
        from tg_codegen import compile_ast, parse_action

        from .generate import renderer_of

        return compile_ast(ast, renderer_of(device), actions=[parse_action(action) for action in spec.actions])

    def loaded(self, device: Compiled, kernel: ProgramSpec) -> CompiledRunner:
        """The kernel, compiled and loaded."""
        return CompiledRunner(kernel, device)

    def runner(self, device: Compiled, ast: LazyOp) -> Runner:
        """The runner of ``ast``, from the cache of the device.

        Example:
          >>> from tg_dtype import dtypes
          >>> from tg_lazy import Ops, ast
          >>> from tg_runtime import Buffer, Device
          >>> from tg_shape import ShapeTracker
          >>> row = ShapeTracker.from_shape((4,))
          >>> total = ast.reduce(ast.load(1, dtypes.float32, row), Ops.ADD, (0,))
          >>> buffers = (ast.BufferArg(dtypes.float32, 1), ast.BufferArg(dtypes.float32, 4))
          >>> kernel = ast.sink((ast.store(0, ShapeTracker.from_shape((1,)), total),), buffers)
          >>> x = Buffer("CPU", 4, dtypes.float32).copyin(memoryview(b"\\0\\0\\x80\\x3f" * 4))
          >>> out = Buffer("CPU", 1, dtypes.float32)
          >>> seconds = Device["CPU"].get_runner(kernel).exec([out, x])
          >>> out.as_buffer().cast("f")[0]
          4.0
        """
        return get_runner(device, ast)


Compiled.kernels = MadeHere()
