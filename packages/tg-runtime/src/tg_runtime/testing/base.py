"""What the groups of the conformance class stand on: a device in force, values to test with, and comparisons."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import ClassVar
from unittest import SkipTest

from tg_dtype import ConstType, DType, dtypes, truncate
from tg_lazy import Context, LazyBuffer, Storage

from ..device.compiled import Compiled
from ..device.registry import Device
from ..memory.buffer import buffer_of
from .kernels import buffer_with, same, unpack

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 127.0, 1000.0, -65504.0, math.inf, -math.inf, math.nan)


class Absent(SkipTest):
    """A device has none of what a test is about. The message says of what; pytest reports a skip."""


class Group:
    """Tests of one subject. A subclass names it, and its methods ``test_…`` are the tests.

    Attributes:
      group: what the matrix of devices calls the subject; empty for classes that only share code.
      device: the device's name.
      dev: the ``DEV`` setting under which it is opened, ``CPU:CLANG``; empty for the device's own choice.
      dtypes: the dtypes to test with.
      subnormals: whether subnormal floats are kept.
      ulps: how far a transcendental function may be off, in units of the dtype's precision.
      launches: how many launches must leave nothing behind.
      replays: how often a graph is replayed without waiting.
    """

    group: ClassVar[str] = ""
    device = "NUMPY"
    dev = ""
    dtypes: tuple[DType, ...] = dtypes.all
    subnormals = True
    ulps = 8.0
    launches = 10_000
    replays = 200

    def setup_method(self) -> None:
        """Puts ``DEV`` in force."""
        self._context = Context(DEV=self.dev or self.device)
        self._context.__enter__()
        self.random = random.Random(0)

    def teardown_method(self) -> None:
        """Takes ``DEV`` back."""
        self._context.__exit__(None, None, None)

    # helpers

    def values(self, dtype: DType, count: int = 48) -> list[ConstType]:
        """Values that ``dtype`` holds: special ones first, then random ones."""
        r = self.random
        if dtypes.is_bool(dtype):
            return [r.random() < 0.5 for _ in range(count)]
        if dtypes.is_int(dtype):
            low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
            edge: list[ConstType] = [0, 1, low, high, high - 1, low + 1, 2, 7]
            return edge + [r.randint(low, high) if i % 2 else r.randint(0, 20) for i in range(count - len(edge))]
        edge = [truncate(v, dtype) for v in _SPECIAL]
        if self.subnormals:
            edge.append(truncate(2.0 ** -(1 << (dtypes.finfo(dtype)[0] - 1)), dtype))
        return edge + [truncate(r.uniform(-1, 1) * 2.0 ** r.randint(-6, 6), dtype) for _ in range(count - len(edge))]

    def check(
        self, what: str, got: Iterable[ConstType], want: Iterable[ConstType], rtol: float = 0.0, atol: float = 0.0
    ) -> None:
        """Fails with the first element that differs. On a device that executes nothing there is nothing to compare."""
        if not self.opened.executes:
            return
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert same(g, w, rtol, atol), f"{self.device} {what}: element {i} is {g!r}, {w!r} was expected"

    def precision(self, dtype: DType) -> float:
        """The relative spacing of a float type's values."""
        return 2.0 ** -dtypes.finfo(dtype)[1]

    @property
    def opened(self) -> Compiled:
        """The device."""
        return Device[self.device]

    def need(self, there: object, what: str) -> None:
        """Ends the test unless the device has what it is about.

        Raises:
          Absent: if it has not.
        """
        if not there:
            raise Absent(f"{self.device} has no {what}")

    def lazy(self, values: list[ConstType], dtype: DType, shape: tuple[int, ...]) -> LazyBuffer:
        """A LazyBuffer on the device that holds these values."""
        buffer = buffer_with(self.device, values, dtype)
        return LazyBuffer.from_storage(Storage(self.device, len(values), dtype, buffer), shape)

    def read(self, x: LazyBuffer) -> list[ConstType]:
        """The values of a realised LazyBuffer."""
        assert x.storage is not None
        return unpack(buffer_of(x.storage).as_buffer(), x.dtype)
