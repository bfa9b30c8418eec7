"""Matrix instructions: what a target multiplies and adds in one go, and which thread holds which element.

``acc[m, n] += sum over k of a[m, k] * b[k, n]``. A processor's dot products of short vectors are such instructions with
one row and one thread; or, *paired*, with as many rows as columns, of whose products they take the diagonal: lane by
lane those of two vectors. Those of tile registers have rows and columns, and one thread too. A GPU's are done by a warp
together, each thread holding a *fragment* of every operand. Element ``e`` of thread ``t`` stands at a place that is the
sum, over the bits of both numbers, of one step for each bit that is set: all known instructions are laid out so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from tg_dtype import DType, dtypes
from tg_shape import sint

Offset = tuple[int, int]  # rows and columns


@dataclass(frozen=True, slots=True)
class Fragment:
    """Where a thread's elements stand in a matrix.

    Attributes:
      elements: the step of each bit of the element's number, lowest first.
      threads: the step of each bit of the thread's number.
    """

    elements: tuple[Offset, ...]
    threads: tuple[Offset, ...] = ()

    @property
    def count(self) -> int:
        """Elements a thread."""
        return 1 << len(self.elements)

    def place(self, element: sint, thread: sint = 0) -> tuple[sint, sint]:
        """The row and the column of an element.

        >>> Fragment(((0, 1), (8, 0)), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0))).place(3, 5)
        (9, 3)
        """
        row, column = (
            coordinate(element, [s[i] for s in self.elements]) + coordinate(thread, [s[i] for s in self.threads])
            for i in (0, 1)
        )  # fmt: skip
        return row, column


def coordinate(number: sint, steps: list[int]) -> sint:
    """The sum of the steps of the bits that are set; bits with doubling steps are taken together."""
    total: sint = 0
    at = 0
    while at < len(steps):
        end = at + 1
        while end < len(steps) and steps[end] == 2 * steps[end - 1]:
            end += 1
        if steps[at]:
            total = total + number // (1 << at) % (1 << (end - at)) * steps[at]
        at = end
    return total


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """One instruction.

    Attributes:
      name: what the renderer knows it by.
      a: dtype of the first operand, ``m`` by ``k``.
      b: dtype of the second, ``k`` by ``n``.
      acc: dtype of the sum.
      shape: ``(m, n, k)``.
      fragments: of the first operand, the second and the sum.
      threads: how many do it together.
    """

    name: str
    a: DType
    b: DType
    acc: DType
    shape: tuple[int, int, int]
    fragments: tuple[Fragment, Fragment, Fragment]
    threads: int = 1

    @property
    def paired(self) -> bool:
        """Whether lanes of the first operand are multiplied with those of the second, one with one."""
        return self.threads == 1 and 1 < self.shape[0] == self.fragments[2].count

    @property
    def tiled(self) -> bool:
        """Whether one thread does it, on rows and columns.

        >>> AMX_BF16.tiled, AVX512_BF16.tiled, AVX512_VNNI_PAIRED[0].tiled
        (True, False, False)
        """
        return self.threads == 1 and 1 < self.shape[0] < self.fragments[2].count

    @property
    def together(self) -> int:
        """Terms that lie side by side in the second operand, for each of its columns.

        >>> AMX_BF16.together, AMX_BYTES[0].together, AVX512_BF16.together
        (2, 4, 2)
        """
        inner = takewhile(lambda step: step[0] > 0, self.fragments[1].elements)
        return 1 << sum(1 for _ in inner)


PAIRED: Final = "paired."
"""Before the name of an instruction whose first operand has a vector's lanes."""


def dot_product(
    name: str, a: DType, b: DType, acc: DType, lanes: int, factor: DType | None = None
) -> MatrixInstruction:
    """An instruction of one thread: in each lane the products of what fits into one lane, added to it.

    ``a`` is one lane's worth, the same for every lane; if the name begins with :data:`PAIRED`, each lane has its own.
    Operands that are narrower than the ``factor`` that is multiplied are widened to it first.

    >>> dot_product("vdpbf16ps", dtypes.bfloat16, dtypes.bfloat16, dtypes.float32, 16).shape
    (1, 16, 2)
    >>> found = dot_product("paired.vpdpwssd", dtypes.int16, dtypes.int16, dtypes.int32, 16)
    >>> found.shape, [fragment.count for fragment in found.fragments], found.fragments[2].place(3)
    ((16, 16, 2), [32, 32, 16], (3, 3))
    """
    k, paired = acc.itemsize // (factor or a).itemsize, name.startswith(PAIRED)
    inner = tuple((1 << i) for i in range(k.bit_length() - 1))
    outer = tuple((1 << i) for i in range(lanes.bit_length() - 1))
    fragments = (
        Fragment((*((0, s) for s in inner), *((s, 0) for s in outer if paired))),
        Fragment((*((s, 0) for s in inner), *((0, s) for s in outer))),
        Fragment(tuple((s if paired else 0, s) for s in outer)),
    )
    return MatrixInstruction(name, a, b, acc, (lanes if paired else 1, lanes, k), fragments)


AVX512_BF16 = dot_product("vdpbf16ps", dtypes.bfloat16, dtypes.bfloat16, dtypes.float32, 16)
AVX512_VNNI = dot_product("vpdpbusd", dtypes.uint8, dtypes.int8, dtypes.int32, 16)
AVX512_VNNI_TURNED = dot_product("vpdpbusd.turned", dtypes.int8, dtypes.uint8, dtypes.int32, 16)  # operands exchanged
AVX512_VNNI_SIGNED = dot_product("vpdpbusd.signed", dtypes.int8, dtypes.int8, dtypes.int32, 16)  # corrected: see LLVM
AVX512_VNNI_UNSIGNED = dot_product("vpdpbusd.unsigned", dtypes.uint8, dtypes.uint8, dtypes.int32, 16)  # the same
AVX512_VNNI_16 = dot_product("vpdpwssd", dtypes.int16, dtypes.int16, dtypes.int32, 16)
AVX512_VNNI_ALL = (
    AVX512_VNNI, AVX512_VNNI_TURNED, AVX512_VNNI_SIGNED, AVX512_VNNI_UNSIGNED, AVX512_VNNI_16)  # fmt: skip
AVX512_VNNI_PAIRED = tuple(
    dot_product(PAIRED + found.name, found.a, found.b, found.acc, 16) for found in AVX512_VNNI_ALL)
WITHOUT_SIGN = frozenset({AVX512_VNNI_SIGNED})
"""Instructions that are put together of others, of which one takes a first operand without a sign."""
AVX512_DOTS = (AVX512_BF16, *AVX512_VNNI_ALL, *AVX512_VNNI_PAIRED)

def tile_product(name: str, a: DType, b: DType, acc: DType) -> MatrixInstruction:
    """A product of two tile registers of 16 rows of 64 bytes, added to a third one.

    The first has a row of its matrix in each of its rows; the second as many terms of a column side by side as an
    element of the sum has room for, then those of the next column.

    Source: *Intel Architecture Instruction Set Extensions Programming Reference*, "TDPBF16PS", "TDPBSSD".

    >>> found = tile_product("tdpbf16ps", dtypes.bfloat16, dtypes.bfloat16, dtypes.float32)
    >>> found.shape, [fragment.count for fragment in found.fragments], found.fragments[1].place(35)
    ((16, 16, 32), [512, 512, 256], (3, 1))
    """
    side, together = (1, 2, 4, 8), acc.itemsize // a.itemsize
    near = tuple(1 << i for i in range(together.bit_length() - 1))
    far = tuple(together * s for s in side)
    fragments = (
        Fragment((*((0, s) for s in (*near, *far)), *((s, 0) for s in side))),
        Fragment((*((s, 0) for s in near), *((0, s) for s in side), *((s, 0) for s in far))),
        Fragment((*((0, s) for s in side), *((s, 0) for s in side))),
    )
    return MatrixInstruction(name, a, b, acc, (16, 16, 16 * together), fragments)


AMX_BF16 = tile_product("tdpbf16ps", dtypes.bfloat16, dtypes.bfloat16, dtypes.float32)
_BYTES = (("s", dtypes.int8), ("u", dtypes.uint8))
AMX_BYTES = tuple(
    tile_product(f"tdpb{first}{second}d", a, b, dtypes.int32)
    for first, a in _BYTES for second, b in _BYTES)
AMX_TILES = (AMX_BF16, *AMX_BYTES)

_WORDS = (dtypes.int16, dtypes.int8, dtypes.uint8)
"""Dtypes whose numbers are all numbers of int16."""


def _word_products(before: str = "") -> tuple[MatrixInstruction, ...]:
    """Products of pairs of int16, of which bytes are widened first (VPMADDWD, and VPADDD for the sum).

    VPMADDUBSW, which multiplies bytes, saturates what it adds up in 16 bits: 255 * 127 twice is more.
    """
    return tuple(
        dot_product(f"{before}vpmaddwd.{a.name}.{b.name}", a, b, dtypes.int32, 8, dtypes.int16)
        for a in _WORDS for b in _WORDS)


AVX2_WORDS = _word_products()
AVX2_DOTS = (*AVX2_WORDS, *_word_products(PAIRED))
WIDER_ROWS = frozenset(found for found in AVX2_WORDS if found.a.itemsize == 1)
"""Instructions that widen their first operand; for each there is one that takes it widened."""


WARP = 32
"""Threads that do a matrix instruction of a GPU together."""


def warp_product(name: str, a: DType, acc: DType, k: int, b: DType | None = None) -> MatrixInstruction:
    """An ``mma.sync`` with 16 rows and 8 columns, ``k`` deep.

    Registers have 4 bytes: ``near`` elements along the depth. Four threads have the depth of one row, or of one column;
    a second register of the first operand is 8 rows down, further ones are half of the depth on.

    Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" and following.
    """
    near = 4 // a.itemsize
    inside = tuple(1 << i for i in range(near.bit_length() - 1))
    half = ((0, k // 2),) if k > 4 * near else ()
    first = Fragment((*((0, s) for s in inside), (8, 0), *half), ((0, near), (0, 2 * near), (1, 0), (2, 0), (4, 0)))
    second = Fragment(
        (*((s, 0) for s in inside), *((s, 0) for _, s in half)), ((near, 0), (2 * near, 0), (0, 1), (0, 2), (0, 4)))
    total = Fragment(((0, 1), (8, 0)), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)))
    return MatrixInstruction(name, a, b or a, acc, (16, 8, k), (first, second, total), WARP)


# each with the compute capability that it needs
MMA = (
    (warp_product("m16n8k16.f32.f16.f16.f32", dtypes.float16, dtypes.float32, 16), 80),
    (warp_product("m16n8k8.f32.f16.f16.f32", dtypes.float16, dtypes.float32, 8), 75),
    (warp_product("m16n8k16.f32.bf16.bf16.f32", dtypes.bfloat16, dtypes.float32, 16), 80),
    (warp_product("m16n8k8.f32.bf16.bf16.f32", dtypes.bfloat16, dtypes.float32, 8), 80),
    (warp_product("m16n8k32.f32.e4m3.e4m3.f32", dtypes.fp8e4m3, dtypes.float32, 32), 89),
    (warp_product("m16n8k32.f32.e5m2.e5m2.f32", dtypes.fp8e5m2, dtypes.float32, 32), 89),
    (warp_product("m16n8k32.s32.s8.s8.s32", dtypes.int8, dtypes.int32, 32), 80),
    (warp_product("m16n8k32.s32.u8.u8.s32", dtypes.uint8, dtypes.int32, 32), 80),
)
MMA_TF32 = warp_product("m16n8k8.f32.tf32.tf32.f32", dtypes.float32, dtypes.float32, 8)


def tensor_cores(sm: int, tf32: bool = False) -> tuple[MatrixInstruction, ...]:
    """What an NVIDIA GPU of compute capability ``sm`` (``80`` is 8.0) has; products of fp32 in tf32 only if allowed.

    >>> [found.name for found in tensor_cores(75)]
    ['m16n8k8.f32.f16.f16.f32']
    """
    return (*(found for found, least in MMA if sm >= least), *((MMA_TF32,) if tf32 and sm >= 80 else ()))


_SIMDGROUP = Fragment(((0, 1),), ((0, 2), (1, 0), (2, 0), (0, 4), (4, 0)))


def simdgroup_product(dtype: DType) -> MatrixInstruction:
    """A product of two matrices of a SIMD-group of an Apple GPU, added to one of fp32: 8 rows and columns each.

    Source: Metal Shading Language Specification, "SIMD-group Matrix Data Types". It leaves open which thread holds
    which elements; that they are two neighbours of a row, and which, is known from programs that build on it (Apple's
    MLX among them).

    >>> [simdgroup_product(dtypes.float16).fragments[0].place(1, thread) for thread in (0, 1, 2, 8, 16)]
    [(0, 1), (0, 3), (1, 1), (0, 5), (4, 1)]
    """
    name = f"simdgroup8x8.{dtype.name}"
    return MatrixInstruction(name, dtype, dtype, dtypes.float32, (8, 8, 8), (_SIMDGROUP,) * 3, WARP)


SIMDGROUP = tuple(simdgroup_product(dtype) for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32))

INSTRUCTIONS = {found.name: found for found in (
    *AMX_TILES, *AVX512_DOTS, *AVX2_DOTS, *(found for found, _ in MMA), MMA_TF32, *SIMDGROUP)}  # fmt: skip
"""Every instruction by its name."""
