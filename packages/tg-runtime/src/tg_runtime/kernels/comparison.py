"""Whether a program computes what the plain kernel does: search may pick what is fastest of those only.

Both run on the same inputs, patterns of small numbers: sums of these are exact in whatever order they are taken, so
most results have to agree to the last bit. Integers always have to. Where floats differ, they may by rounding: by some
units of the narrowest float in the kernel, growing with the square root of how many terms are added, of the largest
result. Where results are what is left when large terms cancel, no order of summation agrees with another that well;
the heuristic's program, which is looked at first, then tells that it takes the terms' size for a measure. Where the
plain kernel would take long, the planned one stands in for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite, isnan, prod, sqrt
from typing import Any

from tg_dtype import ConstType, DType, dtypes, from_bits, to_bits, truncate
from tg_lazy import ALU, LazyOp, Ops
from tg_shape import Variable, upper

from ..memory.buffer import Buffer

PERIOD = 4099  # elements after which inputs repeat: a prime, so that no loop has the same ones in each iteration
CHUNK = 1 << 16  # elements that are compared at once: few enough for the second-level cache
MOST_BOUND = 1.0e308  # infinity is near nothing
KEPT_BYTES = 1 << 28  # of inputs, which are kept from one comparison to the next
UNITS = 4  # in the last place, for each square root of a number of terms


Run = Callable[[Mapping[Variable, int]], object]
"""Runs a program on the buffers, with values of the kernel's variables."""


class WrongResult(RuntimeError):
    """A program computes something else than the plain kernel."""


class Comparison:
    """The results of one kernel on some inputs, to compare other programs' results with.

    Args:
      ast: the kernel.
      buffers: memory for its arguments, which is written to.
      run: runs the plain kernel on ``buffers`` with given values of the variables.
    """

    def __init__(self, ast: LazyOp, buffers: Sequence[Buffer], run: Run) -> None:
        self.buffers = buffers
        self.written = sorted({store.arg[0] for store in ast.src if not ast.arg[store.arg[0]].internal})
        variables = sorted(ast.variables(), key=lambda v: v.name)
        values = [{v: pick(v) for v in variables} for pick in (_middle, _greatest, _least)]
        self.trials = [(0, values[0]), (1, values[1]), *([(1, values[2])] if variables else [])]
        self.bound = rounding(ast)
        self.lax: bool | None = None
        self.wanted: list[list[bytearray]] = []
        self.kept: dict[tuple[bool, int], bytes] = {}
        for number, here in self.trials:
            self.fill(number)
            run(here)
            self.wanted.append(self.results())

    def fill(self, number: int) -> None:
        """Puts the inputs of a trial into the buffers; outputs hold numbers that the kernel has to replace."""
        for slot, buffer in enumerate(self.buffers):
            data = self.kept.get((number > 0, slot))
            if data is None:
                data = pattern(buffer.dtype, buffer.size, signed=number > 0, seed=slot)
                if sum(map(len, self.kept.values())) + len(data) <= KEPT_BYTES:
                    self.kept[number > 0, slot] = data
            buffer.copyin(memoryview(data))

    def results(self) -> list[bytearray]:
        """What the outputs hold, with what the kernel leaves as it is."""
        found = [bytearray(self.buffers[slot].nbytes) for slot in self.written]
        for slot, data in zip(self.written, found, strict=True):
            self.buffers[slot].copyout(memoryview(data))
        return found

    def check(self, run: Run) -> None:
        """Runs another program.

        Raises:
          WrongResult: if its results are others.
        """
        differ: list[tuple[DType, bytearray, bytearray]] = []
        for (number, values), wanted in zip(self.trials, self.wanted, strict=True):
            self.fill(number)
            run(values)
            differ += [(self.buffers[slot].dtype, got, want)
                       for slot, got, want in zip(self.written, self.results(), wanted, strict=True) if got != want]
        lax, self.lax = self.lax, bool(self.lax)
        problem = self.problem(differ, bool(lax))
        if problem and lax is None and not self.problem(differ, True):
            self.lax = True
            return
        if problem:
            raise WrongResult(problem)

    def problem(self, differ: Sequence[tuple[DType, bytearray, bytearray]], lax: bool) -> str:
        """How results differ by more than they may; empty if they do not."""
        for dtype, got, want in differ:
            found = difference(dtype, got, want, self.bound, 1.0 if lax else 0.0)
            if found:
                return found
        return ""


def _middle(variable: Variable) -> int:
    return (variable.vmin + variable.vmax) // 2


def _least(variable: Variable) -> int:
    return variable.vmin


def _greatest(variable: Variable) -> int:
    return variable.vmax


def rounding(ast: LazyOp) -> float:
    """By how much of the largest result two orders of a kernel's operations may differ.

    >>> from tg_lazy import ast as A
    >>> from tg_shape import ShapeTracker
    >>> total = A.reduce(A.load(0, dtypes.float32, ShapeTracker.from_shape((1024,))), Ops.ADD, (0,))
    >>> rounding(total) == 4 * 32 * 2.0**-23
    True
    """
    computed = rounded = 0.0
    for node in ast.toposort():
        if dtypes.is_float(node.dtype) and (node.op in ALU or node.op is Ops.REDUCE):
            unit = 2.0 ** -dtypes.finfo(node.dtype.scalar())[1]
            if node.op is Ops.CAST:
                rounded = max(rounded, unit)
            else:
                computed = max(computed, unit)
    return max(UNITS * sqrt(_terms(ast)) * computed, 2 * rounded)


def _terms(ast: LazyOp) -> int:
    """How many terms the longest chain of reductions adds, at most."""
    counts = [1]
    for node in ast.toposort():
        if node.op is Ops.REDUCE:
            shape = node.src[0].shape
            counts.append(prod(upper(shape[n]) for n in node.arg[1]))
    return prod(counts)


def pattern(dtype: DType, count: int, signed: bool, seed: int) -> bytes:
    """Small numbers of a dtype, the same ones each time.

    >>> list(pattern(dtypes.uint8, 6, signed=False, seed=0))
    [4, 4, 2, 2, 3, 2]
    """
    period = _period(dtype, signed, seed)
    return (period * -(-count // PERIOD))[: count * dtype.itemsize]


@lru_cache(maxsize=256)
def _period(dtype: DType, signed: bool, seed: int) -> bytes:
    """The numbers that a pattern repeats: drawn once, and not for each candidate of a search."""
    draw = random.Random(seed)
    low = 0 if not signed or dtypes.is_unsigned(dtype) else -3
    choices = [0, 1] if dtypes.is_bool(dtype) else [*range(low, 4)] if signed else [1, 2, 3, 4]
    coded = [to_bits(truncate(n, dtype), dtype).to_bytes(dtype.itemsize, "little") for n in choices]
    return b"".join(draw.choices(coded, k=PERIOD))


def difference(dtype: DType, got: bytes | bytearray, want: bytes | bytearray, relative: float, least: float) -> str:
    """Where elements differ by more than rounding does; empty if nowhere.

    Args:
      dtype: of the elements.
      got: bytes.
      want: as many bytes.
      relative: how much floats may differ by, of the largest of ``want``.
      least: what counts as the largest where that is smaller.

    >>> difference(dtypes.int32, b"\\1\\0\\0\\0", b"\\2\\0\\0\\0", 0.5, 0.0)
    'element 0 is 1, and should be 2; 1 of 1 differ'
    """
    try:
        import numpy as np
    except ImportError:  # slow, where there are many elements
        mine, other = _numbers(dtype, got), _numbers(dtype, want)
        most = max((abs(x) for x in other if isfinite(x)), default=0.0)
        bound = relative * max(least, most) if dtypes.is_float(dtype) else 0
        bad: Any = [n for n, (a, b) in enumerate(zip(mine, other, strict=True)) if a != b and not _close(a, b, bound)]
    else:
        bad, mine, other = _apart(np, dtype, got, want, relative, least)
    if not len(bad):
        return ""
    at = bad[0]
    return f"element {at} is {mine[at]}, and should be {other[at]}; {len(bad)} of {len(got) // dtype.itemsize} differ"


def _apart(
    np: Any, dtype: DType, got: bytes | bytearray, want: bytes | bytearray, relative: float, least: float
) -> tuple[Any, Any, Any]:
    """The numbers of elements that differ, and the elements; what is in pieces stays in the caches."""
    step = CHUNK * dtype.itemsize
    spans = [slice(at, at + step) for at in range(0, len(got), step)]
    mine, other = memoryview(got), memoryview(want)
    bound = 0.0
    if dtypes.is_float(dtype):
        sizes = (np.abs(_array(np, dtype, other[span])) for span in spans)
        bound = relative * max([least, *(float(np.max(size, initial=0.0, where=np.isfinite(size))) for size in sizes)])
    found = []
    for number, span in enumerate(spans):
        if mine[span] == other[span]:
            continue
        a, b = _array(np, dtype, mine[span]), _array(np, dtype, other[span])
        apart = a != b
        if dtypes.is_float(dtype):
            with np.errstate(invalid="ignore"):
                apart &= ~(np.isnan(a) & np.isnan(b)) & ~(np.abs(a - b) <= min(bound, MOST_BOUND))
        found.append(np.flatnonzero(apart) + number * CHUNK)
    bad = np.concatenate(found) if found else np.zeros(0, np.int64)
    values = [_array(np, dtype, data) if len(bad) else () for data in (mine, other)]
    return bad, *values


def _close(a: ConstType, b: ConstType, bound: float) -> bool:
    if isnan(a) or isnan(b):
        return isnan(a) and isnan(b)
    return isfinite(a) and isfinite(b) and abs(a - b) <= bound < inf


def _numbers(dtype: DType, data: bytes | bytearray) -> Sequence[ConstType]:
    width = dtype.itemsize
    return [from_bits(int.from_bytes(data[at : at + width], "little"), dtype) for at in range(0, len(data), width)]


def _array(np: Any, dtype: DType, data: memoryview) -> Any:
    """Elements as numpy's, floats as float64."""
    if not dtypes.is_float(dtype):
        return np.frombuffer(data, np.dtype(dtype.name))
    if dtype.itemsize == 1:
        table = np.array([from_bits(bits, dtype) for bits in range(256)], np.float64)
        return table[np.frombuffer(data, np.uint8)]
    if dtype is dtypes.bfloat16:
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.frombuffer(data, np.dtype(dtype.name)).astype(np.float64)
