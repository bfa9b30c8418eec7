"""The runtime without the frontend: open a device, allocate, compile a source of your own, launch it, read back.

Run it with ``python examples/runtime_only.py``; it needs tg-runtime and either llvmlite, clang or gcc.
"""

from __future__ import annotations

import array

from tg_dtype import dtypes
from tg_runtime import Buffer, Device
from tg_runtime.backends.cpu.program import CPUProgram
from tg_runtime.compilers.clang import ClangCompiler
from tg_runtime.compilers.llvm import LLVMCompiler
from tg_runtime.compilers.llvm import available as llvm_available
from tg_runtime.host.tools import c_compiler

C_SOURCE = """
void saxpy(float *y, const float *x, int n, int core) {
  for (int i = core * n; i < (core + 1) * n; i++) y[i] += 2.0f * x[i];
}
"""

LLVM_SOURCE = """
define void @saxpy(ptr %y, ptr %x, i32 %n, i32 %core) {
entry:
  %first = mul i32 %core, %n
  %end = add i32 %first, %n
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %i.next, %loop ]
  %xp = getelementptr float, ptr %x, i32 %i
  %yp = getelementptr float, ptr %y, i32 %i
  %a = load float, ptr %xp
  %b = load float, ptr %yp
  %twice = fmul float %a, 2.0
  %sum = fadd float %b, %twice
  store float %sum, ptr %yp
  %i.next = add i32 %i, 1
  %more = icmp slt i32 %i.next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

SIZE, PARTS = 1 << 20, 4


def build() -> list[tuple[str, bytes]]:
    """The object files that this machine can make, with the name of the language each comes from."""
    found = []
    if llvm_available():
        found.append(("LLVM IR", LLVMCompiler().compile_cached(LLVM_SOURCE)))
    if c_compiler(allow_gcc=True) is not None:
        found.append(("C", ClangCompiler(allow_gcc=True).compile_cached(C_SOURCE)))
    return found


def main() -> None:
    device = Device["CPU"]
    print(f"device: {device}")
    builds = build()
    if not builds:
        raise SystemExit("there is no compiler: pip install llvmlite, or install clang or gcc")
    for language, lib in builds:
        x = Buffer("CPU", SIZE, dtypes.float32).allocate()
        y = Buffer("CPU", SIZE, dtypes.float32).allocate()
        x.copyin(memoryview(array.array("f", [3.0]) * SIZE))
        y.copyin(memoryview(array.array("f", [1.0]) * SIZE))
        saxpy = CPUProgram("saxpy", lib)
        # four parts, numbered by the kernel's last argument, on as many cores as there are
        seconds = saxpy(y.opaque, x.opaque, vals=(SIZE // PARTS,), global_size=(PARTS, 1, 1), wait=True)
        result = y.as_buffer().cast("f")
        assert all(value == 7.0 for value in result), "wrong result"
        print(f"{language}: {len(lib)} bytes of object file, y[0] = {result[0]}, {(seconds or 0) * 1e6:.0f} us")


if __name__ == "__main__":
    main()
