"""An instruction set's handlers as native code: compiled once, kept on disk, called through the dispatch loop."""

from __future__ import annotations

import ctypes
import functools
import re
import threading
from collections.abc import Iterable, Iterator, Mapping

from tg_runtime import DeviceError
from tg_runtime.compilers import llvm
from tg_runtime.host.execmem import ExecutableMemory
from tg_runtime.host.libc import address_of

from .emitter import Emitter
from .handlers import Handler, symbol
from .instruction_set import InstructionSet
from .state import Operation
from .support import atomic, support
from .transfers import MemoryHandler, atomic_name

BATCH = 64
"""Handlers of one module."""


class Engine:
    """Native code for waves of one instruction set.

    What all handlers call is compiled at once, a handler when it is first needed. Object files are kept in the cache on
    disk by their text, the processor with its features, and the version of llvmlite, whose wheels bring their own LLVM.

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
        self._compiler = llvm.LLVMCompiler(level=1, tuned=True)
        self._source = Source(self)
        self._loaded: list[ExecutableMemory] = []
        self._symbols: dict[str, int] = {}
        self._lock = threading.RLock()
        self._load(self._source.common())
        self.addresses: Mapping[str, int] = _Addresses(self)
        self.undecoded = self._symbols["undecoded"]
        self._run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64)(self._symbols["run"])

    def run(self, wave: int, budget: int) -> int:
        """Runs a wave, whose state is at an address, for at most ``budget`` instructions.

        Returns:
          why it stopped, a :class:`~tg_hcq.simulate.engine.state.Status`.
        """
        return int(self._run(wave, budget))

    def address(self, name: str) -> int:
        """Where a handler is, which is compiled if it was not yet.

        Raises:
          KeyError: if there is none of that name.
        """
        with self._lock:
            if symbol(name) not in self._symbols:
                self._load(self._source.handlers([self.instructions.handlers[name]]))
            return self._symbols[symbol(name)]

    def has(self, name: str) -> bool:
        """Whether a handler was compiled."""
        return symbol(name) in self._symbols

    def prepare(self, names: Iterable[str]) -> None:
        """Compiles handlers, many at once, which is faster than one after another.

        Raises:
          KeyError: if there is none of a name.
        """
        with self._lock:
            wanted = [self.instructions.handlers[name] for name in names if symbol(name) not in self._symbols]
            for first in range(0, len(wanted), BATCH):
                self._load(self._source.handlers(wanted[first : first + BATCH]))

    def _load(self, text: str) -> None:
        made = ExecutableMemory(self._compiler.compile_cached(text), self._resolve)
        self._loaded.append(made)
        self._symbols |= made.functions

    def _resolve(self, name: str) -> int | None:
        if name in self._symbols:
            return self._symbols[name]
        handlers = {symbol(handler): handler for handler in self.instructions.handlers}
        return self.address(handlers[name]) if name in handlers else address_of(name)


class _Addresses(Mapping[str, int]):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getitem__(self, name: str) -> int:
        return self._engine.address(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._engine.instructions.handlers)

    def __len__(self) -> int:
        return len(self._engine.instructions.handlers)


_NAME = re.compile(r"@(\"[^\"]+\"|[\w.$]+)")


class Source:
    """The LLVM IR of an engine: functions by name, of which a module says or declares those that it needs."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._layout = engine, engine.layout
        instructions = engine.instructions
        self._functions: dict[str, str] = {}
        self._declarations: dict[str, str] = {}
        self._take(support(self._layout, instructions.apertures))
        for signature, body in instructions.routines.items():
            emitter = Emitter(self._layout, engine.hostile)
            body(emitter)
            self._take("\n".join([emitter.function(signature), *emitter.declarations]))

    def _take(self, text: str) -> None:
        for function in re.findall(r"^define .*?^}$", text, re.MULTILINE | re.DOTALL):
            self._functions[_NAME.search(function)[1]] = function.replace("define internal ", "define ", 1)  # type: ignore[index]
        self._declared(text.splitlines())

    def _declared(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line.startswith("declare "):
                self._declarations[_NAME.search(line)[1]] = line  # type: ignore[index]

    def common(self) -> str:
        """The module of what handlers call."""
        return self._module("\n".join(self._functions.values()))

    def handlers(self, handlers: Iterable[Handler]) -> str:
        """The module of handlers, with the atomic operations that they have."""
        parts, atomics = [], dict[str, str]()
        for handler in handlers:
            emitter = Emitter(self._layout, self._engine.hostile)
            handler.emit(emitter)
            self._declared(emitter.declarations)
            parts.append(emitter.text(f'"{symbol(handler.name)}"'))
            if isinstance(handler, MemoryHandler) and handler.shape.operation is Operation.ATOMIC:
                atomics[atomic_name(handler.shape)] = atomic(self._layout, handler.shape)
        return self._module("\n".join([*parts, *atomics.values()]))

    def _module(self, text: str) -> str:
        here = {_NAME.search(head)[1] for head in re.findall(r"^define .*$", text, re.MULTILINE)}  # type: ignore[index]
        heads = []
        for name in dict.fromkeys(_NAME.findall(text)):
            if name in here:
                continue
            if name in self._functions:
                head = self._functions[name].splitlines()[0].removesuffix("{")
                heads.append(head.replace("define ", "declare ", 1))
            elif name in self._declarations:
                heads.append(self._declarations[name])
            else:
                heads.append(f"declare ptr @{name}(ptr, ptr)")
        return "\n".join([*heads, text]) + "\n"


@functools.cache
def engine(instructions: InstructionSet, lanes: int, hostile: bool = False) -> Engine:
    """The engine of an instruction set, one for the whole process.

    Raises:
      DeviceError: as of :class:`Engine`.
    """
    return Engine(instructions, lanes, hostile)
