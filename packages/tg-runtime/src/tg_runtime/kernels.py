"""From a kernel's AST to its runner on a device, through the cache of what was made before."""

from __future__ import annotations

from tg_codegen import ProgramSpec, compile_ast
from tg_lazy import DEBUG, ContextVar, LazyOp

from .beam import search
from .compiled import Compiled, Interpreted
from .errors import DeviceError
from .runner import CompiledRunner, InterpretedRunner, Runner, timed_compile

NOOPT: ContextVar[int] = ContextVar("NOOPT", 0)
BEAM: ContextVar[int] = ContextVar("BEAM", 0)


def get_runner(device: Compiled, ast: LazyOp) -> Runner:
    """The runner of ``ast`` on ``device``: compiled once for each AST and setting of ``NOOPT`` and ``BEAM``."""
    # ASTs are interned, so identity stands for their key
    key = ast, NOOPT.value, BEAM.value
    found: Runner | None = device.programs.get(key)
    if found is None:
        found = device.programs[key] = timed_compile(lambda: _make_runner(device, ast))
    return found


def _make_runner(device: Compiled, ast: LazyOp) -> Runner:
    if DEBUG.value >= 5:
        print(ast.render())
    if isinstance(device, Interpreted):
        return InterpretedRunner(ast, device)
    spec = make_spec(device, ast)
    if DEBUG.value >= 3:
        print(f"{spec.name}: actions: {', '.join(spec.actions) or 'none'}")
    if DEBUG.value >= 6:
        print("\n".join(repr(u) for u in spec.uops))
    return CompiledRunner(spec, device)


def make_spec(device: Compiled, ast: LazyOp) -> ProgramSpec:
    """The rendered kernel of ``ast`` for ``device``, optimised as the settings say.

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
