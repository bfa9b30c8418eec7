"""Runners: what executes one step of a schedule, and the cache of the programs that kernels became."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tg_dtype import dtypes
from tg_lazy import DEBUG, LazyOp, Ops
from tg_lazy.ast.reach import Doubt, doubts
from tg_shape import Expr, Variable, sint, sym_eval

from ..device.compiled import Compiled, Interpreted
from ..device.limits import check_limits
from ..errors import DeviceError
from ..memory.buffer import Buffer
from ..telemetry.counters import GlobalCounters
from ..telemetry.profiler import span

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec

Vars = Mapping[Variable, int]

_PART_NBYTES = 8 << 20
"""How much of a file is read before it goes on to a device."""


class Runner(ABC):
    """Executes one step on buffers.

    Attributes:
      name: what to call it in print.
      device: canonical name of the device that it runs on.
      op_estimate: arithmetic operations, symbolic where shapes are.
      mem_estimate: bytes moved, symbolic where shapes are.
      in_place: whether running it twice differs from running it once.
      first_run: whether it has not run yet.
      num_kernels: how many kernels a run stands for.
      self_timed: whether a run tells the profiler its times on the device itself; others are waited for.
      on_device: whether a run is work of the device, and not only of the host.
      queue: what a trace calls the track of its runs.
      doubts: views that some values of the variables lead out of their buffers.
    """

    in_place = False
    self_timed = False
    on_device = True
    queue = "kernels"
    num_kernels = 1
    doubts: tuple[Doubt, ...] = ()

    def __init__(self, name: str, device: str, op_estimate: sint = 0, mem_estimate: sint = 0) -> None:
        self.name, self.device = name, device
        self.op_estimate, self.mem_estimate = op_estimate, mem_estimate
        self.first_run = True

    @abstractmethod
    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Runs the step; with ``wait``, returns the seconds it took once it is done."""

    def count(self, var_vals: Vars) -> None:
        """Adds a launch that was not waited for to :data:`GlobalCounters`."""
        ops, mem = self.op_estimate, self.mem_estimate
        GlobalCounters.kernel_count += self.num_kernels
        GlobalCounters.global_ops += ops if isinstance(ops, int) else sym_eval(ops, dict(var_vals))
        GlobalCounters.global_mem += mem if isinstance(mem, int) else sym_eval(mem, dict(var_vals))

    def exec(self, bufs: Sequence[Buffer], var_vals: Vars | None = None) -> float | None:
        """Runs the step on buffers, waits for it and returns the seconds it took."""
        for buffer in bufs:
            buffer.ensure_allocated()
        return self(bufs, var_vals or {}, wait=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} on {self.device}>"


class CompiledRunner(Runner):
    """A rendered kernel, compiled and loaded.

    Attributes:
      spec: the kernel.
      program: the loaded program.
      ast: what it was generated from; None if nobody told.

    Args:
      spec: the kernel.
      device: where it will run.
      cached: take the binary from the cache on disk, and put it there.
      lib: the binary, where it is made already.
      ast: what it was generated from.

    Raises:
      DeviceError: the kernel is beyond the limits of the device's work-groups, or the device runs no kernels.
      CompileError: the device's compiler rejects the kernel.
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
        except Exception:  # whatever a loader makes of it
            # a binary from the disk that does not load, however its checksum: make it anew, and keep that
            compiler.forget(spec.src)
            made = compiler.compile_cached(spec.src) if cached else compiler.compile(spec.src)
            if made == self.lib:
                raise
            self.lib = made
            self.program = device.runtime(spec.name, self.lib)
        self.vars = spec.vars
        self.doubts = doubts(ast) if spec.vars and ast is not None else ()
        self.self_timed = device.self_timed
        self.in_place = bool(set(spec.outs) & set(spec.ins))
        # a CPU's threads are its work-groups
        self.global_size: tuple[sint, sint, sint] = (spec.threads, 1, 1) if spec.threads > 1 else spec.global_size
        self.local_size = spec.local_size
        self.symbolic = any(isinstance(g, Expr) for g in self.global_size)

    def launch_size(self, var_vals: Vars) -> tuple[int, int, int]:
        """Work-groups along x, y, z for these values of the variables."""
        if not self.symbolic:
            return self.global_size  # type: ignore[return-value]
        x, y, z = (sym_eval(g, var_vals) for g in self.global_size)
        return x, y, z

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Launches the kernel."""
        return self.program(
            *[b.opaque for b in bufs],
            global_size=self.launch_size(var_vals),
            local_size=self.local_size,
            vals=[var_vals[v] for v in self.vars] if self.vars else (),
            wait=wait,
        )


LISTING = 40
"""Most lines of a kernel's source that ``DEBUG=4`` prints; ``DEBUG=5`` prints all."""

_shown: dict[tuple[str, bool], None] = {}


def show_source(spec: ProgramSpec) -> None:
    """Prints a kernel's source, once in a process: at ``DEBUG=4`` the beginning of it, from ``DEBUG=5`` on all."""
    whole = DEBUG.value >= 5
    if (spec.src, whole) in _shown:
        return
    _shown[spec.src, whole] = None
    while len(_shown) > _MOST_SHOWN:
        del _shown[next(iter(_shown))]
    lines = spec.src.rstrip().splitlines()
    if not whole and len(lines) > LISTING:
        more = len(lines) - LISTING
        lines = [*lines[:LISTING], f"… {more} more lines of {spec.name}, with DEBUG=5"]
    print("\n".join(lines))


_MOST_SHOWN = 1 << 10


class InterpretedRunner(Runner):
    """A kernel AST that an interpreted device executes op by op."""

    def __init__(self, ast: LazyOp, device: Interpreted) -> None:
        ops, mem = ast_estimates(ast)
        super().__init__(ast_name(ast), device.device, ops, mem)
        self.ast = ast
        self.fxn: Callable[[Sequence[Any], Vars], None] = device.interpret(ast)
        self.doubts = doubts(ast)
        stored = {node.arg[0] for node in ast.src}
        self.in_place = any(n.arg[0] in stored for n in ast.toposort() if n.op in (Ops.LOAD, Ops.GATHER))

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Executes the AST."""
        start = time.perf_counter()
        self.fxn([b.opaque for b in bufs], var_vals)
        return time.perf_counter() - start if wait else None


class BufferCopy(Runner):
    """Copies a buffer to a buffer of another device, through the host. Buffers: destination, source."""

    queue = "copies"

    def __init__(self, nbytes: int, dest_device: str, src_device: str) -> None:
        super().__init__(f"copy {nbytes} B, {dest_device} <- {src_device}", dest_device, 0, nbytes)
        self.dest_device, self.src_device = dest_device, src_device

    def copy(self, dest: Buffer, src: Buffer) -> None:
        """Copies ``src`` to ``dest``, by the shortest way that the two allocators have."""
        if src.allocator.reads_into:
            view = dest.host_view(write=True)
            if view is not None:
                src.copyout(view)
                return
            if dest.allocator.supports_offset and dest.options.image is None:
                _copy_in_parts(dest, src)
                return
        view = src.host_view()
        if view is not None:
            dest.copyin(view)
            return
        view = dest.host_view(write=True)
        if view is not None:
            src.copyout(view)
            return
        dest.copyin(src.copyout(memoryview(bytearray(src.nbytes))))

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Copies."""
        dest, src = bufs
        if dest.nbytes != src.nbytes:
            raise ValueError(f"copy of {src!r} to {dest!r}: sizes differ")
        if dest.readonly:
            raise DeviceError(f"copy of {src!r} to {dest!r}, whose memory is read-only")
        start = time.perf_counter()
        if dest.nbytes:
            self.copy(dest, src)
        return time.perf_counter() - start if wait else None


def _copy_in_parts(dest: Buffer, src: Buffer) -> None:
    """Copies through a little of the host's memory."""
    room = memoryview(bytearray(min(_PART_NBYTES, src.nbytes)))
    for start in range(0, src.nbytes, _PART_NBYTES):
        part = room[: min(_PART_NBYTES, src.nbytes - start)]
        src.view(part.nbytes, dtypes.uint8, start).copyout(part)
        dest.view(part.nbytes, dtypes.uint8, start).copyin(part)


class BufferXfer(BufferCopy):
    """Copies between two devices whose allocators can do it without the host; falls back to BufferCopy's way."""

    def copy(self, dest: Buffer, src: Buffer) -> None:
        """Copies ``src`` to ``dest``."""
        if not dest.allocator.transfer(dest.opaque, src.opaque, src.nbytes, src.allocator):
            super().copy(dest, src)


class ViewOp(Runner):
    """Makes a buffer a part of another, without copying. Buffers: the view, its base."""

    on_device = False

    def __init__(self, offset: int, device: str) -> None:
        super().__init__(f"view at byte {offset}", device)
        self.offset = offset

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Points the view at its base."""
        bufs[0].rebase(bufs[1], self.offset)
        return 0.0 if wait else None


class EmptyOp(Runner):
    """Gives a buffer memory with undefined content."""

    on_device = False

    def __init__(self, device: str) -> None:
        super().__init__("empty", device)

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Allocates."""
        bufs[0].ensure_allocated()
        return 0.0 if wait else None


class CustomOp(Runner):
    """A caller's function on whole buffers: ``fxn(*buffers)``, outputs first."""

    def __init__(self, fxn: Callable[..., object], device: str) -> None:
        super().__init__(getattr(fxn, "__name__", "custom"), device)
        self.fxn = fxn

    def __call__(self, bufs: Sequence[Buffer], var_vals: Vars, wait: bool = False) -> float | None:
        """Calls the function."""
        start = time.perf_counter()
        self.fxn(*bufs)
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
