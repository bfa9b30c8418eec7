"""Narrow floats through integers and fp32: every code of them, against tg_dtype's exact conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tg_codegen.ir.text import parse_sink
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.ir.verify import verify
from tg_codegen.linear.interpret import interpret
from tg_codegen.machine.renderer import Renderer
from tg_codegen.machine.target import Target
from tg_codegen.rewrite.rules import full_rewrite
from tg_codegen.rewrite.rules.legalize import _shorten, decode, encode, legalize
from tg_dtype import DType, cast_scalar, dtypes, from_bits, to_bits, truncate
from tg_lazy import Ops

NARROW = [dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz, dtypes.float16, dtypes.bfloat16]
STORAGE = {1: dtypes.uint8, 2: dtypes.uint16}
OnArrays = Callable[..., Any]


class Without(Renderer):
    name = "WITHOUT"

    def __init__(self, *missing: DType) -> None:
        super().__init__(Target())
        self.missing = missing

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return ""

    def supports_dtype(self, dtype: DType) -> bool:
        return dtype not in self.missing


def operand(dtype: DType) -> UOp:
    return UOp(UOps.LOAD, dtype, (UOp(UOps.PARAM, dtype.ptr(), (), 0), const(0, dtypes.int32)))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_decoding_every_code(dtype: DType, on_arrays: OnArrays) -> None:
    storage = STORAGE[dtype.itemsize]
    x = operand(storage)
    codes = np.arange(1 << dtype.bits).astype(storage.name)
    got = on_arrays(decode(x, dtype), {x: codes})
    wanted = np.array([from_bits(int(code), dtype) for code in codes], dtype=np.float32)
    assert np.array_equal(got, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_encoding_rounds_to_nearest_even(dtype: DType, on_arrays: OnArrays) -> None:
    x = operand(dtypes.float32)
    codes = range(0, 1 << dtype.bits, 1 if dtype.bits == 8 else 61)
    exact = np.array([from_bits(code, dtype) for code in codes], dtype=np.float32)
    with np.errstate(all="ignore"):
        ordered = np.sort(exact[np.isfinite(exact)])
        between = (ordered[1:] + ordered[:-1]) / 2
        data = np.concatenate([
            exact, between, np.nextafter(between, np.float32(np.inf)), np.nextafter(between, np.float32(-np.inf)),
            np.random.default_rng(5).integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32),
            np.array([1e-45, -1e-45, 448, 464, 465, 480, 57344, 61440, 65504, 65519.99, 65520, 3.4e38], np.float32),
        ])  # fmt: skip
    got = on_arrays(encode(x, dtype), {x: data})
    for value, code in zip(data.tolist(), got.tolist(), strict=True):
        back = from_bits(code, dtype)
        wanted = truncate(value, dtype)
        assert (back != back and wanted != wanted) or to_bits(back, dtype) == to_bits(wanted, dtype), value


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64], ids=str)
def test_integers_round_once_without_fp64(dtype: DType, on_arrays: OnArrays) -> None:
    """fp32 in between must not round what bfloat16 then rounds again: beside its ties, and at random."""
    x = operand(dtype)
    numbers = {0, 1, int(dtypes.min(dtype)), int(dtypes.max(dtype))}
    for exponent in range(8, dtype.bits):
        tie = 1 << (exponent - 8)
        numbers |= {m * tie + by for m in (257, 259, 383, 509, 511) for by in (-1, 0, 1)}
    random = np.random.default_rng(3).integers(0, 2**63, 2000) >> np.arange(2000) % 60
    numbers |= {int(n) for n in random}
    numbers |= {-n for n in numbers}
    held = sorted(n for n in numbers if int(dtypes.min(dtype)) <= n <= int(dtypes.max(dtype)))
    with np.errstate(all="ignore"):
        short = on_arrays(_shorten(x), {x: np.array(held, dtype.name)})
    for value, near in zip(held, short.tolist(), strict=True):
        assert truncate(float(near), dtypes.float32) == near, value
        for narrow in (dtypes.bfloat16, dtypes.fp8e5m2):
            wanted = cast_scalar(value, dtype, narrow)
            assert truncate(float(near), narrow) == wanted or wanted != wanted, value


KERNEL = """
%0 = param[0] {d}*64
%1 = param[1] {d}*64
%i = range[i] int32 (0, 64)
%s = scratch[s, 64] {d}*64@reg
%x = load {d} (%1, %i)
%y = mul {d} (%x, 1.5:{d})
%put = store (%s, %i, %y)
%fill = loop (%i, %put)
%ready = after {d}*64@reg (%s, %fill)
%j = range[j] int32 (0, 64)
%z = load {d} (%ready, %j)
%odd = and int32 (%j, 1)
%g = cmpne bool (%odd, 0)
%old = load {d} (%1, %j, %g, 2.0:{d})
%w = add {d} (%z, %old)
%out = store (%0, %j, %w)
%copy = loop (%j, %out)
sink (%copy)
"""


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_a_kernel_is_right_within_its_precision(dtype: DType) -> None:
    sink = parse_sink(KERNEL.format(d=dtype.name))
    legal = legalize(sink, Without(dtype))
    verify(legal)
    assert all(u.dtype.base.scalar() is not dtype for u in legal.toposort())
    numbers = [truncate((n - 30) / 7, dtype) for n in range(64)]
    data = bytearray(b"".join(to_bits(n, dtype).to_bytes(dtype.itemsize, "little") for n in numbers))
    out = bytearray(len(data))
    interpret(legal, [out, data])
    _, mantissa = dtypes.finfo(dtype)
    for at, x in enumerate(numbers):
        code = int.from_bytes(out[at * dtype.itemsize : (at + 1) * dtype.itemsize], "little")
        wanted = x * 1.5 + (x if at % 2 else 2.0)
        assert from_bits(code, dtype) == pytest.approx(wanted, rel=2.0 ** -(mantissa + 1), abs=2.0**-8)


@pytest.mark.parametrize("source", [dtypes.float64, dtypes.int32, dtypes.uint64], ids=str)
def test_casts_round_once(source: DType, on_arrays: OnArrays) -> None:
    """Through fp32 rounded to odd, else 1 + 2**-8 + 2**-40 would round to 1 in bfloat16."""
    x = operand(source)
    out = UOp(UOps.PARAM, dtypes.bfloat16.ptr(1), (), 1)
    store = UOp(UOps.STORE, dtypes.void, (out, const(0, dtypes.int32), x.cast(dtypes.bfloat16)))
    legal = legalize(UOp(UOps.SINK, dtypes.void, (store,)), Without(dtypes.bfloat16))
    (bits,) = [u.src[2] for u in legal.src]
    if source is dtypes.float64:
        tie = 1 + 2.0**-8
        data = np.array([tie + 2.0**-40, tie, -tie - 2.0**-7 + 2.0**-40, 1e300, np.inf, np.nan, 0.1])
    else:
        data = np.array([(1 << 30) + (1 << 22) + 1, (1 << 30) + (1 << 22), 5, 0], dtype=source.name)
    got = on_arrays(bits, {x: data})
    for value, code in zip(data.tolist(), got.tolist(), strict=True):
        wanted = truncate(value, dtypes.bfloat16)
        assert code == to_bits(wanted, dtypes.bfloat16) or wanted != wanted


def test_bool_without_bool_in_memory() -> None:
    text = "%0 = param[0] bool*2\n%x = load bool (%0, 0)\n%y = not bool (%x)\n%s = store (%0, 1, %y)\nsink (%s)"
    sink = parse_sink(text)
    legal = legalize(sink, Without(dtypes.bool))
    verify(legal)
    out = bytearray([0, 7])
    interpret(legal, [out])
    assert out == bytearray([0, 1])


def test_what_is_there_stays() -> None:
    sink = parse_sink("%0 = param[0] float16*2\n%x = load float16 (%0, 0)\n%s = store (%0, 1, %x)\nsink (%s)")
    assert legalize(sink, Without(dtypes.bfloat16)) is sink


def test_transcendental_of_a_missing_dtype() -> None:
    class Plain(Without):
        def supports_op(self, op: Ops, dtype: DType) -> bool:
            return op is not Ops.EXP2

    text = "%0 = param[0] bfloat16*2\n%x = load bfloat16 (%0, 0)\n%y = exp2 bfloat16 (%x)\n%s = store (%0, 1, %y)\n"
    made = full_rewrite(parse_sink(text + "sink (%s)"), Plain(dtypes.bfloat16))
    verify(made)
    out = bytearray(to_bits(3.0, dtypes.bfloat16).to_bytes(2, "little") + bytes(2))
    interpret(made, [out])
    assert from_bits(int.from_bytes(out[2:], "little"), dtypes.bfloat16) == 8.0


def test_nothing_stands_for_float64() -> None:
    sink = parse_sink(KERNEL.format(d="float64"))
    with pytest.raises(ValueError, match="WITHOUT: this target has no float64"):
        legalize(sink, Without(dtypes.float64))
