"""The C loop that documents ``tg_hcq.core.patch``, compiled and run: its table is data that native code can walk."""

from __future__ import annotations

import ctypes
import random
import textwrap
from array import array

import pytest

from tg_hcq import PatchTable
from tg_hcq.core import patch
from tg_runtime.compilers.clang import ClangCompiler
from tg_runtime.host.execmem import ExecutableMemory
from tg_runtime.host.tools import c_compiler
from tg_shape import Variable

SIGNATURE = """
#include <stdint.h>
void apply(uint32_t **spaces, const int64_t *rows, const int64_t *starts, const uint64_t *values,
           const int64_t *changed, int64_t n_changed)
"""


def pointer(words: array[int]) -> ctypes.c_void_p:
    return ctypes.c_void_p(words.buffer_info()[0])


@pytest.mark.skipif(c_compiler(allow_gcc=True) is None, reason="no C compiler on the PATH")
def test_the_documented_loop_in_c_does_what_apply_does() -> None:
    assert patch.__doc__ is not None
    loop = textwrap.dedent(patch.__doc__.split("::\n", 1)[1])
    source = f"{SIGNATURE}{{ int64_t i, r;\n{loop.replace('int64_t *row', 'const int64_t *row')}}}\n"
    code = ExecutableMemory(ClangCompiler(allow_gcc=True).compile(source))
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64)(code.function("apply"))

    rng = random.Random(1)
    variables = [Variable(f"v{i}", -(2**63), 2**63 - 1) for i in range(20)]
    table = PatchTable()
    for _ in range(300):
        width = rng.randint(1, 32)
        low = rng.randint(0, 32 - width)
        place = rng.randrange(3), rng.randrange(40)
        table.add(rng.choice(variables), *place, width=width, low=low, shift=rng.randrange(64))
    table.seal()
    start = [array("I", (rng.getrandbits(32) for _ in range(40))) for _ in range(3)]
    mine, theirs = [array("I", s) for s in start], [array("I", s) for s in start]
    addresses = array("Q", (s.buffer_info()[0] for s in theirs))
    env = {v: rng.randint(v.vmin, v.vmax) for v in variables}
    for _ in range(50):
        env[rng.choice(variables)] = rng.randint(-(2**63), 2**63 - 1)
        changed = table.resolve(env)
        table.apply(changed, mine)
        indices = array("q", changed)
        tables = (addresses, table.rows, table.starts, table.values, indices)
        native(*(pointer(t) for t in tables), len(changed))
        assert mine == theirs != start
