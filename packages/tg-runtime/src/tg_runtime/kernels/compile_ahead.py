"""Many kernels made at once: while Python generates one, the compiler works on those before it in other threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from threading import local

from tg_lazy import DEBUG, LazyOp
from tg_lazy.settings.collector import Uncollected

from ..cache import diskcache
from ..device.compiled import Compiled, Interpreted
from ..telemetry.progress import Progress
from .making import Making
from .programs import runner_key
from .settings import BEAM
from .shared import shared_form


class _Foreseen(local):
    """For each thread, what is being made of kernels that will be wanted.

    Attributes:
      wanted: whether those of loops are wanted that are made now.
      making: they are in it; None where there are none.
    """

    wanted = False
    making: Making | None = None


_FORESEEN = _Foreseen()


@contextmanager
def foreseeing(wanted: bool) -> Iterator[None]:
    """Makes the kernels of what is traced in the block while the tracing goes on.

    Compilers have nothing else to do until then. They go on behind the block, until the kernels are asked for.

    Args:
      wanted: whether it is certain that what is traced will be computed; else the block is like any other.
    """
    before = _FORESEEN.wanted
    _FORESEEN.wanted = before or wanted
    try:
        yield
    finally:
        _FORESEEN.wanted = before


def foresees() -> bool:
    """Whether :func:`foreseen` does anything: in a block of :func:`foreseeing`."""
    return _FORESEEN.wanted and not _in_order()


def foreseen(work: Iterable[tuple[Compiled, LazyOp]], awake: int = 0) -> None:
    """Generates kernels in a block of :func:`foreseeing`, and hands them to compilers; elsewhere it does nothing.

    Args:
      work: kernels, each with its device.
      awake: how many threads are awake to share them.
    """
    if not foresees():
        return
    with diskcache.held():
        for device, ast in work:
            key = runner_key(ast, awake)
            if _makes_programs(device) and key not in device.programs:
                making = _FORESEEN.making = _FORESEEN.making or Making()
                if (device.device, key) not in making.keys:
                    making.add(device, ast, awake)


def settle() -> None:
    """Waits for kernels that were foreseen, if any are in the making."""
    if _FORESEEN.making is not None:
        compile_ahead(())


def compile_ahead(
    work: Iterable[tuple[Compiled, LazyOp]], awake: int = 0, shared: bool = False,
    inside: Iterable[tuple[Compiled, LazyOp]] = (),
) -> None:  # fmt: skip
    """Makes the runners that are missing, where there is more than one.

    A kernel that fails is left out: whoever asks for it gets the error. Does nothing where the order of what is printed
    (``DEBUG=3``) or measured (``BEAM``) matters.

    Args:
      work: kernels, each with its device.
      awake: how many threads are awake to share them.
      shared: whether those of ``work`` that differ only in where they begin may have one program.
      inside: kernels of loops among them, which are prepared later, and have programs of their own.
    """
    making, _FORESEEN.making = _FORESEEN.making, None
    missing: dict[tuple[str, object], tuple[Compiled, LazyOp]] = {}
    for device, ast, share in chain(((*one, shared) for one in work), ((*one, False) for one in inside)):
        if not _in_order() and _makes_programs(device):
            key = runner_key(ast, awake)
            if key in device.programs or (share and ("shared", *key) in device.programs):
                continue
            form = shared_form(device, ast) if share else None
            if form is not None:
                ast, key = form[0], runner_key(form[0], awake)
            if key not in device.programs and (making is None or (device.device, key) not in making.keys):
                missing[device.device, key] = device, ast
    if making is None and len(missing) < 2:
        return
    making = making or Making()
    with diskcache.held(), Uncollected(), Progress("compiling kernels", len(making.keys) + len(missing)) as progress:
        try:
            for device, ast in missing.values():
                making.add(device, ast, awake)
                if making.failed:
                    break  # whoever asks for it gets the error
                progress.tell(making.done)
        except BaseException:  # Ctrl-C
            making.stop()
            raise
        making.finish(progress)


def _in_order() -> bool:
    """Whether kernels are made one by one, as they are asked for."""
    return DEBUG.value >= 3 or bool(BEAM.value)


def _makes_programs(device: Compiled) -> bool:
    return device.compiler is not None and not isinstance(device, Interpreted)
