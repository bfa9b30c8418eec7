"""MSL with no Mac: the stand-in for ``metal_stdlib``, with which C++ compilers check kernels and make them functions.

It is for tests, of this package and of whoever runs MSL: what it accepts may still be refused by Apple's compiler.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

CHECK_FLAGS = (
    "-x", "clcpp", "-cl-std=CLC++2021", "-cl-no-stdinc", "-target", "spir64", "-fsyntax-only", "-Wall", "-Werror",
    "-Wno-unused", "-Wno-unknown-attributes",
)  # fmt: skip
"""With these clang sees mistakes of types and address spaces."""
HOST_FLAGS = (
    "-x", "c++", "-std=c++17", "-fsigned-char", "-fvisibility=hidden", "-fno-strict-aliasing", "-shared", "-fPIC", "-w",
)  # fmt: skip
"""With these clang or gcc makes a library of what :func:`host_source` gives; it needs ``-lm``."""
_SHARED = re.compile(r"^(\s*)(threadgroup \w+ \w+\[\d+\];)$", re.MULTILINE)


def install(folder: str) -> None:
    """Writes the stand-in to ``folder``, which has to be on the compiler's path of includes."""
    with open(os.path.join(os.path.dirname(__file__), "metal_stdlib.h"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(folder, "metal_stdlib"), "w", encoding="utf-8") as file:
        file.write(text)


def host_source(source: str, kernels: Iterable[str]) -> str:
    """Kernels with an entry ``name_entry(void **slots)`` each, whose ``slots[i]`` is the i-th argument.

    >>> print(host_source("kernel void f(uint3 group, uint3 item) {\\n  threadgroup int t[4];\\n}\\n", ["f"]), end="")
    kernel void f(uint3 group, uint3 item) {
      static threadgroup int t[4];
    }
    TG_ENTRY(f)
    """
    entries = "".join(f"TG_ENTRY({name})\n" for name in kernels)
    return _SHARED.sub(r"\1static \2", source) + entries
