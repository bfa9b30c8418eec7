"""Kernels from the code generator, optimised as the settings say."""

from __future__ import annotations

from tg_codegen import ProgramSpec, compile_ast
from tg_lazy import LazyOp

from .beam import search
from .compiled import Compiled
from .errors import DeviceError
from .settings import BEAM, NOOPT


def make_spec(device: Compiled, ast: LazyOp) -> ProgramSpec:
    """The rendered kernel of ``ast`` for ``device``.

    Raises:
      DeviceError: the device runs no kernels.
    """
    if device.renderer is None:
        raise DeviceError(f"{device.device} holds memory only: it runs no kernels")
    if NOOPT.value:
        return compile_ast(ast, device.renderer, actions=())
    if BEAM.value:
        return search(device, device.renderer, ast, BEAM.value)
    return compile_ast(ast, device.renderer)
