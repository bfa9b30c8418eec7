"""C or LLVM IR text to an object file, by a compiler on the PATH."""

from __future__ import annotations

import os
import subprocess

from ..device.compiler import Compiler, rejected
from ..errors import DeviceUnavailable, DevSyntaxError
from ..host.arch import CPUArch
from ..host.processor import core_count, cpu_identity
from ..host.tools import c_compiler
from .llvm import disassemble

MISSING = "no clang on the PATH, and CC names none (install clang, or set CC)"
# large frames are touched page by page: a stack overflow faults instead of writing elsewhere
_PROBED = ("-fstack-clash-protection",)
_FLAGS = ("-O2", "-ffreestanding", "-fno-math-errno", "-nostdlib", "-fPIC", "-fno-stack-protector", "-c")


class ClangCompiler(Compiler):
    """Runs clang (``CC``, ``clang``, ``clang-19`` …) on a source that goes in and an object that comes out by pipes.

    Args:
      arch: the processor, named as clang's ``-march`` and ``-m`` do; the host's if omitted.
      language: ``c``, or ``ir`` for LLVM IR text.
      allow_gcc: take gcc where there is no clang; right for a user's plain C, not for what our renderer writes.

    Raises:
      DeviceUnavailable: if there is no such compiler.
    """

    def __init__(self, arch: CPUArch | None = None, language: str = "c", allow_gcc: bool = False) -> None:
        arch = arch or CPUArch()
        found = c_compiler(allow_gcc and language == "c" and not arch.machine)
        if found is None:
            raise DeviceUnavailable(MISSING)
        self.path, self.language = found, language
        self.parallel = core_count()  # each compilation is a process of its own
        target = (f"--target={arch.kind.triple}",) if arch.machine else ()
        if arch.kind.name == "x86_64":
            chosen = arch.cpu or ("x86-64" if arch.machine else "native")
            target = (*target, *_PROBED)
            processor = [f"-march={chosen}", *(f"-mno-{f[1:]}" if f[0] == "-" else f"-m{f[1:]}" for f in arch.features)]
        else:
            chosen = arch.cpu or ("" if arch.machine else "native")
            processor = [f"-mcpu={chosen}"] if chosen else []
            processor += ["-mno-relax"] if arch.kind.name == "riscv64" else []  # the loader relaxes nothing
            processor += [word for f in arch.for_llvm() for word in ("-Xclang", "-target-feature", "-Xclang", f)]
        self.flags = (*_FLAGS, *target, *processor)
        real = os.path.realpath(found)
        status = os.stat(real)
        native = "" if arch.cpu or arch.machine else cpu_identity()
        super().__init__(
            f"cc:{real}:{status.st_size}:{status.st_mtime_ns}:{language}:{' '.join(self.flags)}:{native}"
        )

    def compile(self, src: str) -> bytes:
        """The object file of a source text.

        Raises:
          CompileError: if the compiler rejects it; it is kept in a file that the message names.
        """
        command = [self.path, "-x", self.language, *self.flags, "-", "-o", "-"]
        if "clang" not in os.path.basename(os.path.realpath(self.path)):
            return self._through_file(src)
        done = subprocess.run(command, input=src.encode(), capture_output=True)
        if done.returncode != 0 or not done.stdout:
            raise rejected(self.path, done.stderr.decode(errors="replace"), src, f".{_SUFFIX[self.language]}")
        return done.stdout

    def check(self) -> None:
        """Looks whether the processor is known; this runs the compiler.

        Raises:
          DevSyntaxError: if the compiler does not know it, or one of the extensions.
        """
        command = [self.path, "-x", "c", *self.flags, "-fsyntax-only", os.devnull]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            lines = done.stderr.splitlines() or [f"status {done.returncode}"]
            line = next((line for line in lines if "error: " in line), lines[0])  # warnings may come before it
            said = line.partition("error: ")[2] or line
            raise DevSyntaxError(f"CPU arch: {os.path.basename(self.path)} says: {said}")

    def _through_file(self, src: str) -> bytes:
        # gcc cannot write an object to a pipe
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.o")
            command = [self.path, "-x", self.language, *self.flags, "-", "-o", out]
            done = subprocess.run(command, input=src.encode(), capture_output=True)
            if done.returncode != 0:
                raise rejected(self.path, done.stderr.decode(errors="replace"), src, f".{_SUFFIX[self.language]}")
            with open(out, "rb") as file:
                return file.read()

    def disassemble(self, lib: bytes) -> str:
        """The object as assembly, by the binutils or LLVM tool that is on the machine."""
        return disassemble(lib)


_SUFFIX = {"c": "c", "ir": "ll"}
