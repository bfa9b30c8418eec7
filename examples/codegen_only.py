"""tg-codegen alone: a kernel for accelerators that this machine does not have, with no runtime installed.

    pip install tg-codegen && python codegen_only.py

Builds the kernel ``out[i] = sum over j of relu(a[i, j]) * b[j]`` as an AST, and prints it as OpenCL C, CUDA C++ and
LLVM IR. An optimisation is an argument: ``python codegen_only.py --plain`` prints the loops as they are written.
"""

from __future__ import annotations

import sys

from tg_codegen import compile_ast
from tg_codegen.machine.renderer import Renderer
from tg_codegen.machine.target import Target
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_shape import ShapeTracker

ROWS, COLUMNS = 128, 512


def weighted_row_sums() -> LazyOp:
    """The kernel: shapes a (ROWS, COLUMNS), b (COLUMNS,), out (ROWS, 1); slot 0 is out, 1 is a, 2 is b."""
    matrix = ShapeTracker.from_shape((ROWS, COLUMNS))
    vector = ShapeTracker.from_shape((COLUMNS,)).reshape((1, COLUMNS)).expand((ROWS, COLUMNS))
    a, b = ast.load(1, dtypes.float32, matrix), ast.load(2, dtypes.float32, vector)
    zero = ast.const(0.0, dtypes.float32, (ROWS, COLUMNS))
    product = ast.alu(Ops.MUL, ast.alu(Ops.MAX, a, zero), b)
    total = ast.reduce(product, Ops.ADD, (1,))
    store = ast.store(0, ShapeTracker.from_shape((ROWS, 1)), total)
    sizes = (ROWS, ROWS * COLUMNS, COLUMNS)
    return ast.sink((store,), tuple(ast.BufferArg(dtypes.float32, size) for size in sizes))


def main() -> None:
    """Prints the kernel in three languages."""
    plain = "--plain" in sys.argv[1:]
    kernel = weighted_row_sums()
    cpu = Target(kind="cpu", vector_bytes=32, registers=16, threads=8)
    renderers: list[tuple[str, Renderer]] = [
        ("OpenCL C", OpenCLRenderer()),
        ("CUDA C++", CUDARenderer("sm_80")),
        ("LLVM IR for an AVX2 host", LLVMRenderer(cpu)),
    ]
    for language, renderer in renderers:
        program = compile_ast(kernel, renderer, actions=() if plain else None, name="weighted_row_sums")
        launch = f"{program.threads} threads"
        if renderer.target.grid:
            launch = f"{program.global_size} groups of {program.local_size}"
        print(f"==== {language}: {launch}; {program.estimates.flops} flops; {', '.join(program.actions) or 'plain'}")
        print(program.src)


if __name__ == "__main__":
    main()
