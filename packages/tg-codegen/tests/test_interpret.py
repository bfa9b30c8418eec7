"""The reference interpreter: exactness, and every fault that it must notice."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tg_codegen.ir.scalar import evaluate, multiply_add
from tg_codegen.ir.text import parse, parse_linear
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.linear.interpret import KernelFault, interpret
from tg_dtype import ConstType, DType, dtypes, from_bits, to_bits, truncate
from tg_lazy import ALU, SPEC, DTypeRule, Ops
from tg_shape import Variable


def leaf(dtype: DType, number: int) -> UOp:
    return UOp(UOps.LOAD, dtype, (UOp(UOps.PARAM, dtype.ptr(), (), number), const(0, dtypes.int32)))


NUMPY = {
    Ops.NEG: np.negative, Ops.RECIP: np.reciprocal, Ops.SQRT: np.sqrt, Ops.TRUNC: np.trunc, Ops.ADD: np.add,
    Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum, Ops.CMPLT: np.less,
    Ops.CMPEQ: np.equal, Ops.CMPNE: np.not_equal, Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor, Ops.NOT: np.invert, Ops.SHL: np.left_shift, Ops.SHR: np.right_shift,
}  # fmt: skip
KINDS = {
    DTypeRule.SAME_FLOAT: ("float",),
    DTypeRule.SAME_INT: ("int", "uint", "bool"),
    DTypeRule.SHIFT: ("int", "uint"),
}
NUMBERS: dict[DType, list[ConstType]] = {
    dtypes.int8: [-128, -3, -1, 0, 1, 5, 127],
    dtypes.uint16: [0, 1, 9, 65535],
    dtypes.int64: [-(2**63), -1, 0, 3, 2**63 - 1],
    dtypes.float32: [0.0, -0.0, 1.5, -2.25, 1e30, 3e-41, float("inf"), float("nan")],
    dtypes.float16: [0.0, 1.5, -65504.0, 6e-8, float("-inf")],
    dtypes.float64: [0.1, -1e308, 5e-324, float("nan")],
    dtypes.bool: [False, True],
}


@pytest.mark.parametrize("op", NUMPY, ids=lambda op: op.name.lower())
def test_ops_agree_with_numpy(op: Ops) -> None:
    row, tried = SPEC[op], 0
    for dtype, numbers in NUMBERS.items():
        if dtype.kind not in KINDS.get(row.rule, (dtype.kind,)):
            continue
        if dtypes.is_bool(dtype) and op in (Ops.NEG, Ops.SUB):
            continue  # numpy has no such op on bool
        leaves = [leaf(dtype, n) for n in range(row.arity)]
        root = leaves[0].alu(op, *leaves[1:])
        for a in numbers:
            for b in numbers if row.arity == 2 else [None]:
                if row.rule is DTypeRule.SHIFT:
                    b = abs(int(b or 0)) % dtype.bits
                operands = [a] if b is None else [a, b]
                held = [truncate(x, dtype) for x in operands]
                with np.errstate(all="ignore"):
                    wanted = NUMPY[op](*(np.array(x, dtype.name) for x in held))
                got = evaluate(root, *held)
                same = got == wanted or (got != got and wanted != wanted)
                assert same, (dtype, held, got, wanted)
                tried += 1
    assert tried


def test_every_elementwise_op_can_be_evaluated() -> None:
    for op in ALU - {Ops.CAST, Ops.BITCAST}:
        row = SPEC[op]
        dtype = dtypes.int32 if row.rule in (DTypeRule.SAME_INT, DTypeRule.SHIFT) else dtypes.float32
        if row.rule is DTypeRule.SELECT:
            root = leaf(dtypes.bool, 0).alu(op, leaf(dtype, 1), leaf(dtype, 2))
            assert evaluate(root, True, 1.0, 2.0) == 1.0
        else:
            root = leaf(dtype, 0).alu(op, *(leaf(dtype, n) for n in range(1, row.arity)))
            evaluate(root, *[1] * row.arity)


def test_integer_division_is_that_of_c() -> None:
    x, y = leaf(dtypes.int8, 0), leaf(dtypes.int8, 1)
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2), (-128, -1), (5, 0)]
    assert [evaluate(x.alu(Ops.IDIV, y), a, b) for a, b in pairs] == [3, -3, -3, 3, -128, 0]
    assert [evaluate(x.alu(Ops.MOD, y), a, b) for a, b in pairs] == [1, -1, 1, -1, 0, 0]


def test_shifts_beyond_the_width_give_zero() -> None:
    x = leaf(dtypes.uint8, 0)
    assert evaluate(x.alu(Ops.SHL, x), 1, 9) == 0 and evaluate(x.alu(Ops.SHR, x), 128, 8) == 0


def test_casts_and_bitcasts() -> None:
    x = leaf(dtypes.float32, 0)
    assert [evaluate(x.cast(dtypes.int8), v) for v in (-1.9, 300.0, float("nan"))] == [-1, 127, 0]
    assert evaluate(x.bitcast(dtypes.uint32), -0.0) == 1 << 31


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
def test_multiply_add_rounds_once(dtype: DType) -> None:
    _, mantissa = dtypes.finfo(dtype)
    e = 2.0**-mantissa
    assert multiply_add(1 + e, 1 - e, -1.0, dtype) == -(e * e) or dtype is dtypes.float16
    assert multiply_add(3.0, 5.0, -15.0, dtype) == 0
    assert multiply_add(float("inf"), 1.0, 1.0, dtype) == float("inf")
    assert multiply_add(float(dtypes.finfo(dtype)[0]), 2.0, 0.5, dtype) == 2 * dtypes.finfo(dtype)[0] + 0.5
    tiny = float(from_bits(1, dtype))
    assert multiply_add(tiny, 0.5, tiny, dtype) == 2 * tiny  # 1.5 units, to even
    if dtype is not dtypes.float64:
        for k in range(200):
            a, b, c = (float(truncate((k * m % 37 - 18) / 7 * 2.0 ** (k % 9), dtype)) for m in (3, 5, 11))
            assert multiply_add(a, b, c, dtype) == pytest.approx(float(truncate(a * b + c, dtype)), rel=2 * e, abs=tiny)
    huge = float(from_bits(to_bits(float("inf"), dtype) - 1, dtype))
    assert multiply_add(huge, 2.0, 1.0, dtype) == float("inf")


ADD = """
%0 = param[0] {d}*8
%1 = param[1] {d}*8
%i = range[i] int32 (0, 8)
  %x = load {d} (%1, %i)
  %y = add {d} (%x, %x)
  store (%0, %i, %y)
endrange (%i)
"""


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_every_dtype_in_memory(dtype: DType) -> None:
    numbers = [truncate(n, dtype) for n in range(8)]
    data = bytearray(b"".join(to_bits(n, dtype).to_bytes(dtype.itemsize, "little") for n in numbers))
    out = bytearray(len(data))
    interpret(parse(ADD.format(d=dtype.name)), [out, data])
    got = [from_bits(int.from_bytes(out[n * dtype.itemsize :][: dtype.itemsize], "little"), dtype) for n in range(8)]
    assert got == [truncate(n or n if dtypes.is_bool(dtype) else n + n, dtype) for n in numbers]


def ints(*values: int) -> bytearray:
    return bytearray(struct.pack(f"<{len(values)}i", *values))


def test_loops_with_steps_and_no_iterations() -> None:
    text = """
%0 = param[0] int32*8
%n = var[n=0..8] int32
%i = range[i] int32 (0, %n, 3)
  store (%0, %i, 7)
endrange (%i)
"""
    for n, wanted in ((0, [0] * 8), (1, [7] + [0] * 7), (8, [7, 0, 0, 7, 0, 0, 7, 0])):
        out = ints(*[0] * 8)
        interpret(parse(text), [out], {"n": n})
        assert memoryview(out).cast("i").tolist() == wanted
    interpret(parse(text), [ints(*[0] * 8)], {Variable("n", 0, 8): 3})
    with pytest.raises(ValueError, match="variable n was given no value"):
        interpret(parse(text), [ints(*[0] * 8)])


def test_vectors_and_lane_gates() -> None:
    text = """
%0 = param[0] int32*8
%1 = param[1] int32*4
%x = load int32x4 (%1, 0)
%g = cmplt boolx4 (%x, 3:int32x4)
%y = load int32x4 (%1, 2, %g, -1:int32x4)
%r = gep[3, 2, 1, 0] int32x4 (%y)
store (%0, 0, %r)
store (%0, 6, %x, %g)
"""
    out = ints(*[9] * 8)
    interpret(parse_linear(text), [out, ints(1, 2, 3, 4)])
    assert memoryview(out).cast("i").tolist() == [-1, -1, 4, 3, 9, 9, 1, 2]


def test_registers_keep_their_value() -> None:
    text = """
%0 = param[0] int32*4
%i = range[i] int32 (0, 4)
%k = range[k] int32 (0, %i)
%a = acc[0] int32 (100, %i)
%b = add int32 (%a, %k)
%s = assign (%a, %b)
%inner = loop (%k, %s)
%r = read int32 (%a, %inner)
%out = store (%0, %i, %r)
%outer = loop (%i, %out)
sink (%outer)
"""
    out = ints(*[0] * 4)
    interpret(parse(text), [out])
    assert memoryview(out).cast("i").tolist() == [100, 100, 101, 103]


@pytest.mark.parametrize(("index", "what"), [("8", "element 8"), ("-1", "element -1")])
def test_access_out_of_range(index: str, what: str) -> None:
    data = bytearray(32)
    with pytest.raises(KernelFault, match=f"LOAD of .*PARAM.*: {what} of slot 0, which has 8"):
        interpret(parse_linear(f"%0 = param[0] float32*8\n%x = load float32 (%0, {index})\nstore (%0, 0, %x)"), [data])
    with pytest.raises(KernelFault, match=f"STORE of .*: {what} of slot 0, which has 8"):
        interpret(parse_linear(f"%0 = param[0] float32*8\nstore (%0, {index}, 1.0)"), [data])
    interpret(parse_linear(f"%0 = param[0] float32*8\nstore (%0, {index}, 1.0, false)"), [data])


def test_the_size_of_the_type_counts_even_in_a_larger_buffer() -> None:
    with pytest.raises(KernelFault, match="elements 6 to 9 of slot 0, which has 8"):
        text = "%0 = param[0] float32*8\n%x = load float32x4 (%0, 6)\nstore (%0, 0, %x)"
        interpret(parse_linear(text), [bytearray(64)])


def test_buffers_that_do_not_fit() -> None:
    kernel = parse_linear("%0 = param[0] float32*8\nstore (%0, 0, 1.0)")
    with pytest.raises(ValueError, match="slot 0 needs 8 elements of float32, the buffer holds 7"):
        interpret(kernel, [bytearray(28)])
    with pytest.raises(ValueError, match="slot 0 was given no buffer; there are 0"):
        interpret(kernel, [])


def test_scratch_that_was_not_written() -> None:
    text = """
%0 = param[0] float32*8
%s = scratch[tile, 4] float32*4@reg
store (%s, 1, 2.0)
%x = load float32 (%s, {at})
store (%0, 0, %x)
"""
    interpret(parse_linear(text.format(at=1)), [bytearray(32)])
    with pytest.raises(KernelFault, match="element 2 of scratch tile was never written"):
        interpret(parse_linear(text.format(at=2)), [bytearray(32)])


REVERSE = """
%0 = param[0] int32*8
%1 = param[1] int32*8
%g = special[gidx0, 2] int32
%l = special[lidx0, 4] int32
%s = scratch[tile, 4] int32*4@local
%b = mul int32 (%g, 4)
%at = add int32 (%b, %l)
%x = load int32 (%1, %at)
%put = store (%s, %l, %x)
{barrier}
%r = sub int32 (3, %l)
%y = load int32 ({tile}, %r)
store (%0, %at, %y)
"""


def test_work_groups_share_memory_across_a_barrier() -> None:
    text = REVERSE.format(barrier="%f = barrier[0] (%put)\n%t = after int32*4@local (%s, %f)", tile="%t")
    out = ints(*[0] * 8)
    interpret(parse_linear(text), [out, ints(*range(8))])
    assert memoryview(out).cast("i").tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    half = ints(*[0] * 8)
    interpret(parse_linear(text), [half, ints(*range(8))], global_size=(1, 1, 1))
    assert memoryview(half).cast("i").tolist() == [3, 2, 1, 0, 0, 0, 0, 0]


def test_a_missing_barrier_is_a_fault() -> None:
    with pytest.raises(KernelFault, match=r"never written|race"):
        interpret(parse_linear(REVERSE.format(barrier="", tile="%s")), [bytearray(32), ints(*range(8))])


def test_a_race_on_written_memory() -> None:
    text = """
%0 = param[0] int32*4
%l = special[lidx0, 4] int32
%s = scratch[tile, 4] int32*4@local
{writes}
"""
    with pytest.raises(KernelFault, match="race: work-item 1 writes element 0 of scratch tile, which work-item 0 uses"):
        interpret(parse_linear(text.format(writes="store (%s, 0, %l)")), [bytearray(16)])
    interpret(parse_linear(text.format(writes="store (%s, 0, 5)")), [bytearray(16)])  # all write the same
    late = "store (%s, %l, %l)\nbarrier[0]\n%x = load int32 (%s, 0)\nstore (%s, 0, 8)\nstore (%0, %l, %x)"
    with pytest.raises(KernelFault, match="race"):
        interpret(parse_linear(text.format(writes=late)), [bytearray(16)])


def test_a_barrier_that_some_do_not_reach() -> None:
    text = """
%l = special[lidx0, 4] int32
%c = cmplt bool (%l, 2)
%i = if[0] (%c)
barrier[0]
endif (%i)
"""
    with pytest.raises(KernelFault, match="do not all reach the same barrier"):
        interpret(parse_linear(text), [])


def test_threads() -> None:
    text = "%0 = param[0] int32*4\n%c = special[core_id, 4] int32\nstore (%0, %c, %c)"
    out = ints(9, 9, 9, 9)
    interpret(parse_linear(text), [out])
    assert memoryview(out).cast("i").tolist() == [0, 1, 2, 3]
    out = ints(9, 9, 9, 9)
    interpret(parse_linear(text), [out], threads=2)
    assert memoryview(out).cast("i").tolist() == [0, 1, 9, 9]


def test_symbolic_sizes_come_from_the_variables() -> None:
    text = "%0 = param[0] int32*9\n%c = special[gidx0, n*2 + 1, n=1..4] int32\nstore (%0, %c, 1)"
    out = ints(*[0] * 9)
    interpret(parse_linear(text), [out], {"n": 2})
    assert memoryview(out).cast("i").tolist() == [1] * 5 + [0] * 4


def test_what_is_not_a_linear_kernel() -> None:
    with pytest.raises(KernelFault, match="is not closed"):
        interpret([*parse_linear("%i = range[i] int32 (0, 8)")], [])
    crossed = "%i = range[i] int32 (0, 8)\n%j = range[j] int32 (0, 8)\nendrange (%i)\nendrange (%j)"
    for text in (crossed, "%i = range[i] int32 (0, 8)\nendrange (%i)\nendrange (%i)"):
        with pytest.raises(KernelFault, match="does not close the innermost region"):
            interpret([*parse_linear(text)], [])
    x = leaf(dtypes.int32, 0)
    with pytest.raises(KernelFault, match="does not stand before it"):
        interpret([x.alu(Ops.NEG)], [])
