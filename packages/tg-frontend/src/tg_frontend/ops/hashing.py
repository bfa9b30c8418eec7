"""Hashes of bytes: the sponge functions of FIPS 202 ("SHA-3 Standard", NIST, 2015), many messages at once."""

from __future__ import annotations

from tg_dtype import dtypes

from ..array.array import A
from .above import Above
from .lookup import index_select
from .new import new_zeros
from .repetition import roll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LANES, _ROUNDS, _STATE = 25, 24, 200  # 64-bit lanes, rounds, bytes of Keccak-p[1600, 24]: sections 3.1, 3.4
_KINDS = {"sha3_224": (144, 0x06), "sha3_256": (136, 0x06), "shake_128": (168, 0x1F)}
"""Of each function the rate in bytes and the first byte of the padding, with its suffix: sections 6.1, 6.2, B.2."""
_MEGABYTE, _CHUNK, _DIGEST = 1 << 20, 4096, 16


def _offsets() -> list[int]:
    """By how many bits each lane x + 5 * y is rotated: algorithm 2, step 3."""
    out, x, y = [0] * _LANES, 1, 0
    for t in range(_ROUNDS):
        out[x + 5 * y] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return out


def _constants() -> list[int]:
    """What is added to the first lane in each round: algorithms 5 and 6."""
    out, register = [], 1
    for _ in range(_ROUNDS):
        constant = 0
        for j in range(7):
            constant |= (register & 1) << ((1 << j) - 1)
            register <<= 1
            register ^= 0x171 if register & 0x100 else 0
        out.append(constant)
    return out


def _sources() -> list[int]:
    """Which lane comes to each place: algorithm 3."""
    return [(x + 3 * y) % 5 + 5 * x for y in range(5) for x in range(5)]


def _rotated(x: A, left: Any, right: Any) -> A:
    out: A = (x << left) | (x >> right)
    return out


def _permuted(state: A, tables: tuple[A, A, A, A]) -> A:
    """Keccak-p[1600, 24] of states (count, 25)."""
    constants, sources, left, right = tables
    count = state.shape[0]

    def one(state: A, constant: A) -> tuple[A, None]:
        plane = state.reshape((count, 5, 5))  # (count, y, x)
        a, b, c, d, e = plane.unbind(1)
        column = a ^ b ^ c ^ d ^ e
        theta = roll(column, 1, 1) ^ _rotated(roll(column, -1, 1), 1, 63)
        plane = (plane ^ theta.unsqueeze(1)).contiguous()
        lanes = index_select(plane.reshape((count, _LANES)), 1, sources)
        moved = _rotated(lanes, left, right).reshape((count, 5, 5))
        plane = moved ^ (roll(moved, -1, 2).bitwise_not() & roll(moved, -2, 2))
        return plane.reshape((count, _LANES)) ^ constant, None

    out, _ = Above.scan(one, state, constants)
    return out  # type: ignore[no-any-return]


def keccak(x: A, cfg: str | tuple[int, int] = "sha3_256") -> A:
    """The hash of each message along the last axis.

    Args:
      cfg: ``"sha3_224"``, ``"sha3_256"``, ``"shake_128"``; or the rate in bytes, a multiple of 8 below 200, and the
        first byte of the padding: ``(72, 6)`` is SHA3-512.

    Returns:
      Shape (…, k) of uint8, k being (200 - rate) / 2: 28, 32 and 16 bytes.

    Raises:
      TypeError: if the elements are not uint8.
      ValueError: if there is no axis, or no such function.

    Example:
      >>> from tg_frontend import Tensor
      >>> bytes(Tensor(b"abc").keccak().tolist()).hex()[:16]
      '3a985da74fe225b2'
    """
    rate, suffix = _rate_of(cfg)
    if x.dtype is not dtypes.uint8:
        raise TypeError(f"keccak: messages are of uint8, got {x.dtype.name}; x.bitcast('uint8') has the bytes")
    if not x.ndim:
        raise ValueError("keccak: a message has an axis; got a tensor of shape ()")
    *lead, length = x._ints()
    count = 1
    for size in lead:
        count *= size
    missing = rate - length % rate
    padding = [suffix, *[0] * (missing - 1)]
    padding[-1] |= 0x80
    tail = type(x)(padding, device=x.device, dtype=dtypes.uint8).reshape((1, missing)).expand(count, missing)
    message = x.reshape((count, length)).cat(tail, dim=1)
    blocks = (length + missing) // rate
    lanes = message.contiguous().bitcast(dtypes.uint64).reshape((count, blocks, rate // 8))
    lanes = lanes.pad(((0, 0), (0, 0), (0, _LANES - rate // 8))).transpose(0, 1).contiguous()
    offsets, sources = _offsets(), _sources()
    tables = (
        type(x)([[c, *[0] * (_LANES - 1)] for c in _constants()], device=x.device, dtype=dtypes.uint64),
        type(x)(sources, device=x.device, dtype=dtypes.int32),
        type(x)([offsets[k] for k in sources], device=x.device, dtype=dtypes.uint64),
        type(x)([-offsets[k] % 64 for k in sources], device=x.device, dtype=dtypes.uint64),
    )
    state = new_zeros(x, count, _LANES, dtype=dtypes.uint64)

    def absorb(state: A, block: A) -> tuple[A, None]:
        return _permuted((state ^ block).contiguous(), tables), None

    if count:
        state, _ = Above.scan(absorb, state, lanes)
    size = (_STATE - rate) // 2
    out: A = state.contiguous().bitcast(dtypes.uint8).shrink((None, (0, size))).reshape((*lead, size))
    return out


def _rate_of(cfg: Any) -> tuple[int, int]:
    if isinstance(cfg, str) and cfg in _KINDS:
        return _KINDS[cfg]
    if isinstance(cfg, tuple) and len(cfg) == 2 and all(type(part) is int for part in cfg):
        rate, suffix = cfg
        if 0 < rate < _STATE and rate % 8 == 0 and 0 < suffix < 0x80:
            return rate, suffix
    raise ValueError(
        f"keccak: {cfg!r} is no hash: {', '.join(_KINDS)}, or a rate in bytes, a multiple of 8 below {_STATE}, and a "
        "byte of padding from 1 to 127"
    )


def hash(x: A) -> A:
    """16 bytes that tell tensors of other bytes apart, by a tree of SHAKE128: tinygrad's ``hash``.

    The bytes, filled with zeros to whole megabytes, are hashed in chunks of 4096; the hashes of a megabyte once more;
    and those of all megabytes likewise, until one is left. Zeros at the end, and shape and dtype, make no difference.

    Raises:
      ValueError: if there are no elements.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).hash().shape
      (16,)
    """
    if not all(x._ints()):
        raise ValueError(f"hash: a tensor of shape {x.shape} has no bytes")
    data = x.detach().reshape((-1,)).bitcast(dtypes.uint8)
    while True:
        count = -(-data._ints()[0] // _MEGABYTE)
        data = data.pad(((0, count * _MEGABYTE - data._ints()[0]),)).reshape((count * _MEGABYTE // _CHUNK, _CHUNK))
        data = keccak(keccak(data, "shake_128").reshape((count, _CHUNK)), "shake_128").reshape((count * _DIGEST,))
        if count == 1:
            return data
