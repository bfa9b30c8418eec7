"""Images in OpenCL C: a texel of four channels is what is read and written; an element is one of its channels."""

from __future__ import annotations

from tg_dtype import DType, ImageDType, dtypes

from ...ir.facts import pointer_base
from ...ir.uop import UOp
from ...machine.memory import CHANNELS
from ..spelling import bare
from .dialect import Terms


class Images:
    """The images among a kernel's arguments, which no pointer arithmetic reaches.

    Args:
      terms: the kernel's words.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def parameter(self, written: bool, name: str) -> str:
        """The declaration of an argument."""
        return f"{'write_only' if written else 'read_only'} image2d_t {name}"

    def load(self, u: UOp) -> str:
        """What a LOAD reads: whole texels, or elements of some."""
        terms, image = self._terms, _image(u.src[0])
        terms.type(dtypes.float32)
        pointer = terms.text.values[pointer_base(u.src[0])]
        at = terms.atom(f"(int){terms.value(u.src[1])}", dtypes.int32)
        gate = terms.atom(terms.value(u.src[2]), u.src[2].dtype) if len(u.src) > 2 else ""
        other = terms.value(u.src[3]) if len(u.src) > 3 else ""
        count = u.dtype.count
        if count > 1 and count % CHANNELS == 0 and self._aligned(u.src[1]) and (not gate or u.src[2].dtype.count == 1):
            places = [_place(image, _further(at, n)) for n in range(0, count, CHANNELS)]
            texels = [f"read_imagef({pointer}, {place})" for place in places]
            whole = texels[0] if count == CHANNELS else f"({terms.type(u.dtype)})({', '.join(texels)})"
            return f"({gate} ? {whole} : {other})" if gate else whole
        lanes = []
        for n in range(count):
            lane = f"{self._channel(image)}({pointer}, {_further(at, n)})"
            if gate:
                here = gate if u.src[2].dtype.count == 1 else terms.lane_value(gate, n, u.src[2].dtype)
                instead = other if count == 1 else terms.lane_value(terms.atom(other, u.dtype), n, u.dtype)
                lane = f"({here} ? {lane} : {instead})"
            lanes.append(lane)
        return lanes[0] if count == 1 else terms.vector(lanes, u.dtype)

    def store(self, u: UOp) -> None:
        """Writes the lines of a STORE.

        Raises:
          ValueError: if it is not one of whole texels.
        """
        terms, image = self._terms, _image(u.src[0])
        index, value = u.src[1:3]
        count = value.dtype.count
        if count % CHANNELS or not self._aligned(index) or (len(u.src) > 3 and u.src[3].dtype.count > 1):
            raise ValueError(f"OpenCL: {image.name} is written by whole texels, not by {u!r}")
        pointer = terms.text.values[pointer_base(u.src[0])]
        at = terms.atom(f"(int){terms.value(index)}", dtypes.int32)
        text = terms.atom(terms.value(value), value.dtype)
        with terms.text.only_if(bare(terms.value(u.src[3])) if len(u.src) > 3 else ""):
            for n in range(0, count, CHANNELS):
                texel = self._texel(text, n, value.dtype)
                terms.text.line(f"write_imagef({pointer}, {_place(image, _further(at, n))}, {texel});")

    def _channel(self, image: ImageDType) -> str:
        """The helper that reads one element."""
        return self._terms.helper(
            f"channel_{image.shape[1]}", dtypes.float32, "read_only image2d_t image, int i", lambda: [
                f"float4 t = read_imagef(image, {_place(image, 'i')});",
                "return (i & 2) ? ((i & 1) ? t.w : t.z) : ((i & 1) ? t.y : t.x);",
            ])  # fmt: skip

    def _aligned(self, index: UOp) -> bool:
        """Whether an index is that of a texel's first channel."""
        return self._terms.facts.divisors[index] % CHANNELS == 0

    def _texel(self, text: str, first: int, dtype: DType) -> str:
        """Four lanes of a vector."""
        lanes = range(first, first + CHANNELS)
        return text if dtype.count == CHANNELS else self._terms.shuffle([text], lanes, dtype)


def _image(pointer: UOp) -> ImageDType:
    dtype = pointer_base(pointer).dtype
    assert isinstance(dtype, ImageDType)
    return dtype


def _place(image: ImageDType, index: str) -> str:
    """The coordinates of the texel that holds an element."""
    return f"(int2)(({index} >> 2) % {image.shape[1]}, ({index} >> 2) / {image.shape[1]})"


def _further(index: str, by: int) -> str:
    """The index of a later lane."""
    return f"({index} + {by})" if by else index
