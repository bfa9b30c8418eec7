"""Programs as text, assembled by LLVM."""

from __future__ import annotations

import functools
import shutil
import subprocess

from tg_runtime.host.elf import ELFFile

LLVM_MC = shutil.which("llvm-mc-22")
MISSING = "llvm-mc-22 is not installed"


@functools.lru_cache(512)
def assemble(arch: str, text: str, lanes: int = 32) -> bytes:
    """The machine code of a program; labels are allowed.

    Args:
      arch: the processor.
      text: as ``llvm-mc`` takes it.
      lanes: of a wave.

    Raises:
      OSError: if ``llvm-mc-22`` is not installed.
      ValueError: if it refuses the text.
    """
    if LLVM_MC is None:
        raise OSError(MISSING)
    wide = [] if int(arch[3:-2]) == 9 else [f"-mattr=+wavefrontsize{lanes}"]
    command = [LLVM_MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", *wide, "-filetype=obj"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.decode())
    section = next(s for s in ELFFile(done.stdout).sections if s.name == ".text")
    return done.stdout[section.offset : section.offset + section.size]
