"""From a kernel's AST to its runner on a device: one that was made before, or a new one.

A new kernel is rendered by the code generator, taken from the disk, or found by a search; its runner compiles and loads
what came of that. Nothing on that way calls back.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tg_dtype import ImageDType
from tg_lazy import DEBUG, LazyOp

from ..device.compiled import Compiled, Interpreted
from ..errors import CompileError
from ..steps.runner import Runner
from ..telemetry.counters import GlobalCounters
from ..telemetry.profiler import span
from .runner import CompiledRunner, InterpretedRunner
from .settings import BEAM, NOOPT, generation
from .shared import shared_form

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec

CAPACITY = 1 << 14
"""Most runners that a device keeps; one that is in use elsewhere stays alive without that."""


def runner_key(ast: LazyOp, awake: int = 0) -> tuple[object, ...]:
    """What distinguishes the runners of one device. ASTs are interned, so identity stands for their digest."""
    return ast, awake, generation()


def get_runner(device: Compiled, ast: LazyOp, awake: int = 0, shared: bool = False) -> Runner:
    """The runner of ``ast`` on ``device``: made once for each AST and setting of ``NOOPT``, ``BEAM`` and ``STRICT``.

    Args:
      device: where it will run.
      ast: the kernel.
      awake: how many threads are awake to share it, however little work it is; 0 where they must be woken.
      shared: whether its program may be that of kernels which begin elsewhere in memory (:mod:`.shared`); not for
        graphs, which are recorded once and replayed many times.

    Raises:
      CompileError: if the device's compiler rejects the kernel.
      DeviceError: if the device runs no kernels.
    """
    key = runner_key(ast, awake)
    found: Runner | None = device.programs.get(key)
    if found is None and shared:
        found = device.programs.get(("shared", *key)) or _shared(device, ast, awake)
    if found is None:
        start = time.perf_counter()
        found = _make_runner(device, ast, awake)
        keep(device, key, found)
        GlobalCounters.compile_time_s += time.perf_counter() - start
        GlobalCounters.compile_count += 1
    return found


def _shared(device: Compiled, ast: LazyOp, awake: int) -> Runner | None:
    form = shared_form(device, ast)
    if form is None:
        return None
    whole = get_runner(device, form[0], awake)
    if not isinstance(whole, CompiledRunner):
        return None
    found = whole.placed(form[1], ast)
    keep(device, ("shared", *runner_key(ast, awake)), found)
    return found


def keep(device: Compiled, key: object, runner: Runner) -> None:
    """Puts a runner where :func:`get_runner` finds it; the oldest goes where there are too many."""
    programs = device.programs
    while len(programs) >= CAPACITY:
        del programs[next(iter(programs))]
    programs[key] = runner


def _searched(ast: LazyOp) -> bool:
    """Whether the settings ask for a search; kernels on images are not searched."""
    return bool(BEAM.value) and not NOOPT.value and not any(isinstance(arg.dtype, ImageDType) for arg in ast.arg)


def get_spec(device: Compiled, ast: LazyOp, awake: int = 0) -> ProgramSpec:
    """The rendered kernel of ``ast``: what a search finds if the settings ask for one, else what the heuristic plans.

    Kernels whose threads are ``awake`` are not searched.

    Raises:
      DeviceError: if the device runs no kernels, or not those with such work-groups.
    """
    from .generate import make_spec, renderer_of, without_uops

    if awake or not _searched(ast):
        return make_spec(device, ast, awake)
    from .beam import search

    return without_uops(search(device, renderer_of(device), ast, BEAM.value))


def _make_runner(device: Compiled, ast: LazyOp, awake: int) -> Runner:
    if DEBUG.value >= 5:
        print(ast.render())
    if isinstance(device, Interpreted):
        return InterpretedRunner(ast, device)
    # the code generator takes as long to import as everything else here, and interpreted devices never need it
    from .generate import forget_spec, make_spec

    with span("render"):
        spec = get_spec(device, ast, awake)
    if DEBUG.value >= 3:
        print(f"{spec.name}: actions: {', '.join(spec.actions) or 'none'}")
    if DEBUG.value >= 6:
        print("\n".join(repr(u) for u in spec.uops))
    try:
        return CompiledRunner(spec, device, ast=ast)
    except CompileError:
        # the kernel may be from the disk, and damaged
        if not forget_spec(device, ast, awake) or (again := make_spec(device, ast, awake)).src == spec.src:
            raise
        return CompiledRunner(again, device, ast=ast)
