"""A language that nobody has, from one table: how little a new one of the C family takes.

Its kernels are those of a GPU with no vectors. On the host a few macros make C of them, and each conformance case runs.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest

from tg_codegen.conformance import Case, cases
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.machine.target import Target
from tg_codegen.render.c.cstyle import CStyleRenderer
from tg_codegen.render.c.dialect import Dialect, call
from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops

f32, f64 = dtypes.float32, dtypes.float64
Joined = Callable[[Mapping[str, str]], dict[str, tuple[str, ...]]]
Selected = Callable[[str], list[str]]


class MadeUpRenderer(CStyleRenderer):
    name = "MADEUP"
    dialect: ClassVar[Dialect] = Dialect(
        language="made-up",
        scalars={
            dtypes.int8: "int8_t", dtypes.int16: "int16_t", dtypes.int32: "int32_t", dtypes.int64: "int64_t",
            dtypes.uint8: "uint8_t", dtypes.uint16: "uint16_t", dtypes.uint32: "uint32_t", dtypes.uint64: "uint64_t",
            f32: "float", f64: "double",
        },
        kernel=lambda name, parameters, group: f"kernel {name}({parameters})",
        work_item=lambda place, dimension: f"{'group' if place == 'g' else 'item'}_id({dimension})",
        array=lambda space, kind, name, size: f"{'shared ' if space is AddrSpace.LOCAL else ''}{kind} {name}[{size}]",
        barrier=("wait();",),
        builtins={
            (Ops.SQRT, f32): call("sqrtf"), (Ops.TRUNC, f32): call("truncf"), (Ops.MULACC, f32): call("fmaf"),
            (Ops.SQRT, f64): call("sqrt"), (Ops.TRUNC, f64): call("trunc"), (Ops.MULACC, f64): call("fma"),
        },
    )  # fmt: skip


RENDERER = MadeUpRenderer(Target(kind="gpu", vector_bytes=16, registers=64, shared_bytes=16384, local_max=64))
_ON_THE_HOST = """
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#define kernel void
#define shared static
#define group_id(dimension) 0
#define item_id(dimension) 0
#define wait()
"""


def row_maxima() -> list[UOp]:
    """out[group] = the first lane of the maxima over a row, of which a work-item keeps a copy."""
    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    group, item = k.special("gidx0", 4), k.special("lidx0", 2)
    kept = k.scratch("kept", f32, 2, AddrSpace.LOCAL)
    most = k.acc(k.const(0.5, f32.vec(2)))
    with k.range(32, step=2, name="column") as column:
        at = k.alu(Ops.ADD, k.alu(Ops.MUL, group, k.const(32)), column)
        k.assign(most, k.alu(Ops.MAX, most, k.load(a, at, 2)))
    k.store(kept, item, k.gep(k.read(most), 0))
    k.barrier()
    k.store(out, group, k.load(k.after(kept), item))
    return k.uops


def test_text() -> None:
    assert RENDERER.render("rows", row_maxima()) == """\
typedef struct { float v[2]; } f32x2;
static inline float tg_max_f32(float a, float b) { return a != a ? a : a > b ? a : b; }
kernel rows(float* restrict data0, const float* restrict data1) {
  const int gidx0 = group_id(0);
  const int lidx0 = item_id(0);
  shared float kept[2];
  f32x2 c5 = (f32x2){{0.5f, 0.5f}};
  f32x2 acc6 = c5;
  for (int32_t column = 0; column < 32; column += 2) {
    int32_t x10 = (gidx0 * 32) + column;
    f32x2 val10 = (f32x2){{data1[x10 + 0], data1[x10 + 1]}};
    acc6 = (f32x2){{tg_max_f32(acc6.v[0], val10.v[0]), tg_max_f32(acc6.v[1], val10.v[1])}};
  }
  f32x2 res12 = acc6;
  kept[lidx0] = res12.v[0];
  wait();
  float val15 = kept[lidx0];
  data0[gidx0] = val15;
}
"""


CASES = {case.name: case for case in cases(RENDERER, lanes=4)}


@pytest.fixture(scope="module")
def kernels(
    joined: Joined, selected: Selected, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ctypes.CDLL]:  # fmt: skip
    """The library that holds the kernel of each case that runs."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("gcc is not installed")
    folder, found = tmp_path_factory.mktemp("dialect"), {}
    sources = joined({name: RENDERER.render(name, CASES[name].uops) for name in selected("name")})
    for number, (source, names) in enumerate(sources.items()):
        library = folder / f"kernels{number}.so"
        flags = ["-x", "c", "-std=c11", "-O1", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC", "-w"]
        command = [compiler, *flags, "-o", str(library), "-", "-lm"]
        done = subprocess.run(command, input=_ON_THE_HOST + source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.update(dict.fromkeys(names, ctypes.CDLL(str(library))))
    return found


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", CASES)
def test_conformance(name: str, kernels: dict[str, ctypes.CDLL]) -> None:
    case: Case = CASES[name]
    buffers = case.buffers()
    raw = [(ctypes.c_char * max(len(b), 1)).from_buffer(b) for b in buffers]
    getattr(kernels[name], name)(*raw, *(ctypes.c_int32(value) for value in case.vals))
    case.check(buffers)


def test_what_it_lacks_is_named() -> None:
    """A table with nothing but its types: each thing that a kernel asks for beyond them has its message."""

    class Bare(CStyleRenderer):
        name = "BARE"
        dialect: ClassVar[Dialect] = Dialect(language="bare", scalars={f32: "float", dtypes.int32: "int"})

    bare = Bare(Target())
    asked: list[tuple[Callable[[LinearBuilder], object], str]] = [
        (lambda k: k.special("gidx0", 4), "SPECIAL gidx0 has no meaning on a CPU"),
        (lambda k: k.alu(Ops.SQRT, k.load(k.param(0, f32), k.const(0))), "SQRT of float32 has no form"),
        (lambda k: k.load(k.param(0, f64), k.const(0)), "float64 has no arithmetic here"),
    ]
    for build, message in asked:
        k = LinearBuilder()
        build(k)
        with pytest.raises(ValueError, match=f"bare: {message}"):
            bare.render("kernel", k.uops)
    image = [UOp(UOps.PARAM, dtypes.imagef((1, 1, 4)), (), 0)]
    with pytest.raises(ValueError, match="bare: it has no images"):
        bare.render("kernel", image)
