"""Kernels stay inside of their buffers: conversions, tails and products of odd sizes against forbidden pages.

Every buffer ends (``CPU_GUARD=1``) or begins (``2``) at a page that may not be touched, and what a kernel writes to the
middle of a buffer must leave the elements beside it as they were. Every number has one right answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tg_dtype import ConstType, DType, cast_scalar, dtypes, truncate
from tg_frontend import Tensor, TinyJit
from tg_lazy import Context
from tg_runtime import Device, DevSyntaxError, parse_dev
from tg_shape import Variable

SETTINGS = [
    "CPU:LLVM", "CPU:LLVM:x86_64,x86-64-v2", "CPU:LLVM:x86_64,x86-64-v3", "CPU:LLVM:x86_64,x86-64-v4",
    "CPU:CLANG", "CPU:CLANG:x86_64,x86-64-v2", "CPU:CLANG:x86_64,x86-64-v4",
    "QEMU+CPU:LLVM:aarch64", "QEMU+CPU:CLANG:aarch64", "QEMU+CPU:LLVM:x86_64,x86-64-v2",
]  # fmt: skip
PRODUCTS = ["int8", "uint8", "int16", "bfloat16", "float16", "fp8e5m2", "fp8e4m3", "float32", "int32", "float64"]
SIZES = [1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 33, 37, 41, 63, 65, 67]


def missing(setting: str) -> str:
    """Why a device cannot be tested here; empty if it can."""
    try:
        (entry,) = parse_dev(setting)
        return Device.load(entry.device).unavailable(entry) or ""
    except DevSyntaxError as error:
        return str(error)


def need(setting: str) -> None:
    if missing(setting):
        pytest.skip(missing(setting))


def numbers(r: random.Random, dtype: DType, count: int) -> list[ConstType]:
    """Values of a dtype: small ones, extremes and ones between integers."""
    if dtypes.is_bool(dtype):
        return [r.random() < 0.5 for _ in range(count)]
    if dtypes.is_int(dtype):
        low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
        return [r.choice([low, high, r.randint(low, high), truncate(r.randint(-9, 9), dtype)]) for _ in range(count)]
    return [truncate(r.choice([r.uniform(-300, 300), 0.0, -0.0, 1e30, -1e30]), dtype) for _ in range(count)]


def same(got: Sequence[ConstType], want: Sequence[ConstType]) -> bool:
    return len(got) == len(want) and all(a == b or (a != a and b != b) for a, b in zip(got, want, strict=True))


def held(values: Sequence[ConstType], dtype: DType) -> Tensor:
    """A tensor with memory of its own."""
    return Tensor(list(values), dtype=dtype).contiguous().realize()


def convert(r: random.Random, src: DType, dst: DType, size: int) -> None:
    """A cast of a whole buffer, to a whole buffer and to the middle of another."""
    values = numbers(r, src, size)
    want = [cast_scalar(value, src, dst) for value in values]
    x = held(values, src)
    told = f"{src.name} to {dst.name}, {size} elements"
    got = x.cast(dst).contiguous().realize().tolist()
    assert same(got, want), f"{told}: {got}, not {want}"
    before, after = r.randint(0, 17), r.randint(0, 17)
    rest = numbers(r, dst, before + size + after)
    y = held(rest, dst)
    y[before : before + size] = x.cast(dst)
    want = [*rest[:before], *want, *rest[before + size :]]
    got = y.tolist()
    assert same(got, want), f"{told} from {before} on: {got}, not {want}"


def multiply(r: random.Random, dtype: DType, sides: tuple[int, int, int], turned: tuple[bool, bool]) -> None:
    """A product of matrices of small integers, which every dtype sums exactly until it rounds the result."""
    m, k, n = sides
    least = 0 if dtypes.is_unsigned(dtype) else -2
    a, b = ([[r.randint(least, 2) for _ in range(w)] for _ in range(h)] for h, w in ((m, k), (k, n)))
    want = [truncate(sum(x * y for x, y in zip(row, column, strict=True)), dtype)
            for row in a for column in zip(*b, strict=True)]  # fmt: skip
    operands = []
    for rows, other in ((a, turned[0]), (b, turned[1])):
        laid = [list(column) for column in zip(*rows, strict=True)] if other else rows
        flat = held([truncate(x, dtype) for row in laid for x in row], dtype).reshape(len(laid), len(laid[0]))
        operands.append(flat.permute(1, 0) if other else flat)
    got = (operands[0] @ operands[1]).cast(dtype).contiguous().realize().reshape(-1).tolist()
    assert same(got, want), f"{dtype.name} {m}x{k} @ {k}x{n}, turned {turned}: {got}, not {want}"


def total(r: random.Random, dtype: DType, rows: int, columns: int) -> None:
    """Sums of columns and of rows, and the greatest of each column."""
    least = 0 if dtypes.is_unsigned(dtype) else -3
    values = [[r.randint(least, 3) for _ in range(columns)] for _ in range(rows)]
    x = held([truncate(v, dtype) for row in values for v in row], dtype).reshape(rows, columns)
    columns_of = list(zip(*values, strict=True))
    told = f"{dtype.name} {rows}x{columns}"
    for axis, lines in ((0, columns_of), (1, values)):
        got = x.sum(axis).cast(dtype).contiguous().realize().tolist()
        assert same(got, [truncate(sum(line), dtype) for line in lines]), f"sum({axis}) of {told}: {got}"
    got = x.max(0).contiguous().realize().tolist()
    assert same(got, [truncate(max(line), dtype) for line in columns_of]), f"max(0) of {told}: {got}"


@pytest.mark.parametrize("guard", [1, 2])
@pytest.mark.parametrize("setting", SETTINGS[:1] + SETTINGS[4:5])
def test_a_sample(setting: str, guard: int) -> None:
    """Each narrow dtype from a wider one, with one element in its last vector; small products and sums."""
    need(setting)
    r = random.Random(guard)
    with Context(DEV=setting, CPU_GUARD=guard):
        for src, dst in [("float32", "int8"), ("int32", "int8"), ("float32", "bfloat16"), ("int64", "int16"),
                         ("float32", "fp8e4m3"), ("float32", "float16")]:  # fmt: skip
            convert(r, dtypes.from_name(src), dtypes.from_name(dst), r.choice([5, 9, 17]))
        for name in ("int8", "int16", "bfloat16"):
            multiply(r, dtypes.from_name(name), (3, 7, r.choice([9, 17])), (guard == 1, guard == 2))
        total(r, dtypes.int8, 7, 17)
        total(r, dtypes.bfloat16, 7, 9)


@pytest.mark.timeout(1800)
@pytest.mark.dense
@pytest.mark.parametrize("guard", [1, 2])
@pytest.mark.parametrize("setting", SETTINGS)
def test_everything(setting: str, guard: int) -> None:
    """Every pair of dtypes with sizes up to twice the widest vector, products and sums, drawn anew each time."""
    need(setting)
    seed = random.randrange(2**32)
    r = random.Random(seed)
    few = setting.startswith("QEMU")
    with Context(DEV=setting, CPU_GUARD=guard):
        try:
            pairs = [(src, dst) for src in dtypes.all for dst in dtypes.all]
            for src, dst in r.sample(pairs, 30) if few else pairs:
                convert(r, src, dst, r.choice([*SIZES, r.randint(1, 128)]))
            for name in PRODUCTS:
                for _ in range(1 if few else 5):
                    sides = (r.choice(SIZES), r.choice(SIZES), r.choice(SIZES))
                    multiply(r, dtypes.from_name(name), sides, (r.random() < 0.5, r.random() < 0.5))
                    total(r, dtypes.from_name(name), r.choice(SIZES), r.choice(SIZES))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None


@pytest.mark.parametrize("device", ["NUMPY", "CPU"])
def test_variables_stay_inside(device: str) -> None:
    """An index that a variable gives is looked at when its value is known, in each replay too."""
    with Context(DEV=device):
        n = Variable("n", 0, 4)
        x = Tensor([[0, 1, 2, 3], [4, 5, 6, 7]]).contiguous().realize()
        column = TinyJit(lambda x, n: (x[:, n] + 0).realize())
        first = TinyJit(lambda x, n: x[:, :n].sum().realize())
        for value in (1, 2, 3):
            assert column(x, n.bind(value)).tolist() == [value, 4 + value]
        for value in (1, 2, 4):
            assert first(x, n.bind(value)).item() == sum(range(value)) + sum(range(4, 4 + value))
        with pytest.raises(IndexError, match=r"n = 4 leads out of a buffer: elements 4 to 8 of 8"):
            column(x, n.bind(4))
        with pytest.raises(IndexError, match="which is 4, is out of range for axis 1"):
            x[:, n.bind(4)]
        with pytest.raises(IndexError, match="which is 4, is out of range for axis 1"):
            x[1, n.bind(4)] = 9
        with pytest.raises(ValueError, match="not within dimension 1"):
            x[:, : Variable("m", 1, 9).bind(9)]
        assert x.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("device", ["NUMPY", "CPU"])
def test_an_8_bit_float_without_infinity_has_a_largest(device: str) -> None:
    with Context(DEV=device):
        held = Tensor([1e6, -1e6, 464.0, 465.0, float("inf"), float("-inf"), 3.0]).realize()
        largest = [448.0, -448.0, 448.0, 448.0, 448.0, -448.0, 3.0]
        assert held.cast("fp8e4m3").tolist() == largest
        assert Tensor.full((1,), 1e6, dtype="fp8e4m3").tolist() == [448.0]
        assert Tensor([1e6, -1e6, 464.0, 465.0, float("inf"), float("-inf"), 3.0], dtype="fp8e4m3").tolist() == largest
        assert Tensor([float("nan")]).realize().cast("fp8e4m3").isnan().tolist() == [True]
        assert held.cast("fp8e5m2").tolist()[0] == float("inf")
