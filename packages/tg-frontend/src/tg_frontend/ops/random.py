"""Random numbers: Threefry-2x32 with 20 rounds, a function of a key and a counter, with no state on the device.

Every call draws its own stream: the seed gives the key, the number of the call is one counter word, the position of
an element the other. So the numbers depend on the seed and on the order of the calls only; not on when they are
computed, on which device, or in which kernels. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011.
"""

from __future__ import annotations

import math
from threading import Lock, local

from tg_dtype import DType, dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import buffer_of, capturing
from tg_shape import prod, sint, upper

from ..array.core import DTypeLike
from ..array.ingest import placed, sure_of
from ..host import transfer
from ..host.coerce import to_dtype
from ..memory import disk
from .creation import checked_shape
from .sorting import Sorting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF
_KEY_WORDS = 3
_STATE_NBYTES = 16
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


def _outside_of_a_record(what: str) -> None:
    if capturing():
        raise RuntimeError(
            f"{what}: inside of a function while TinyJit records it; a replay draws on and would not do this again: "
            "do it outside of the function"
        )


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


def random_words(shape: tuple[sint, ...], device: str) -> Words:
    """Two independent uniform words for each element, uint32, from a stream of their own.

    Raises:
      ValueError: there are more than 2**32 elements.
    """
    size = prod(shape)
    if upper(size) > 1 << 32:
        raise ValueError(f"rand: shape {shape} has more than 2**32 elements")
    stream = _stream(device)
    flat = (size,)
    words = [stream.shrink(((i, i + 1),)).expand(flat) for i in range(_KEY_WORDS)]
    place = LazyBuffer.iota(size, dtypes.uint32, device)
    low, high = threefry((words[0], words[1]), (place, words[2]))
    return low.reshape(shape), high.reshape(shape)


def _uniform(words: Words, dtype: DType) -> LazyBuffer:
    """As many random bits as the dtype has digits, as a fraction from 0 to below 1."""
    digits = dtypes.finfo(dtype)[1] + 1
    low, high = words
    if digits <= 32:
        bits = low.alu(Ops.SHR, low.const_like(32 - digits)).cast(dtype if digits > 24 else dtypes.float32)
        return bits.alu(Ops.MUL, bits.const_like(2.0**-digits)).cast(dtype)
    a = high.alu(Ops.SHR, high.const_like(64 - digits)).cast(dtype)
    b = low.cast(dtype)
    return a.alu(Ops.MUL, a.const_like(2.0 ** (32 - digits))).alu(Ops.ADD, b.alu(Ops.MUL, b.const_like(2.0**-digits)))


class Random(Sorting):
    """Random tensors. They are reproducible: see :meth:`manual_seed`."""

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Makes the random numbers that follow a function of ``seed``. Without it, each process draws its own.

        Example:
            >>> from tg_frontend import Tensor
            >>> Tensor.manual_seed(42)
            >>> a = Tensor.rand(3, device="NUMPY")
            >>> Tensor.manual_seed(42)
            >>> (a == Tensor.rand(3, device="NUMPY")).all().item()
            True
        """
        _outside_of_a_record("manual_seed")
        STREAMS.reseed(seed)

    @classmethod
    def get_rng_state(cls) -> Self:
        """Where the random numbers are: seed and count of draws, 16 bytes (uint8), to be saved and restored.

        There is one state for all devices, as the numbers do not depend on the device. A replay of TinyJit counts the
        same draws as a call of the function would.

        Raises:
          RuntimeError: TinyJit is recording; a replay would not read it again.

        Example:
            >>> from tg_frontend import Tensor
            >>> state = Tensor.get_rng_state()
            >>> a = Tensor.rand(3, device="NUMPY")
            >>> Tensor.set_rng_state(state)
            >>> (a == Tensor.rand(3, device="NUMPY")).all().item()
            True
        """
        _outside_of_a_record("get_rng_state")
        return cls(STREAMS.state(), device=disk.HOST)

    @staticmethod
    def set_rng_state(state: Any) -> None:
        """Goes on with the random numbers where :meth:`get_rng_state` read the state.

        Args:
          state: the tensor that it gave, on any device, or its 16 bytes.

        Raises:
          ValueError: it is no such state.
          RuntimeError: TinyJit is recording; a replay would not set it again.
        """
        _outside_of_a_record("set_rng_state")
        raw = state.to(disk.HOST).data() if isinstance(state, Random) else state
        data = bytes(raw) if isinstance(raw, (bytes, bytearray, memoryview)) else b""
        if len(data) != _STATE_NBYTES:
            raise ValueError(f"set_rng_state: {_STATE_NBYTES} bytes of get_rng_state are wanted, got {state!r}")
        STREAMS.restore(data)

    @classmethod
    def _random(cls, shape: tuple[sint, ...], device: str | None, dtype: DTypeLike | None, what: str) -> Self:
        kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
        if kind.kind != "float":
            raise TypeError(f"{what}: random fractions are floats, not {kind.name}; there is randint")
        return cls._wrap(_uniform(random_words(shape, placed(device)), kind), None)

    def _finish(self, requires_grad: bool | None) -> Self:
        out = self.detach().contiguous()
        out.requires_grad = requires_grad
        return out

    @classmethod
    def rand(
        cls, *shape: Any, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
    ) -> Self:
        """Uniform from 0 to below 1.

        Raises:
          ValueError: a size is negative.
          TypeError: the dtype is no float.
        """
        return cls._random(checked_shape(shape, "rand"), device, dtype, "rand")._finish(requires_grad)

    @classmethod
    def uniform(
        cls,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Uniform from ``low`` to below ``high``.

        Raises:
          ValueError: ``low`` is above ``high``, or one is not finite.
        """
        if not (low <= high and math.isfinite(high - low)):
            raise ValueError(f"uniform: from {low} to {high} is no range")
        kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
        wide = dtypes.float32 if kind.kind == "float" and kind.itemsize < 4 else kind
        unit = cls._random(checked_shape(shape, "uniform"), device, wide, "uniform")
        return (unit * (high - low) + low).cast(kind)._finish(requires_grad)

    @classmethod
    def _gauss(cls, shape: tuple[sint, ...], device: str | None, dtype: DTypeLike | None, what: str) -> Self:
        kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
        if kind.kind != "float":
            raise TypeError(f"{what}: the dtype must be a float, not {kind.name}")
        wide = dtypes.float64 if kind.itemsize == 8 else dtypes.float32
        u, v = (cls._random(shape, device, wide, what) for _ in range(2))
        return ((1 - u).log() * -2).sqrt() * (v * (2 * math.pi)).cos()

    @classmethod
    def randn(
        cls, *shape: Any, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
    ) -> Self:
        """Normal with mean 0 and standard deviation 1.

        Raises:
          ValueError: a size is negative.
          TypeError: the dtype is no float.
        """
        kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
        return cls._gauss(checked_shape(shape, "randn"), device, kind, "randn").cast(kind)._finish(requires_grad)

    @classmethod
    def normal(
        cls,
        *shape: Any,
        mean: float = 0.0,
        std: float = 1.0,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Normal with the given mean and standard deviation.

        Raises:
          ValueError: the standard deviation is negative or NaN.
        """
        if not std >= 0:
            raise ValueError(f"normal: a standard deviation is 0 or more, got {std}")
        kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
        unit = cls._gauss(checked_shape(shape, "normal"), device, kind, "normal")
        return (unit * std + mean).cast(kind)._finish(requires_grad)

    @classmethod
    def randint(
        cls,
        *shape: Any,
        low: int = 0,
        high: int = 10,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Integers from ``low`` to below ``high``, each as likely to within (high - low) / 2**32.

        Raises:
          ValueError: the range is empty, or wider than 2**32.
          TypeError: a bound or the dtype is no integer.
        """
        kind = to_dtype(dtype) if dtype is not None else dtypes.default_int
        if not isinstance(low, int) or not isinstance(high, int) or not dtypes.is_int(kind):
            raise TypeError(f"randint: bounds and dtype are integers, got {low!r}, {high!r} and {kind.name}")
        if not 0 < high - low <= 1 << 32:
            raise ValueError(f"randint: from {low} to below {high} are {high - low} numbers; 1 to 2**32 are possible")
        if low < dtypes.min(kind) or high - 1 > dtypes.max(kind):
            raise ValueError(f"randint: {low} to {high - 1} do not fit {kind.name}")
        words = random_words(checked_shape(shape, "randint"), placed(device))[0]
        wide = cls._wrap(words)
        if high - low < 1 << 32:
            wide = wide % (high - low)
        # wraps to the right number for a negative low
        return (wide.cast(kind) + low)._finish(requires_grad)

    @classmethod
    def scaled_uniform(
        cls, *shape: Any, device: str | None = None, dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:  # fmt: skip
        """Uniform from -1 to 1, over the square root of the number of elements."""
        sizes = checked_shape(shape, "scaled_uniform")
        bound = _number(prod(sizes), "scaled_uniform") ** -0.5 if prod(sizes) != 0 else 0.0
        return cls.uniform(*sizes, low=-bound, high=bound, device=device, dtype=dtype, requires_grad=requires_grad)

    @classmethod
    def glorot_uniform(
        cls, *shape: Any, device: str | None = None, dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:  # fmt: skip
        """Uniform within sqrt(6 / (fan in + fan out)); the first axis is the fan out.

        Raises:
          ValueError: the shape is ().
        """
        sizes = checked_shape(shape, "glorot_uniform")
        if not sizes:
            raise ValueError("glorot_uniform: a shape () has no fans")
        bound = math.sqrt(6 / max(1, _number(sizes[0] + prod(sizes[1:]), "glorot_uniform")))
        return cls.uniform(*sizes, low=-bound, high=bound, device=device, dtype=dtype, requires_grad=requires_grad)

    @classmethod
    def kaiming_uniform(
        cls, *shape: Any, a: float = 0.01, device: str | None = None, dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:  # fmt: skip
        """Uniform within sqrt(6 / ((1 + a**2) * fan in)); the first axis is the fan out."""
        sizes = checked_shape(shape, "kaiming_uniform")
        bound = math.sqrt(6 / (1 + a * a) / max(1, _number(prod(sizes[1:]), "kaiming_uniform")))
        return cls.uniform(*sizes, low=-bound, high=bound, device=device, dtype=dtype, requires_grad=requires_grad)

    @classmethod
    def kaiming_normal(
        cls, *shape: Any, a: float = 0.01, device: str | None = None, dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> Self:  # fmt: skip
        """Normal with standard deviation sqrt(2 / ((1 + a**2) * fan in)); the first axis is the fan out."""
        sizes = checked_shape(shape, "kaiming_normal")
        std = math.sqrt(2 / (1 + a * a) / max(1, _number(prod(sizes[1:]), "kaiming_normal")))
        return cls.normal(*sizes, std=std, device=device, dtype=dtype, requires_grad=requires_grad)

    @classmethod
    def randperm(cls, n: int, device: str | None = None, dtype: DTypeLike | None = None) -> Self:
        """The integers from 0 to n - 1 in random order. The work grows with n squared.

        Raises:
          ValueError: ``n`` is negative.
        """
        sizes = checked_shape((n,), "randperm")
        words = cls._wrap(random_words(sizes, placed(device))[0].contiguous())
        return words.argsort().cast(to_dtype(dtype) if dtype is not None else dtypes.default_int)

    def rand_like(
        self, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
    ) -> Self:
        """Uniform from 0 to below 1, in this tensor's shape, dtype and device, unless others are given."""
        name, kind = self._like(device, dtype)
        return type(self).rand(*self.shape, device=name, dtype=kind, requires_grad=requires_grad)

    def randn_like(
        self, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
    ) -> Self:
        """Normal with mean 0 and deviation 1, in this tensor's shape, dtype and device, unless others are given."""
        name, kind = self._like(device, dtype)
        return type(self).randn(*self.shape, device=name, dtype=kind, requires_grad=requires_grad)

    def _dropped(self, p: float) -> Self:
        return self.dropout(p)

    def dropout(self, p: float = 0.5) -> Self:
        """In training: elements dropped (0) with probability ``p``, the others over 1 - p. Else the tensor itself.

        Raises:
          ValueError: ``p`` is not between 0 and 1.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: {p!r} is not a probability")
        if not type(self).training or p == 0:
            return self
        if p == 1:
            return self * 0
        keep = (self._random(self.shape, self.device, dtypes.float32, "dropout") >= p).contiguous()
        return keep.where(self, 0) * (1 / (1 - p))

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Positions drawn with the elements as weights (of each row of a matrix): int32, (…, num_samples).

        The weights are computed at once and looked at, but for those inside of a TinyJit: there a row of weights from
        which nothing can be drawn gives -1.

        Raises:
          ValueError: the shape has not one or two axes; a weight is negative, infinite or NaN; a row has none above 0,
            or without replacement fewer than are drawn.
        """
        if not 1 <= self.ndim <= 2 or num_samples < 1:
            raise ValueError(f"multinomial: {num_samples!r} samples of weights of shape {self.shape}")
        weights = self.detach()._floating().cast(dtypes.float32).contiguous()
        least = 1 if replacement else num_samples
        n = sure_of(weights.shape[-1], least, weights.shape)
        if isinstance(n, int) and n < least:
            raise ValueError(f"multinomial: {num_samples} samples of {n} without replacement")
        above = (weights > 0).sum(-1, keepdim=True)
        bad = ((weights >= 0) & (weights < math.inf)).logical_not().any(-1, keepdim=True)
        bad = bad | (above < (1 if replacement else num_samples))
        if not capturing():
            weights.realize()
            if bad.any().item():
                few = "" if replacement else f", and {num_samples} of them at least"
                raise ValueError(f"multinomial: weights are finite and not negative, some in each row above 0{few}")
            return weights._draw(num_samples, replacement)
        return bad.where(-1, weights._draw(num_samples, replacement))

    def _draw(self, num_samples: int, replacement: bool) -> Self:
        """Positions drawn with these float32 weights."""
        weights = self
        *lead, n = weights.shape
        if not replacement:
            # The least of exponential times, one for each element at a rate of its weight, is that element's turn.
            times = -(1 - weights.rand_like()).log() / weights
            return times.topk(num_samples, largest=False)[1]
        sums = weights.cumsum(-1)
        total = sums.shrink([*(None for _ in lead), (n - 1, n)])
        points = type(self).rand(*lead, num_samples, 1, device=self.device) * total.unsqueeze(-1)
        passed = (sums.unsqueeze(-2) <= points).sum(-1, dtype=dtypes.int32)
        return passed.minimum(n - 1)


def _number(size: sint, what: str) -> int:
    if not isinstance(size, int):
        raise ValueError(f"{what}: the number of elements is symbolic: {size}")
    return size
