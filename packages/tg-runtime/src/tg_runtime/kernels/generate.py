"""Kernels from the code generator, optimised as the settings say, or from the disk if they were generated before."""

from __future__ import annotations

from dataclasses import replace

from tg_codegen import ProgramSpec, Renderer, compile_ast
from tg_dtype import ImageDType
from tg_lazy import DEBUG, STRICT, LazyOp
from tg_lazy.settings.collector import Uncollected

from ..cache import diskcache
from ..device.compiled import Compiled
from ..device.limits import check_limits
from ..errors import DeviceError
from . import speccache
from .beam import search
from .settings import BEAM, NOOPT


def make_spec(device: Compiled, ast: LazyOp) -> ProgramSpec:
    """The rendered kernel of ``ast`` for ``device``; with its UOps only where these are to be printed (``DEBUG=6``).

    Raises:
      DeviceError: the device runs no kernels, or not those with such work-groups.
    """
    spec = _found_or_made(device, _renderer(device), ast)
    # the binary is what runs; all UOps of a model's kernels would be more than everything else that is kept of them
    return spec if DEBUG.value >= 6 else replace(spec, uops=())


def forget_spec(device: Compiled, ast: LazyOp) -> bool:
    """Drops the kernel of ``ast`` from the disk, for one that does not compile; whether there was one."""
    key = _key(_renderer(device), ast)
    known = diskcache.get("kernel", key) is not None
    diskcache.delete("kernel", key)
    return known


def _renderer(device: Compiled) -> Renderer:
    if device.renderer is None:
        raise DeviceError(f"{device.device} holds memory only: it runs no kernels")
    return device.renderer.strictly() if STRICT.value else device.renderer


def _key(renderer: Renderer, ast: LazyOp) -> str:
    return diskcache.digest(ast.key, renderer.key, str(NOOPT.value), speccache.generator_identity())


def _found_or_made(device: Compiled, renderer: Renderer, ast: LazyOp) -> ProgramSpec:
    if BEAM.value and not NOOPT.value and not any(isinstance(arg.dtype, ImageDType) for arg in ast.arg):
        return search(device, renderer, ast, BEAM.value)
    key = None
    if DEBUG.value < 6 and diskcache.CCACHE.value:  # UOps are not kept on disk
        key = _key(renderer, ast)
        known = diskcache.get("kernel", key)
        if known is not None:
            try:
                return speccache.load(known)
            except (ValueError, KeyError, IndexError):
                diskcache.delete("kernel", key)
    device.allocator.make_room()
    spec = _generate(renderer, ast)
    check_limits(spec, renderer, device.device)  # the UOps tell, and only those who make a kernel see them
    # a plan that failed is told and counted by every process that needs it
    data = None if key is None or spec.fallback else speccache.dump(spec)
    if key is not None and data is not None:
        diskcache.put("kernel", key, data)
    return spec


def _generate(renderer: Renderer, ast: LazyOp) -> ProgramSpec:
    with Uncollected():
        return compile_ast(ast, renderer, actions=() if NOOPT.value else None)
