"""What a binary for CUDA holds, as text."""

from __future__ import annotations

import subprocess
import tempfile

from .libraries import tool

ELF_MAGIC = b"\x7fELF"


def disassemble(lib: bytes) -> str:
    """PTX as it is; a cubin as SASS by ``nvdisasm`` or ``cuobjdump``, or a line that says why not."""
    if not lib.startswith(ELF_MAGIC):
        return lib.decode(errors="replace")
    for name, option in (("nvdisasm", "-c"), ("cuobjdump", "-sass")):
        path = tool(name)
        if path is None:
            continue
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(lib)
            file.flush()
            done = subprocess.run([path, option, file.name], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else f"no disassembly: {done.stderr.strip()}"
    return "no disassembly: neither nvdisasm nor cuobjdump is there (pip install nvidia-cuda-nvdisasm)"
