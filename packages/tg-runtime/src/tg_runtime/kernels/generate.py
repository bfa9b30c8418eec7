"""Rendered kernels: from the disk if they were generated before, else from the code generator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tg_codegen import ProgramSpec, Renderer, compile_ast
from tg_lazy import DEBUG, STRICT, LazyOp
from tg_lazy.settings.collector import Uncollected

from ..cache import diskcache
from ..device.compiled import Compiled
from ..device.limits import check_limits
from ..errors import DeviceError
from . import speccache
from .settings import NOOPT


def make_spec(
    device: Compiled, ast: LazyOp, awake: int = 0, entries: list[tuple[str, bytes]] | None = None
) -> ProgramSpec:
    """The rendered kernel of ``ast`` for ``device``; with its UOps only where these are to be printed (``DEBUG=6``).

    Args:
      device: where it will run.
      ast: the kernel.
      awake: how many threads are awake to share it (:attr:`tg_codegen.Target.awake`); 0 where they must be woken.
      entries: gets what is to be kept on disk, key and content, for :func:`keep_on_disk`; without it, it is kept now.

    Raises:
      DeviceError: if the device runs no kernels, or not those with such work-groups.
    """
    renderer = renderer_of(device, awake)
    on_disk = DEBUG.value < 6 and diskcache.CCACHE.value  # UOps are not kept on disk
    key = _key(renderer, ast) if on_disk else None
    spec = None if key is None else _kept(key)
    if spec is None:
        device.allocator.make_room()
        spec = _generate(renderer, ast)
        check_limits(spec, renderer, device.device)  # needs the UOps, which only a kernel that was just generated has
        # a kernel whose plan failed is not kept: every process that needs it reports the failure
        data = None if key is None or spec.fallback else speccache.dump(spec)
        if key is not None and data is not None:
            if entries is None:
                keep_on_disk([(key, data)])
            else:
                entries.append((key, data))
    return without_uops(spec)


def keep_on_disk(entries: Iterable[tuple[str, bytes]]) -> None:
    """Keeps rendered kernels from one process to the next: key and content of each."""
    for key, data in entries:
        diskcache.put("kernel", key, data)


def without_uops(spec: ProgramSpec) -> ProgramSpec:
    """A kernel as this process keeps it: without its UOps, unless they are to be printed (``DEBUG=6``).

    The binary is what runs; all UOps of a model's kernels would be more than everything else that is kept of them.
    """
    return spec if DEBUG.value >= 6 else replace(spec, uops=())


def forget_spec(device: Compiled, ast: LazyOp, awake: int = 0) -> bool:
    """Drops the kernel of ``ast`` from the disk, for one that does not compile; whether there was one."""
    key = _key(renderer_of(device, awake), ast)
    known = diskcache.get("kernel", key) is not None
    diskcache.delete("kernel", key)
    return known


def renderer_of(device: Compiled, awake: int = 0) -> Renderer:
    """The renderer of a device, as strict as ``STRICT`` says; for kernels of threads that are ``awake``, if there are.

    Raises:
      DeviceError: if the device runs no kernels.
    """
    if device.renderer is None:
        raise DeviceError(f"{device.device} holds memory only: it runs no kernels")
    renderer = device.renderer.strictly() if STRICT.value else device.renderer
    return renderer.awake(awake) if awake else renderer


def _key(renderer: Renderer, ast: LazyOp) -> str:
    return diskcache.digest(ast.key, renderer.key, str(NOOPT.value), speccache.generator_identity())


def _kept(key: str) -> ProgramSpec | None:
    known = diskcache.get("kernel", key)
    if known is not None:
        try:
            return speccache.load(known)
        except (ValueError, KeyError, IndexError):
            diskcache.delete("kernel", key)
    return None


def _generate(renderer: Renderer, ast: LazyOp) -> ProgramSpec:
    with Uncollected():
        return compile_ast(ast, renderer, actions=() if NOOPT.value else None)
