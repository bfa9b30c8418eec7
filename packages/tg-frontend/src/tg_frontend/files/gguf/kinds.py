"""The kinds of tensors in a GGUF file: numbers, and blocks of quantised ones.

Source: ggml's ``enum ggml_type``. Numbers that are missing are of kinds that were withdrawn, or that no file holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tg_dtype import DType, dtypes

from ...tensor import Tensor
from . import blocks


@dataclass(frozen=True)
class Kind:
    """One kind.

    Attributes:
      name: as ggml writes it.
      elements: how many a block has.
      nbytes: the size of a block.
      dtype: of the tensor that is loaded.
      decode: blocks as float32; None where the bytes are the elements.
    """

    name: str
    elements: int
    nbytes: int
    dtype: DType
    decode: Callable[[Tensor], Tensor] | None = None


def _plain(name: str, dtype: DType) -> Kind:
    return Kind(name, 1, dtype.itemsize, dtype)


def _block(name: str, elements: int, nbytes: int) -> Kind:
    return Kind(name, elements, nbytes, dtypes.float32, getattr(blocks, name.lower()))


KINDS: dict[int, Kind] = {
    0: _plain("F32", dtypes.float32),
    1: _plain("F16", dtypes.float16),
    2: _block("Q4_0", 32, 18),
    3: _block("Q4_1", 32, 20),
    6: _block("Q5_0", 32, 22),
    7: _block("Q5_1", 32, 24),
    8: _block("Q8_0", 32, 34),
    10: _block("Q2_K", 256, 84),
    11: _block("Q3_K", 256, 110),
    12: _block("Q4_K", 256, 144),
    13: _block("Q5_K", 256, 176),
    14: _block("Q6_K", 256, 210),
    16: _block("IQ2_XXS", 256, 66),
    17: _block("IQ2_XS", 256, 74),
    18: _block("IQ3_XXS", 256, 98),
    19: _block("IQ1_S", 256, 50),
    20: _block("IQ4_NL", 32, 18),
    21: _block("IQ3_S", 256, 110),
    22: _block("IQ2_S", 256, 82),
    23: _block("IQ4_XS", 256, 136),
    24: _plain("I8", dtypes.int8),
    25: _plain("I16", dtypes.int16),
    26: _plain("I32", dtypes.int32),
    27: _plain("I64", dtypes.int64),
    28: _plain("F64", dtypes.float64),
    29: _block("IQ1_M", 256, 56),
    30: _plain("BF16", dtypes.bfloat16),
    34: _block("TQ1_0", 256, 54),
    35: _block("TQ2_0", 256, 66),
    39: _block("MXFP4", 32, 17),
    40: _block("NVFP4", 64, 36),
}
