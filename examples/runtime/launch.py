"""Source of your own in the device's language: compiled, kept on disk, loaded, launched with a variable."""

from __future__ import annotations

from array import array

from tg_dtype import dtypes
from tg_runtime import Buffer, CompileError, Device

SOURCES = {
    "CLANG": """
void scale(float *y, const float *x, int n) {
  for (int i = 0; i < n; i++) y[i] = 3.0f * x[i];
}
""",
    "LLVM": """
define void @scale(ptr %y, ptr %x, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %xp = getelementptr float, ptr %x, i32 %i
  %yp = getelementptr float, ptr %y, i32 %i
  %value = load float, ptr %xp
  %scaled = fmul float %value, 3.0
  store float %scaled, ptr %yp
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
""",
    "CL": """
__kernel void scale(__global float *y, __global const float *x, int n) {
  for (int i = 0; i < n; i++) y[i] = 3.0f * x[i];
}
""",
}


def main() -> None:
    for name in Device.available():
        entry = Device.load(name)
        language = next((known for known in entry.renderers() if known in SOURCES), None)
        if name == "NULL" or language is None:
            continue
        device = Device[name]
        if device.renderer is None or device.compiler is None or device.runtime is None:
            continue
        source = SOURCES[device.renderer.name]
        program = device.runtime("scale", device.compiler.compile_cached(source))
        x = Buffer(name, 1000, dtypes.float32).copyin(memoryview(array("f", range(1000))))
        y = Buffer(name, 1000, dtypes.float32).copyin(memoryview(bytes(4000)))
        seconds = program(y.opaque, x.opaque, vals=(10,), wait=True)
        result = y.as_buffer().cast("f").tolist()[8:12]
        print(f"{name} ({device.renderer.name}): {result}, {(seconds or 0) * 1e6:.1f} us")
        try:
            device.compiler.compile("this is no program")
        except CompileError as error:
            print(f"  a mistake: {str(error).splitlines()[0][:100]}")


if __name__ == "__main__":
    main()
