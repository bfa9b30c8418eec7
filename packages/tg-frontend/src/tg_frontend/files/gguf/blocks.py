"""Blocks of quantised weights as tensor expressions, which fuse into the kernel that uses the weights.

A decoder takes blocks, uint8 of shape (..., nbytes), and gives float32 of shape (..., elements). Words are
little-endian and put together of bytes, since a block of 18 bytes aligns nothing. Source: ggml's ``ggml-common.h``,
which lays out the blocks, and the package ``gguf``, against whose ``quants.dequantize`` the tests compare.
"""

from __future__ import annotations

from tg_dtype import dtypes

from ...host import transfer
from ...tensor import Tensor
from .grids import grid

_FP4 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
"""The values of e2m1, doubled."""
_NONLINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_SEVENS = (0, 7, 14, 21)
_BITS = tuple(range(8))
_CRUMBS = (0, 2, 4, 6)
_NIBBLES = (0, 4)


def _fields(x: Tensor, shifts: tuple[int, ...], mask: int, dim: int = -1) -> Tensor:
    """Bit fields of each element, along a new axis."""
    first, *rest = (x >> shift if shift else x for shift in shifts)
    return first.stack(*rest, dim=dim) & mask


def _words(x: Tensor, nbytes: int) -> Tensor:
    """Words of 2 or 4 bytes: shape (..., n * nbytes) to (..., n)."""
    dtype = dtypes.uint16 if nbytes == 2 else dtypes.uint32
    out = x[..., ::nbytes].cast(dtype)
    for k in range(1, nbytes):
        out = out | (x[..., k::nbytes].cast(dtype) << 8 * k)
    return out


def _half(x: Tensor, at: int) -> Tensor:
    """The float16 at a byte of each block: shape (..., 1)."""
    return _words(x[..., at : at + 2], 2).bitcast("float16").float()


def _split(x: Tensor, *shape: int) -> Tensor:
    """The last axis of blocks as several."""
    return x.reshape(*x.shape[:-1], *shape)


def _joined(x: Tensor, axes: int) -> Tensor:
    """The last axes as one."""
    return x.flatten(-axes)


def _halves(x: Tensor, run: int) -> Tensor:
    """Digits of 4 bits: for each run of bytes the low ones, then the high ones."""
    return _joined(_fields(_split(x, -1, run), _NIBBLES, 15, -2), 3)


def _wide_halves(x: Tensor, run: int) -> Tensor:
    """As :func:`_halves`, of 32 bits: both digits of a byte that is widened once, as they have to be to become floats.

    AVX2 cuts and converts two digits in six instructions so, and in eight where the bytes are cut first.
    """
    return _halves(x.cast("int32"), run)


def _quarters(x: Tensor, run: int) -> Tensor:
    """Digits of 2 bits: for each run of bytes four times as many, the low ones first."""
    return _joined(_fields(_split(x, -1, run), _CRUMBS, 3, -2), 3)


def _pairs(x: Tensor) -> Tensor:
    """Digits of 4 bits, both of a byte beside each other."""
    return _joined(_fields(x, _NIBBLES, 15), 2)


def _bits(x: Tensor) -> Tensor:
    """Bits of the bytes, each byte's beside each other."""
    return _joined(_fields(x, _BITS, 1), 2)


def _planes(x: Tensor) -> Tensor:
    """Bits of the bytes: the lowest of all bytes, then the next."""
    return _joined(_fields(x, _BITS, 1, -2), 2)


def _signed(x: Tensor, less: int) -> Tensor:
    return (x.cast("int8") - less).float()


def _scaled(scales: Tensor, values: Tensor) -> Tensor:
    """Values times the scale of their run: shapes (..., runs) and (..., n)."""
    return _joined(scales.unsqueeze(-1) * _split(values, scales._ints()[-1], -1), 2)


def _table(values: tuple[int, ...], index: Tensor) -> Tensor:
    return Tensor(list(values), dtype="int8", device=index.device)[index.cast("int32")].float()


def _grid(name: str, index: Tensor) -> Tensor:
    """The points of a grid at indices: shape (..., n) to (..., n * axes of a point)."""
    points, shape = grid(name)
    values = Tensor(transfer.upload(memoryview(points), dtypes.int8, shape, index.device, borrow=True))
    return _joined(values[index.cast("int32")].float(), 2)


def _signs(bits: Tensor) -> Tensor:
    """1 for a bit that is 0 and -1 for one that is 1, of bytes."""
    return 1.0 - 2.0 * _bits(bits).float()


def _even(x: Tensor) -> Tensor:
    """Seven bits and an eighth that makes the number of ones even."""
    folded = x ^ (x >> 4)
    folded = folded ^ (folded >> 2)
    folded = folded ^ (folded >> 1)
    return (x | ((folded & 1) << 7)).cast("uint8")


def q4_0(x: Tensor) -> Tensor:
    return (_wide_halves(x[..., 2:], 16) - 8).float() * _half(x, 0)


def q4_1(x: Tensor) -> Tensor:
    return _half(x, 0) * _wide_halves(x[..., 4:], 16).float() + _half(x, 2)


def q5_0(x: Tensor) -> Tensor:
    return _half(x, 0) * _signed(_halves(x[..., 6:], 16) | (_bits(x[..., 2:6]) << 4), 16)


def q5_1(x: Tensor) -> Tensor:
    return _half(x, 0) * (_halves(x[..., 8:], 16) | (_bits(x[..., 4:8]) << 4)).float() + _half(x, 2)


def q8_0(x: Tensor) -> Tensor:
    return x[..., 2:].bitcast("int8").float() * _half(x, 0)


def q2_k(x: Tensor) -> Tensor:
    scale, least = _half(x, 80) * (x[..., :16] & 15).float(), _half(x, 82) * (x[..., :16] >> 4).float()
    values = _split(_quarters(x[..., 16:80], 32), 16, 16).float()
    return _joined(scale.unsqueeze(-1) * values - least.unsqueeze(-1), 2)


def q3_k(x: Tensor) -> Tensor:
    low, high = _halves(x[..., 96:104], 8), _quarters(x[..., 104:108], 4)
    values = _quarters(x[..., 32:96], 32) | (_planes(x[..., :32]) << 2)
    return _scaled(_half(x, 108) * _signed(low | (high << 4), 32), _signed(values, 4))


def _packed_scales(x: Tensor) -> tuple[Tensor, Tensor]:
    """Eight scales and eight minima of 6 bits in 12 bytes, times those of the block, with an axis for the elements."""
    first, second, third = x[..., 4:8], x[..., 8:12], x[..., 12:16]
    scale = (first & 63).cat((third & 15) | ((first >> 6) << 4), dim=-1)
    least = (second & 63).cat((third >> 4) | ((second >> 6) << 4), dim=-1)
    return (_half(x, 0) * scale.float()).unsqueeze(-1), (_half(x, 2) * least.float()).unsqueeze(-1)


def q4_k(x: Tensor) -> Tensor:
    scale, least = _packed_scales(x)
    return _joined(scale * _split(_wide_halves(x[..., 16:], 32), 8, 32).float() - least, 2)


def q5_k(x: Tensor) -> Tensor:
    scale, least = _packed_scales(x)
    values = _halves(x[..., 48:], 32) | (_planes(x[..., 16:48]) << 4)
    return _joined(scale * _split(values, 8, 32).float() - least, 2)


def q6_k(x: Tensor) -> Tensor:
    values = _halves(x[..., :128], 64) | (_quarters(x[..., 128:192], 32) << 4)
    return _scaled(_half(x, 208) * x[..., 192:208].bitcast("int8").float(), _signed(values, 32))


def tq1_0(x: Tensor) -> Tensor:
    """Digits of base 3 as a fraction of 256: times a power of 3 modulo 256 it begins with the digit."""
    parts = []
    for begin, end, powers in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        first, *rest = (x[..., begin:end] * 3**k for k in range(powers))
        parts.append(_joined(first.stack(*rest, dim=-2), 2))
    digits = (parts[0].cat(*parts[1:], dim=-1).cast("uint16") * 3) >> 8
    return _half(x, 52) * _signed(digits, 1)


def tq2_0(x: Tensor) -> Tensor:
    return _half(x, 64) * _signed(_quarters(x[..., :64], 32), 1)


def mxfp4(x: Tensor) -> Tensor:
    exponent = x[..., :1].cast("uint32")  # of half the scale, since the values are doubled; below 2 it is a denormal
    bits = (exponent < 2).where((exponent + 1) << 21, (exponent.maximum(1) - 1) << 23)
    return bits.bitcast("float32") * _table(_FP4, _halves(x[..., 1:], 16))


def nvfp4(x: Tensor) -> Tensor:
    code = x[..., :4].cast("uint32")
    exponent, fraction = (code >> 3) & 15, code & 7
    normal = (((exponent + 119) << 23) | (fraction << 20)).bitcast("float32")
    scale = (exponent == 0).where(fraction.float() * 2.0**-10, normal)
    scale = ((code == 0) | (code == 127)).where(0.0, scale)
    return _scaled(scale, _table(_FP4, _halves(x[..., 4:], 8)))


def iq2_xxs(x: Tensor) -> Tensor:
    groups = _split(x[..., 2:], 8, 8)
    words = _words(groups[..., 4:], 4)[..., 0]
    scale = _half(x, 0) * (0.5 + (words >> 28).float()) * 0.25
    values = _grid("IQ2_XXS", _joined(groups[..., :4], 2))
    return _scaled(scale, values) * _signs(_joined(_even(_fields(words, _SEVENS, 127)), 2))


def iq2_xs(x: Tensor) -> Tensor:
    words = _words(x[..., 2:66], 2)
    scale = _half(x, 0) * (0.5 + _pairs(x[..., 66:]).float()) * 0.25
    return _scaled(scale, _grid("IQ2_XS", words & 511)) * _signs(_even(words >> 9))


def iq2_s(x: Tensor) -> Tensor:
    scale = _half(x, 0) * (0.5 + _pairs(x[..., 74:]).float()) * 0.25
    high = _joined(_fields(x[..., 66:74], _CRUMBS, 3), 2).cast("uint16")
    index = x[..., 2:34].cast("uint16") | (high << 8)
    return _scaled(scale, _grid("IQ2_S", index)) * _signs(x[..., 34:66])


def iq3_xxs(x: Tensor) -> Tensor:
    words = _words(x[..., 66:], 4)
    scale = _half(x, 0) * (0.5 + (words >> 28).float()) * 0.5
    signs = _signs(_joined(_even(_fields(words, _SEVENS, 127)), 2))
    return _scaled(scale, _grid("IQ3_XXS", x[..., 2:66])) * signs


def iq3_s(x: Tensor) -> Tensor:
    scale = _half(x, 0) * (1 + 2 * _pairs(x[..., 106:])).float()
    index = x[..., 2:66].cast("uint16") | (_bits(x[..., 66:74]).cast("uint16") << 8)
    return _scaled(scale, _grid("IQ3_S", index)) * _signs(x[..., 74:106])


def iq1_s(x: Tensor) -> Tensor:
    words = _words(x[..., 34:], 2)
    scale = _half(x, 0) * (2 * ((words >> 12) & 7) + 1).float()
    index = x[..., 2:34].cast("uint16") | (_joined(_fields(words, (0, 3, 6, 9), 7), 2) << 8)
    shift = 0.125 - 0.25 * (words >> 15).float()
    return _scaled(scale, _joined(_split(_grid("IQ1_S", index), 8, 32) + shift.unsqueeze(-1), 2))


def iq1_m(x: Tensor) -> Tensor:
    words, nibbles = _words(x[..., 48:], 2), _pairs(x[..., 32:48])
    tops = words >> 12  # a digit of the block's float16 each
    bits = tops[..., :1] | (tops[..., 1:2] << 4) | (tops[..., 2:3] << 8) | (tops[..., 3:] << 12)
    scale = bits.bitcast("float16").float() * (2 * _joined(_fields(words, (0, 3, 6, 9), 7), 2) + 1).float()
    index = x[..., :32].cast("uint16") | ((nibbles & 7).cast("uint16") << 8)
    shift = 0.125 - 0.25 * (nibbles >> 3).float()
    return _scaled(scale, _joined(_split(_grid("IQ1_S", index), 32, 8) + shift.unsqueeze(-1), 2))


def iq4_nl(x: Tensor) -> Tensor:
    return _half(x, 0) * _table(_NONLINEAR, _halves(x[..., 2:], 16))


def iq4_xs(x: Tensor) -> Tensor:
    high = _joined(_fields(_words(x[..., 2:4], 2), tuple(range(0, 16, 2)), 3), 2).cast("uint8")
    scale = _half(x, 0) * _signed(_pairs(x[..., 4:8]) | (high << 4), 32)
    return _scaled(scale, _table(_NONLINEAR, _halves(x[..., 8:], 16)))
