"""Kernels from the code generator, optimised as the settings say, or from the disk if they were generated before."""

from __future__ import annotations

from tg_codegen import ProgramSpec, Renderer, compile_ast
from tg_dtype import ImageDType
from tg_lazy import DEBUG, STRICT, LazyOp
from tg_lazy.collector import Uncollected

from . import diskcache, speccache
from .beam import search
from .compiled import Compiled
from .errors import DeviceError
from .settings import BEAM, NOOPT


def make_spec(device: Compiled, ast: LazyOp) -> ProgramSpec:
    """The rendered kernel of ``ast`` for ``device``.

    Raises:
      DeviceError: the device runs no kernels.
    """
    renderer = device.renderer
    if renderer is None:
        raise DeviceError(f"{device.device} holds memory only: it runs no kernels")
    if STRICT.value:
        renderer = renderer.strictly()
    if BEAM.value and not NOOPT.value and not any(isinstance(arg.dtype, ImageDType) for arg in ast.arg):
        return search(device, renderer, ast, BEAM.value)
    if DEBUG.value >= 6 or not diskcache.CCACHE.value:  # UOps are not kept on disk
        return _generate(renderer, ast)
    key = diskcache.digest(ast.key, renderer.key, str(NOOPT.value), speccache.generator_identity())
    known = diskcache.get("kernel", key)
    if known is not None:
        try:
            return speccache.load(known)
        except ValueError:
            diskcache.delete("kernel", key)
    spec = _generate(renderer, ast)
    data = speccache.dump(spec)
    if data is not None:
        diskcache.put("kernel", key, data)
    return spec


def _generate(renderer: Renderer, ast: LazyOp) -> ProgramSpec:
    with Uncollected():
        return compile_ast(ast, renderer, actions=() if NOOPT.value else None)
