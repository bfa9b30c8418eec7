"""Many kernels made at once: while Python generates one, the compiler works on those before it in other threads."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING

from tg_lazy import DEBUG, LazyOp
from tg_lazy.settings.collector import Uncollected

from ..cache import diskcache
from ..device.compiled import Compiled, Interpreted
from ..telemetry.counters import GlobalCounters
from ..telemetry.profiler import span
from ..telemetry.progress import Progress
from .programs import keep, runner_key
from .runner import CompiledRunner
from .settings import BEAM
from .shared import shared_form

if TYPE_CHECKING:
    from tg_codegen import ProgramSpec

_LOOK_S = 0.1
"""How often to look how far the compilers have come."""
_TURN_S = 0.00005
"""How long a thread waits that comes back from native code, before whoever runs Python has to let it."""


def compile_ahead(work: Iterable[tuple[Compiled, LazyOp]], awake: int = 0, shared: bool = False) -> None:
    """Makes the runners that are missing, where there is more than one.

    A kernel that fails is left out: whoever asks for it gets the error. Does nothing where the order of what is printed
    (``DEBUG=3``) or measured (``BEAM``) matters.

    Args:
      work: kernels, each with its device.
      awake: how many threads are awake to share them.
      shared: whether kernels that differ only in where they begin may have one program.
    """
    if DEBUG.value >= 3 or BEAM.value:
        return
    missing: dict[object, tuple[Compiled, LazyOp]] = {}
    for device, ast in work:
        if device.compiler is not None and not isinstance(device, Interpreted):
            key = runner_key(ast, awake)
            if key in device.programs or (shared and ("shared", *key) in device.programs):
                continue
            form = shared_form(device, ast) if shared else None
            if form is not None:
                ast, key = form[0], runner_key(form[0], awake)
            if key not in device.programs:
                missing[device.device, key] = device, ast
    if len(missing) > 1:
        with diskcache.held():
            _make(list(missing.values()), awake)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Lets threads into Python soon that are hardly ever in it.

    A compiler's thread comes back from native code some twenty times for each kernel. By default it would wait 5 ms
    each time for the thread that generates, and so be idle most of the time.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN_S))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _make(missing: list[tuple[Compiled, LazyOp]], awake: int) -> None:
    from tg_codegen.ir.uop import UOp

    from .generate import make_spec

    start = time.perf_counter()
    jobs: SimpleQueue[tuple[Compiled, LazyOp, ProgramSpec] | None] = SimpleQueue()
    done: list[tuple[Compiled, LazyOp, ProgramSpec, bytes]] = []
    stopped = threading.Event()

    def compile_jobs() -> None:
        while (job := jobs.get()) is not None:
            device, ast, spec = job
            if stopped.is_set() or device.compiler is None:
                continue
            try:
                with span("compile", kernel=spec.name):
                    done.append((device, ast, spec, device.compiler.compile_cached(spec.src)))
            except Exception:
                continue  # the error comes again when the kernel is asked for

    parallel = max(device.compiler.parallel for device, _ in missing if device.compiler is not None)
    threads: list[threading.Thread] = []
    for _ in range(min(parallel, len(missing))):
        # the thread takes over the settings of this one
        thread = threading.Thread(target=copy_context().run, args=(compile_jobs,), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads
            break
        threads.append(thread)
    if not threads:
        return  # kernels are made one by one, as they are asked for
    with _short_turns(), Uncollected(), Progress("compiling kernels", len(missing)) as progress:
        try:
            for device, ast in missing:
                try:
                    with span("render"):
                        spec = make_spec(device, ast, awake)
                    jobs.put((device, ast, spec))
                except Exception:
                    break  # likewise
                progress.tell(len(done))
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                while thread.is_alive():
                    thread.join(_LOOK_S)
                    progress.tell(len(done))
        except BaseException:  # Ctrl-C: each compiler finishes its kernel, and takes no other
            stopped.set()
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                thread.join()
            raise
    UOp.sweep()
    for compiler in {device.compiler for device, _ in missing if device.compiler is not None}:
        compiler.rest()
    for device, ast, spec, lib in done:
        keep(device, runner_key(ast, awake), CompiledRunner(spec, device, lib=lib, ast=ast))
    GlobalCounters.compile_time_s += time.perf_counter() - start
    GlobalCounters.compile_count += len(done)
