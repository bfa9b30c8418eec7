"""Runners of kernels: a program compiled, loaded and launched, or an AST that an interpreted device executes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from tg_lazy import DEBUG, LazyOp, Ops
from tg_lazy.ast.reach import doubts
from tg_shape import Expr, sint, sym_eval

from ..device.compiled import Compiled, Interpreted
from ..device.launch import Launch, LoadedProgram, launcher
from ..device.limits import check_limits
from ..errors import DeviceError
from ..memory.buffer import Buffer
from ..steps.runner import Runner, Vars
from ..telemetry.profiler import span
from .listing import show_source

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec


class CompiledRunner(Runner):
    """A rendered kernel, compiled and loaded.

    Attributes:
      spec: the kernel.
      program: the loaded program.
      launch: what launches it.
      ast: what it was generated from; None if nobody told.

    Args:
      spec: the kernel.
      device: where it will run.
      cached: take the binary from the cache on disk, and put it there.
      lib: the binary, where it is made already.
      ast: what it was generated from.

    Raises:
      DeviceError: if the kernel is beyond the limits of the device's work-groups, or the device runs no kernels.
      CompileError: if the device's compiler rejects the kernel.
    """

    def __init__(
        self, spec: ProgramSpec, device: Compiled, cached: bool = True, lib: bytes | None = None,
        ast: LazyOp | None = None,
    ) -> None:  # fmt: skip
        super().__init__(spec.name, device.device, spec.estimates.flops, spec.estimates.mem)
        self.spec, self.ast = spec, ast
        if device.compiler is None or device.runtime is None:
            raise DeviceError(f"{device.device} holds memory only: it runs no kernels ({spec.name})")
        if device.renderer is not None:
            check_limits(spec, device.renderer, device.device)
        compiler = device.compiler
        if DEBUG.value >= 4 and cached:
            show_source(spec)
        if lib is None:
            with span("compile", kernel=spec.name):
                lib = compiler.compile_cached(spec.src) if cached else compiler.compile(spec.src)
        self.lib = lib
        if DEBUG.value >= 7 and cached:
            print(compiler.disassemble(self.lib))
        try:
            self.program = device.runtime(spec.name, self.lib)
        except Exception:  # a loader may raise anything
            # a binary from the disk may fail to load though its checksum is right: compile it again, and keep that one
            compiler.forget(spec.src)
            made = compiler.compile_cached(spec.src) if cached else compiler.compile(spec.src)
            if made == self.lib:
                raise
            self.lib = made
            self.program = device.runtime(spec.name, self.lib)
        if isinstance(self.program, LoadedProgram):
            self.program.outs = spec.outs
        self.vars = spec.vars
        self.doubts = doubts(ast) if spec.vars and ast is not None else ()
        self.self_timed = device.self_timed
        self.in_place = bool(set(spec.outs) & set(spec.ins))
        # a CPU's threads are its work-groups
        self.global_size: tuple[sint, sint, sint] = (spec.threads, 1, 1) if spec.threads > 1 else spec.global_size
        self.local_size = spec.local_size
        self.symbolic = any(isinstance(g, Expr) for g in self.global_size)
        self.launch = launcher(self.program)
        # a launch that no variable changes is made once
        self._always = None if self.symbolic or self.vars else Launch(self.launch_size({}), self.local_size)

    def placed(self, values: Vars, ast: LazyOp) -> CompiledRunner:
        """The runner whose variables have these values for good: the kernel that ``ast`` is."""
        found = copy(self)
        found.ast, found.vars, found.doubts, found.first_run = ast, (), (), True
        given = [values[v] for v in self.vars]
        found._always = Launch(self.launch_size(values), self.local_size, given)
        found.global_size, found.symbolic = found._always.groups, False
        return found

    def launch_size(self, var_vals: Vars) -> tuple[int, int, int]:
        """Work-groups along x, y, z for these values of the variables."""
        if not self.symbolic:
            return self.global_size  # type: ignore[return-value]
        x, y, z = (sym_eval(g, var_vals) for g in self.global_size)
        return x, y, z

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Launches the kernel."""
        return self.launch([b.opaque for b in bufs], self.how(var_vals, wait))

    def how(self, var_vals: Vars, wait: bool = False) -> Launch:
        """Sizes and values of a launch with these values of the variables."""
        if self._always is not None:
            return self._always._replace(wait=True) if wait else self._always
        return Launch(self.launch_size(var_vals), self.local_size, [var_vals[v] for v in self.vars], wait)


class InterpretedRunner(Runner):
    """A kernel AST that an interpreted device executes op by op."""

    def __init__(self, ast: LazyOp, device: Interpreted) -> None:
        ops, mem = ast_estimates(ast)
        super().__init__(ast_name(ast), device.device, ops, mem)
        self.ast = ast
        self.fxn: Callable[[Sequence[Any], Vars], None] = device.interpret(ast)
        self.doubts = doubts(ast)
        stored = {node.arg[0] for node in ast.src}
        self.in_place = any(node.op is Ops.UPDATE for node in ast.src) or any(
            n.arg[0] in stored for n in ast.toposort() if n.op in (Ops.LOAD, Ops.GATHER))

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Executes the AST."""
        start = time.perf_counter()
        self.fxn([b.opaque for b in bufs], var_vals)
        return time.perf_counter() - start if wait else None


def ast_name(ast: LazyOp) -> str:
    """A short name for a kernel: its most telling op and the shapes it stores."""
    ops = {node.op for node in ast.toposort()}
    kind = "r" if Ops.REDUCE in ops else "g" if Ops.GATHER in ops else "e"
    return "_".join([kind, *("x".join(str(d) for d in store.src[0].shape) or "1" for store in ast.src[:2])])


def ast_estimates(ast: LazyOp) -> tuple[sint, sint]:
    """Arithmetic operations, and bytes of the kernel's buffers."""
    ops: sint = 0
    for node in ast.toposort():
        work = node.src[0] if node.op is Ops.REDUCE else node if node.src and node.op is not Ops.STORE else None
        if work is not None and node.op not in (Ops.VIEW, Ops.GATHER, Ops.SINK):
            size: sint = 1
            for dim in work.shape:
                size = size * dim
            ops = ops + size
    return ops, sum(arg.size * arg.dtype.itemsize for arg in ast.arg)
