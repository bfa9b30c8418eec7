"""BEAM search on a real device: candidates are timed on buffers of their own, and the winner is kept on disk."""

from __future__ import annotations

import math

from tg_codegen import ActionError, EmitError, ProgramSpec, Renderer, Step, beam_search, compile_ast, parse
from tg_codegen.rows import PART
from tg_lazy import DEBUG, LazyOp

from . import diskcache
from .buffer import Buffer
from .compiled import Compiled
from .errors import DeviceError
from .progress import Progress
from .runner import CompiledRunner

_RUNS = 5
_PLANNED = b"as planned"  # in place of actions: a kernel in parts, which no actions lead to


def search(device: Compiled, renderer: Renderer, ast: LazyOp, width: int) -> ProgramSpec:
    """The fastest program that a search of this width finds; from the disk if it was found before.

    Raises:
      DeviceError: the device runs no kernels.
    """
    if device.compiler is None or device.runtime is None:
        raise DeviceError(f"{device.device} runs no kernels: it cannot be searched on")
    key = diskcache.digest(ast.key, renderer.key, device.compiler.cachekey or "", str(width))
    known = diskcache.get("beam", key)
    if known == _PLANNED:
        return compile_ast(ast, renderer)
    if known is not None:
        try:
            return compile_ast(ast, renderer, actions=[parse(line) for line in known.decode().splitlines()])
        except (ActionError, EmitError, ValueError):
            diskcache.delete("beam", key)  # written by a version whose actions meant something else
    measure = _Measure(device, ast)
    with Progress("BEAM", 0) as progress:
        spec = beam_search(
            ast, renderer, measure, width, progress=_Report(progress), prepare=measure.prepare,
            workers=device.compiler.parallel)
    in_parts = any(line.startswith(PART) for line in spec.actions)
    diskcache.put("beam", key, _PLANNED if in_parts else "\n".join(spec.actions).encode())
    return spec


class _Report:
    """Shows how far a search is; the rounds are printed where ``DEBUG`` asks for it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def __call__(self, step: Step) -> None:
        self.progress.total = step.tried + step.left
        self.progress.tell(step.tried)
        if DEBUG.value >= 2 and not step.left:
            best = f"the best takes {step.best_s * 1e6:.1f} us"
            print(f"BEAM round {step.round}: {step.tried} programs tried, {best}")


class _Measure:
    """Times programs for one AST on scratch buffers."""

    def __init__(self, device: Compiled, ast: LazyOp) -> None:
        self.device = device
        self.buffers = [Buffer(device.device, arg.size, arg.dtype).allocate() for arg in ast.arg]
        for buffer in self.buffers:
            buffer.copyin(memoryview(bytes(buffer.nbytes)))
        self.values = {v: (v.vmin + v.vmax) // 2 for v in ast.variables()}
        self.best = math.inf
        self.ready: dict[str, bytes] = {}

    def prepare(self, spec: ProgramSpec) -> None:
        """Compiles a program, in a thread."""
        assert self.device.compiler is not None
        self.ready[spec.src] = self.device.compiler.compile(spec.src)

    def __call__(self, spec: ProgramSpec) -> float:
        runner = CompiledRunner(spec, self.device, cached=False, lib=self.ready.pop(spec.src, None))
        fastest = math.inf
        for _ in range(_RUNS):
            seconds = runner(self.buffers, self.values, wait=True)
            fastest = min(fastest, math.inf if seconds is None else seconds)
            if fastest > 3 * self.best:
                break
        self.best = min(self.best, fastest)
        return fastest
