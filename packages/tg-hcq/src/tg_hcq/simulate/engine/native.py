"""An instruction set's handlers as native code: compiled once, kept on disk, called through the dispatch loop."""

from __future__ import annotations

import ctypes
import functools

from tg_runtime import DeviceError
from tg_runtime.compilers import llvm
from tg_runtime.host.execmem import ExecutableMemory

from .emitter import Emitter
from .handlers import symbol
from .instruction_set import InstructionSet
from .state import Layout
from .support import support
from .transfers import MemoryHandler, ScalarLoadHandler


class Engine:
    """Native code for waves of one instruction set.

    The object file is kept in the cache on disk by its text, the processor with its features, and the version of
    llvmlite, whose wheels bring their own LLVM.

    Args:
      instructions: the instruction set.
      lanes: 32 or 64.
      hostile: whether reads of registers are checked, and accesses stop native code; slower.

    Attributes:
      layout: where registers lie.
      addresses: of the handlers, by name.

    Raises:
      DeviceError: if LLVM is missing.
    """

    def __init__(self, instructions: InstructionSet, lanes: int, hostile: bool = False) -> None:
        if not llvm.available():
            raise DeviceError(f"a software GPU compiles its instruction handlers with LLVM: {llvm.MISSING}")
        self.instructions, self.lanes, self.hostile = instructions, lanes, hostile
        self.layout = instructions.layout(lanes)
        self._code = ExecutableMemory(llvm.LLVMCompiler(level=1, tuned=True).compile_cached(source(self)))
        self.addresses = {name: self._code.function(symbol(name)) for name in instructions.handlers}
        self.undecoded = self._code.function("undecoded")
        self._run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64)(self._code.function("run"))

    def run(self, wave: int, budget: int) -> int:
        """Runs a wave, whose state is at an address, for at most ``budget`` instructions.

        Returns:
          why it stopped, a :class:`~tg_hcq.simulate.engine.state.Status`.
        """
        return int(self._run(wave, budget))


def source(engine: Engine) -> str:
    """The LLVM IR of an engine."""
    layout: Layout = engine.layout
    handlers = engine.instructions.handlers.values()
    shapes = [h.shape for h in handlers if isinstance(h, (MemoryHandler, ScalarLoadHandler))]
    parts, declarations = [support(layout, shapes)], dict[str, None]()
    for handler in handlers:
        emitter = Emitter(layout, engine.hostile)
        handler.emit(emitter)
        parts.append(emitter.text(f'"{symbol(handler.name)}"'))
        declarations |= emitter.declarations
    for signature, body in engine.instructions.routines.items():
        emitter = Emitter(layout, engine.hostile)
        body(emitter)
        parts.append(emitter.function(f"internal {signature}"))
        declarations |= emitter.declarations
    here = set(parts[0].splitlines())
    return "\n".join([*parts, *(line for line in declarations if line not in here)]) + "\n"


@functools.cache
def engine(instructions: InstructionSet, lanes: int, hostile: bool = False) -> Engine:
    """The engine of an instruction set, one for the whole process.

    Raises:
      DeviceError: as of :class:`Engine`.
    """
    return Engine(instructions, lanes, hostile)
