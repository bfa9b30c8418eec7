"""Images in OpenCL C: a texel of four channels is what is read and written; an element is one of its channels."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import DType, ImageDType, dtypes

from ..ir.facts import pointer_base
from ..ir.uop import UOp
from ..machine.memory import CHANNELS
from .cstyle import CStyleKernel, bare


def image_of(pointer: UOp) -> ImageDType | None:
    """The image behind a kernel's argument; None if it is a plain pointer."""
    dtype = pointer_base(pointer).dtype
    return dtype if isinstance(dtype, ImageDType) else None


class ImageKernel(CStyleKernel):
    """A kernel some of whose arguments are images, which no pointer arithmetic reaches."""

    def parameter_type(self, u: UOp) -> str:
        if image_of(u) is None:
            return f"__global {super().parameter_type(u)}"
        return f"{'write_only' if u.arg in self.facts.stored else 'read_only'} image2d_t"

    def place(self, image: ImageDType, index: str) -> str:
        """The coordinates of the texel that holds an element."""
        return f"(int2)(({index} >> 2) % {image.shape[1]}, ({index} >> 2) / {image.shape[1]})"

    def channel(self, image: ImageDType) -> str:
        """The helper that reads one element."""
        width = image.shape[1]
        name = f"channel_{width}"

        def define() -> str:
            return (
                f"{self.helper_prefix}float tg_{name}(read_only image2d_t image, int i) {{\n"
                f"  float4 t = read_imagef(image, {self.place(image, 'i')});\n"
                "  return (i & 2) ? ((i & 1) ? t.w : t.z) : ((i & 1) ? t.y : t.x);\n}"
            )

        return self.helper(name, define)

    def load(self, u: UOp) -> str:
        image = image_of(u.src[0])
        if image is None:
            return super().load(u)
        self.used.add(dtypes.float32)
        pointer, at = self.values[pointer_base(u.src[0])], self.atom(f"(int){self.value(u.src[1])}", dtypes.int32)
        gate = self.atom(self.value(u.src[2]), u.src[2].dtype) if len(u.src) > 2 else ""
        other = self.value(u.src[3]) if len(u.src) > 3 else ""
        count = u.dtype.count
        if count > 1 and count % CHANNELS == 0 and self.aligned(u.src[1]) and (not gate or u.src[2].dtype.count == 1):
            places = [self.place(image, self.further(at, n)) for n in range(0, count, CHANNELS)]
            texels = [f"read_imagef({pointer}, {place})" for place in places]
            whole = texels[0] if count == CHANNELS else f"({self.type(u.dtype)})({', '.join(texels)})"
            return f"({gate} ? {whole} : {other})" if gate else whole
        lanes = []
        for n in range(count):
            lane = f"{self.channel(image)}({pointer}, {self.further(at, n)})"
            if gate:
                here = gate if u.src[2].dtype.count == 1 else self.lane_value(gate, n, u.src[2].dtype)
                instead = other if count == 1 else self.lane_value(self.atom(other, u.dtype), n, u.dtype)
                lane = f"({here} ? {lane} : {instead})"
            lanes.append(lane)
        return lanes[0] if count == 1 else self.vector(lanes, u.dtype)

    @staticmethod
    def further(index: str, by: int) -> str:
        """The index of a later lane."""
        return f"({index} + {by})" if by else index

    def aligned(self, index: UOp) -> bool:
        """Whether an index is that of a texel's first channel."""
        known = self.facts.divisors[index]
        return known % CHANNELS == 0

    def store(self, u: UOp) -> None:
        image = image_of(u.src[0])
        if image is None:
            super().store(u)
            return
        index, value = u.src[1:3]
        count = value.dtype.count
        if count % CHANNELS or not self.aligned(index) or (len(u.src) > 3 and u.src[3].dtype.count > 1):
            raise ValueError(f"{self.language}: {image.name} is written by whole texels, not by {u!r}")
        pointer, at = self.values[pointer_base(u.src[0])], self.atom(f"(int){self.value(index)}", dtypes.int32)
        text = self.atom(self.value(value), value.dtype)
        if len(u.src) > 3:
            self.line(f"if ({bare(self.value(u.src[3]))}) {{")
            self.depth += 1
        for n in range(0, count, CHANNELS):
            texel = self.texel(text, n, value.dtype)
            self.line(f"write_imagef({pointer}, {self.place(image, self.further(at, n))}, {texel});")
        if len(u.src) > 3:
            self.depth -= 1
            self.line("}")

    def texel(self, text: str, first: int, dtype: DType) -> str:
        """Four lanes of a vector."""
        lanes: Sequence[int] = range(first, first + CHANNELS)
        return text if dtype.count == CHANNELS else self.shuffle([text], lanes, dtype)
