"""An OpenCL C kernel with work-groups and local memory: partial sums, one a group."""

from __future__ import annotations

from array import array

from tg_dtype import dtypes
from tg_runtime import Buffer, Device

SOURCE = """
__kernel void sums(__global float *out, __global const float *in) {
  __local float part[64];
  int lane = get_local_id(0);
  part[lane] = in[get_global_id(0)];
  for (int step = 32; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) part[lane] += part[lane + step];
  }
  if (lane == 0) out[get_group_id(0)] = part[0];
}
"""


def main() -> None:
    if "CL" not in Device.available():
        print(f"CL: {Device.load('CL').unavailable(Device.entry('CL'))}")
        return
    device = Device["CL"]
    assert device.compiler is not None and device.runtime is not None
    sums = device.runtime("sums", device.compiler.compile_cached(SOURCE))
    values = Buffer("CL", 64 * 16, dtypes.float32).copyin(memoryview(array("f", range(64 * 16))))
    totals = Buffer("CL", 16, dtypes.float32).allocate()
    seconds = sums(totals.opaque, values.opaque, global_size=(16, 1, 1), local_size=(64, 1, 1), wait=True)
    result = totals.as_buffer().cast("f").tolist()
    assert sum(result) == sum(range(64 * 16))
    print(f"CL: {result[:3]} …, {(seconds or 0) * 1e6:.1f} us by the device's clock")


if __name__ == "__main__":
    main()
