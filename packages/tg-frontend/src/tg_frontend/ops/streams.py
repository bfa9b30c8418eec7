"""Random words: Threefry-2x32 with 20 rounds, a function of a key and a counter, with no state on the device.

Every call draws its own stream: the seed gives the key, the number of the call is one counter word, the position of
an element the other. So the numbers depend on the seed and on the order of the calls only; not on when they are
computed, on which device, or in which kernels. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011.
"""

from __future__ import annotations

from threading import Lock, local

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import buffer_of
from tg_shape import prod, sint, upper

from ..host import transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF
_KEY_WORDS = 3
Words = tuple[LazyBuffer, LazyBuffer]


class Streams:
    """Where the next call draws from.

    Attributes:
      seed: 64 bits.
      calls: how many streams were given out since it was set.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.seed: int | None = None
        self.calls = 0

    def reseed(self, seed: int) -> None:
        """Begins anew with another seed."""
        with self._lock:
            self.seed, self.calls = seed & ((1 << 64) - 1), 0

    def _seeded(self) -> int:
        if self.seed is None:
            from os import urandom

            self.seed = int.from_bytes(urandom(8), "little")
        return self.seed

    def draw(self) -> bytes:
        """Key and call number of the next stream, three little-endian words."""
        with self._lock:
            seed = self._seeded()
            call, self.calls = self.calls, self.calls + 1
            return seed.to_bytes(8, "little") + (call & _WORD).to_bytes(4, "little")

    def state(self) -> bytes:
        """Seed and number of calls, two little-endian words of 64 bits."""
        with self._lock:
            return self._seeded().to_bytes(8, "little") + self.calls.to_bytes(8, "little")

    def restore(self, state: bytes) -> None:
        """Goes on where :meth:`state` was read."""
        with self._lock:
            self.seed, self.calls = int.from_bytes(state[:8], "little"), int.from_bytes(state[8:], "little")


class _Recording(local):
    into: list[Storage] | None = None


class Drawing(local):
    """Which streams were drawn, and which are to be drawn again.

    Attributes:
      into: where new streams are noted; None if nowhere.
      again: streams that are given out once more, one after another, in place of new ones; None for new ones.
    """

    into: list[LazyBuffer] | None = None
    again: Iterator[LazyBuffer] | None = None


STREAMS = Streams()
RECORDING = _Recording()
"""While a function is captured: the memory of the streams that it draws, to be renewed before each replay."""
DRAWING = Drawing()


def renew(storage: Storage) -> None:
    """Gives a captured stream the numbers of a new call."""
    buffer_of(storage).copyin(memoryview(STREAMS.draw()))


def _stream(device: str) -> LazyBuffer:
    if DRAWING.again is not None:
        lazy = next(DRAWING.again, None)
        if lazy is None or lazy.device != device:
            raise RuntimeError("random numbers are drawn again, but more of them, or on another device")
    else:
        lazy = transfer.upload(memoryview(STREAMS.draw()), dtypes.uint32, (_KEY_WORDS,), device)
        if RECORDING.into is not None and lazy.storage is not None:
            RECORDING.into.append(lazy.storage)
    if DRAWING.into is not None:
        DRAWING.into.append(lazy)
    return lazy


def threefry(key: Words, counter: Words) -> Words:
    """Two random words for each pair of counter words; all of one shape and uint32."""
    parity = key[0].alu(Ops.XOR, key[1]).alu(Ops.XOR, key[0].const_like(_PARITY))
    keys = (*key, parity)
    x0, x1 = counter[0].alu(Ops.ADD, key[0]), counter[1].alu(Ops.ADD, key[1])
    for group in range(5):
        for places in _ROTATIONS[group % 2]:
            x0 = x0.alu(Ops.ADD, x1)
            left, right = x1.const_like(places), x1.const_like(32 - places)
            x1 = x1.alu(Ops.SHL, left).alu(Ops.OR, x1.alu(Ops.SHR, right)).alu(Ops.XOR, x0)
        x0 = x0.alu(Ops.ADD, keys[(group + 1) % 3])
        x1 = x1.alu(Ops.ADD, keys[(group + 2) % 3]).alu(Ops.ADD, x1.const_like(group + 1))
    return x0, x1


class Stream:
    """Random words for each element of a shape, which may be asked for again.

    Args:
      shape: of the elements.
      device: where they are computed.

    Raises:
      ValueError: if there are more than 2**32 elements.
    """

    def __init__(self, shape: tuple[sint, ...], device: str) -> None:
        if upper(prod(shape)) > 1 << 32:
            raise ValueError(f"rand: shape {shape} has more than 2**32 elements")
        self.shape, self.device, self._drawn = shape, device, _stream(device)

    def words(self) -> Words:
        """Two independent uniform words for each element, uint32."""
        low, high = self._at(LazyBuffer.iota(prod(self.shape), dtypes.uint32, self.device))
        return low.reshape(self.shape), high.reshape(self.shape)

    def words_along(self, place: LazyBuffer) -> Words:
        """The two words of one element of each row along the last axis.

        Args:
          place: which one: the shape but for its last axis, whose size is no symbol.
        """
        *lead, last = self.shape
        size = prod(lead)
        start = LazyBuffer.iota(size, dtypes.uint32, self.device)
        start = start.alu(Ops.MUL, start.const_like(upper(last)))
        low, high = self._at(start.alu(Ops.ADD, place.reshape((size,)).cast(dtypes.uint32)))
        return low.reshape(tuple(lead)), high.reshape(tuple(lead))

    def _at(self, place: LazyBuffer) -> Words:
        """The words at positions (count,)."""
        words = [self._drawn.shrink(((i, i + 1),)).expand(place.shape) for i in range(_KEY_WORDS)]
        return threefry((words[0], words[1]), (place, words[2]))


def random_words(shape: tuple[sint, ...], device: str) -> Words:
    """Two independent uniform words for each element, uint32, from a stream of their own.

    Raises:
      ValueError: if there are more than 2**32 elements.
    """
    return Stream(shape, device).words()


def uniform_fractions(words: Words, dtype: DType) -> LazyBuffer:
    """As many random bits as the dtype has digits, as a fraction from 0 to below 1."""
    digits = dtypes.finfo(dtype)[1] + 1
    low, high = words
    if digits <= 32:
        bits = low.alu(Ops.SHR, low.const_like(32 - digits)).cast(dtype if digits > 24 else dtypes.float32)
        return bits.alu(Ops.MUL, bits.const_like(2.0**-digits)).cast(dtype)
    a = high.alu(Ops.SHR, high.const_like(64 - digits)).cast(dtype)
    b = low.cast(dtype)
    return a.alu(Ops.MUL, a.const_like(2.0 ** (32 - digits))).alu(Ops.ADD, b.alu(Ops.MUL, b.const_like(2.0**-digits)))
