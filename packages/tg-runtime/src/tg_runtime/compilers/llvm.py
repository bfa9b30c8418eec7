"""LLVM IR text to an object file, in process, through llvmlite."""

from __future__ import annotations

import ctypes
import functools
import importlib
import mmap
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..device.compiler import Compiler, rejected
from ..errors import CompileError, DevSyntaxError
from ..host.arch import CPUArch
from ..host.processor import core_count, cpu_identity
from ..host.tools import find_tool

_TUNED_PASSES = ("sroa", "instruction_combine", "simplify_cfg", "dead_code_elimination")
_VECTOR = re.compile(r"<\d+ x ")
_DEFINED = re.compile(r"^[ \t]*define [^@\n]*@([\w.$-]+)\(", re.MULTILINE)
_UNKNOWN = re.compile(r"'\+?(\S+)' is not a recognized (processor|feature)")
_listening = threading.Lock()
# LLVM aborts when it gets no memory. This much it may need for a kernel, and malloc may reserve.
_LEAST_BYTES, _BYTES_PER_CHARACTER = 64 << 20, 256


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What LLVM writes to the standard error in the block: it reports some errors nowhere else."""
    said: list[str] = []
    with _listening, tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        kept = os.dup(2)
        try:
            os.dup2(file.fileno(), 2)
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            said.append(file.read().decode(errors="replace"))


@functools.cache
def version(distribution: str) -> str:
    """The version of an installed distribution."""
    from importlib.metadata import version as look_up

    return look_up(distribution)


MISSING = "llvmlite is not installed (pip install 'tg-runtime[llvm]')"


def available() -> bool:
    """Whether llvmlite can be imported; it is not imported."""
    return find_spec("llvmlite") is not None


@functools.cache
def _binding() -> Any:
    binding = importlib.import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@functools.cache
def host() -> tuple[str, str, str]:
    """The host's triple, CPU name and features, as LLVM writes them."""
    binding = _binding()
    features = binding.get_host_cpu_features()
    return binding.get_process_triple(), binding.get_host_cpu_name(), features.flatten()


class _Tools(NamedTuple):
    """What one thread at a time compiles with.

    Attributes:
      machine: the target machine.
      passes: the four passes; they keep nothing of a function once it is done.
    """

    machine: Any
    passes: Any


class LLVMCompiler(Compiler):
    """Compiles LLVM IR for the host, or for another machine.

    Args:
      arch: the processor; the host's with all its features if omitted.
      triple: another machine to compile for than ``arch`` says.
      level: how hard LLVM tries, 0 to 3.
      tuned: the text comes from our renderer, so where it is written in vectors, its loops are as they should be:
        four passes then give what the whole pipeline gives, in a tenth of its time.
      by_hand: the text was written by hand, and is as it should be: these four passes do for all of it.
    """

    def __init__(
        self, arch: CPUArch | None = None, triple: str = "", level: int = 2, tuned: bool = False, by_hand: bool = False
    ) -> None:  # fmt: skip
        self.arch, self.level, self.tuned, self.by_hand = arch or CPUArch(), level, tuned, by_hand
        self.triple = triple = triple or (self.arch.kind.triple if self.arch.machine else "")
        # asking LLVM for the host's name would load it even where the binary is on disk already
        native = "" if triple or self.arch.cpu else cpu_identity()
        chosen = f"{triple}:{self.arch.cpu}:{','.join(self.arch.features)}:{native}"
        passes = ",".join((*_TUNED_PASSES, "always") if by_hand else _TUNED_PASSES if tuned else ())
        super().__init__(f"llvm:{version('llvmlite')}:{level}:{passes}:{chosen}")
        self.parallel = core_count()
        self._free: list[_Tools] = []

    @functools.cached_property
    def machine(self) -> Any:
        """A target machine, to be asked; :meth:`_lent` has those that threads compile with.

        Raises:
          DevSyntaxError: if LLVM does not know the processor, or one of the extensions.
        """
        return self._machine()

    @contextmanager
    def _lent(self) -> Iterator[_Tools]:
        """What a thread compiles with in the block; there are as many as threads ever compiled at once.

        Raises:
          DevSyntaxError: as of :attr:`machine`.
        """
        try:
            tools = self._free.pop()
        except IndexError:
            tools = _Tools(self._machine(), _binding().create_new_function_pass_manager())
            for name in _TUNED_PASSES:
                getattr(tools.passes, f"add_{name}_pass")()
        try:
            yield tools
        finally:
            self._free.append(tools)

    def _machine(self) -> Any:
        """A new target machine.

        Raises:
          DevSyntaxError: if LLVM does not know the processor, or one of the extensions.
        """
        binding = _binding()
        triple, cpu, features = host()
        if self.triple:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
            triple, cpu, features = self.triple, self.arch.cpu, ""
        elif self.arch.cpu:
            cpu, features = self.arch.cpu, ""
        fixed = "-relax" if triple.startswith("riscv") else ""  # the loader relaxes nothing
        features = ",".join(part for part in (features, *self.arch.for_llvm(), fixed) if part)
        target = binding.Target.from_triple(triple)
        chosen = {"cpu": cpu, "features": features, "opt": self.level, "reloc": "pic", "codemodel": "small"}
        if self.arch == CPUArch():
            return target.create_target_machine(**chosen)
        with _complaints() as said:
            machine = target.create_target_machine(**chosen)
        unknown = sorted(set(_UNKNOWN.findall("".join(said))))
        if unknown:
            what = " and no ".join(f"{kind} {name}" for name, kind in unknown)
            raise DevSyntaxError(f"CPU arch: LLVM knows no {what} for {triple}")
        return machine

    def check(self) -> None:
        """Looks whether the processor is known; this loads LLVM.

        Raises:
          DevSyntaxError: if LLVM does not know it, or one of the extensions.
        """
        _ = self.machine

    def module(self, src: str) -> Any:
        """The optimised module.

        LLVM's own vectors may end in ``llvm.masked.store``, of which LLVM 22 writes some past what is wanted (see
        :mod:`tg_codegen.render.llvm.memory`): where it would use any that the text does not, it makes no vectors of
        loops.

        Raises:
          CompileError: if LLVM rejects the text, or masks stores nevertheless.
          MemoryError: if there is too little for LLVM, which would end the process.
        """
        _require_memory(_LEAST_BYTES + _BYTES_PER_CHARACTER * len(src))
        tuned = self.by_hand or (self.tuned and _VECTOR.search(src) is not None)
        module = self._optimised(src, tuned, vectors=True)
        if not tuned and _masks(module) and "@llvm.masked.store" not in src:
            module = self._optimised(src, tuned, vectors=False)
            if _masks(module):
                raise rejected("LLVM", "it masks stores, which it may widen", src, ".ll")
        return module

    @functools.cached_property
    def _layout(self) -> tuple[str, str]:
        """The triple and the data layout of the machine."""
        return self.machine.triple, str(self.machine.target_data)

    @functools.cached_property
    def _options(self) -> dict[bool, Any]:
        """What the passes are told, with and without vectors of LLVM's own."""
        found = {}
        for vectors in (True, False):
            found[vectors] = _binding().create_pipeline_tuning_options(speed_level=self.level)
            found[vectors].loop_vectorization &= vectors
        return found

    def _optimised(self, src: str, tuned: bool, vectors: bool) -> Any:
        """As few calls into LLVM as possible: after each of them a thread waits until it is let into Python again."""
        binding = _binding()
        try:
            # a context for each module: a common one would keep every type and constant ever made
            module = binding.parse_assembly(src, binding.create_context())
            module.verify()
        except RuntimeError as error:
            raise rejected("LLVM IR", str(error), src, ".ll") from None
        module.triple, module.data_layout = self._layout
        with self._lent() as tools:
            builder = binding.create_pass_builder(tools.machine, self._options[vectors])
            if tuned:
                for name in _DEFINED.findall(src):
                    tools.passes.run(module.get_function(name), builder)
            else:
                builder.getModulePassManager().run(module, builder)
            del builder  # which holds the machine
        return module

    def compile(self, src: str) -> bytes:
        """The object file of LLVM IR text.

        Raises:
          CompileError: if LLVM rejects the text; it is kept in a file that the message names.
          MemoryError: as of :meth:`module`.
        """
        module = self.module(src)
        with self._lent() as tools:
            return _object(tools.machine, module)

    def assembly(self, src: str) -> str:
        """The assembly text of LLVM IR text."""
        module = self.module(src)
        with self._lent() as tools:
            text: str = tools.machine.emit_assembly(module)
        return text

    def disassemble(self, lib: bytes) -> str:
        """The object as assembly, by the binutils or LLVM tool that is on the machine."""
        return disassemble(lib)


def _object(machine: Any, module: Any) -> bytes:
    """The object file of a module.

    llvmlite lets one thread at a time into LLVM, which asks for that only where threads share a context or a machine.
    They share none here, and this is most of the time that a kernel takes.

    Raises:
      CompileError: if LLVM cannot write the object.
    """
    ffi = importlib.import_module("llvmlite.binding.ffi")
    emit = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    with ffi.OutputString() as error:
        memory = getattr(emit, "_cfn", emit)(machine, module, 1, error)
        if not memory:
            raise CompileError(f"LLVM: {error}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def _require_memory(nbytes: int) -> None:
    """Raises unless the process can get so much memory, which it tries.

    Raises:
      MemoryError: if a limit (``ulimit -v``) or the system refuses.
    """
    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        else:
            mmap.mmap(-1, nbytes).close()
    except OSError as error:
        mib = -(-nbytes >> 20)
        raise MemoryError(
            f"compiling a kernel with LLVM may need {mib} MiB, which this process cannot have ({error.strerror})"
        ) from None


def _masks(module: Any) -> bool:
    return any(function.name.startswith("llvm.masked.store") for function in module.functions)


def disassemble(lib: bytes) -> str:
    """An object file as assembly text, or a line that says why there is none."""
    tool = find_tool("objdump", "llvm-objdump")
    if tool is None:
        return "no disassembly: neither objdump nor llvm-objdump is on the PATH"
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(lib)
        file.flush()
        done = subprocess.run([tool, "-d", "--no-show-raw-insn", file.name], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else f"no disassembly: {done.stderr.strip()}"
