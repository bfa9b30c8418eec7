"""Which programs make how many kernels, each also checked against numpy."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage, explain, schedule
from tg_lazy.cost import LIMITS, Limits

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def scalar(x: LazyBuffer, op: Ops, value: float) -> LazyBuffer:
    return x.alu(op, x.const_like(value))


def mean(x: LazyBuffer, axes: tuple[int, ...]) -> LazyBuffer:
    total = x.reduce(Ops.ADD, axes)
    assert isinstance(x.size, int) and isinstance(total.size, int)
    return scalar(total, Ops.MUL, total.size / x.size)


def wide(x: LazyBuffer, like: LazyBuffer) -> LazyBuffer:
    return x.expand(like.shape)


def shifted(x: LazyBuffer, axis: int) -> LazyBuffer:
    return x.alu(Ops.SUB, wide(x.reduce(Ops.MAX, (axis,)), x))


def exp(x: LazyBuffer) -> LazyBuffer:
    return scalar(x, Ops.MUL, 1 / np.log(2)).alu(Ops.EXP2)


def softmax(x: LazyBuffer, axis: int) -> LazyBuffer:
    e = exp(shifted(x, axis))
    return e.alu(Ops.MUL, wide(e.reduce(Ops.ADD, (axis,)).alu(Ops.RECIP), e))


def log_softmax(x: LazyBuffer, axis: int) -> LazyBuffer:
    s = shifted(x, axis)
    norm = scalar(exp(s).reduce(Ops.ADD, (axis,)).alu(Ops.LOG2), Ops.MUL, np.log(2))
    return s.alu(Ops.SUB, wide(norm, s))


def layernorm(x: LazyBuffer, weight: LazyBuffer, bias: LazyBuffer) -> LazyBuffer:
    d = x.alu(Ops.SUB, wide(mean(x, (1,)), x))
    inv = scalar(mean(d.alu(Ops.MUL, d), (1,)), Ops.ADD, 1e-5).alu(Ops.SQRT).alu(Ops.RECIP)
    row = (1, x.shape[1])
    scaled = d.alu(Ops.MUL, wide(inv, d)).alu(Ops.MUL, wide(weight.reshape(row), d))
    return scaled.alu(Ops.ADD, wide(bias.reshape(row), d))


def matmul(a: LazyBuffer, b: LazyBuffer) -> LazyBuffer:
    (m, k), (_, n) = a.shape, b.shape
    left = a.reshape((m, 1, k)).expand((m, n, k))
    right = b.permute((1, 0)).reshape((1, n, k)).expand((m, n, k))
    return left.alu(Ops.MUL, right).reduce(Ops.ADD, (2,)).reshape((m, n))


def relu(x: LazyBuffer) -> LazyBuffer:
    return scalar(x, Ops.MAX, 0)


def plus_row(x: LazyBuffer, bias: LazyBuffer) -> LazyBuffer:
    return x.alu(Ops.ADD, wide(bias.reshape((1, x.shape[1])), x))


def np_softmax(v: Array, axis: int = 1) -> Array:
    e = np.exp(v - v.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)  # type: ignore[no-any-return]


def kernels(machine: Any, outputs: LazyBuffer | list[LazyBuffer], expected: Array | list[Array]) -> int:
    """How many kernels the outputs take; their values are checked."""
    nodes = outputs if isinstance(outputs, list) else [outputs]
    values = expected if isinstance(expected, list) else [expected]
    items = machine.run(*nodes)
    for node, value in zip(nodes, values, strict=True):
        np.testing.assert_allclose(machine.value(node), value, rtol=2e-4, atol=1e-4)
    return sum(item.ast.op is Ops.SINK for item in items)


def test_an_elementwise_chain_is_one_kernel(machine: Any, rng: Any) -> None:
    v = normal(rng, 8, 9)
    x = machine.buffer(v)
    y = scalar(scalar(x, Ops.ADD, 1).permute((1, 0)), Ops.MUL, 2).flip((0,)).pad(((1, 0), (0, 2)))
    assert kernels(machine, relu(y), np.maximum(np.pad(((v + 1).T * 2)[::-1], ((1, 0), (0, 2))), 0)) == 1


@pytest.mark.parametrize("shape", [(32, 48), (64, 1000), (3, 7), (1, 500)])
def test_softmax_is_one_kernel(machine: Any, rng: Any, shape: tuple[int, int]) -> None:
    v = normal(rng, *shape)
    assert kernels(machine, softmax(machine.buffer(v), 1), np_softmax(v)) == 1


def test_softmax_over_the_last_of_four_axes_is_one_kernel(machine: Any, rng: Any) -> None:
    v = normal(rng, 2, 4, 8, 8)
    assert kernels(machine, softmax(machine.buffer(v), 3), np_softmax(v, 3)) == 1


def test_softmax_of_something_computed(machine: Any, rng: Any) -> None:
    v, w = normal(rng, 64, 100), normal(rng, 64, 100)
    x = scalar(machine.buffer(v), Ops.MUL, 0.125).alu(Ops.ADD, machine.buffer(w))
    assert kernels(machine, softmax(x, 1), np_softmax(v * np.float32(0.125) + w)) == 1


def test_long_single_row_is_not_one_kernel(machine: Any, rng: Any) -> None:
    v = normal(rng, 1, 100_000)
    assert kernels(machine, softmax(machine.buffer(v), 1), np_softmax(v)) > 1


def test_layernorm_is_one_kernel(machine: Any, rng: Any) -> None:
    v, w, b = normal(rng, 40, 64), normal(rng, 64), normal(rng, 64)
    expected = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * w + b
    assert kernels(machine, layernorm(*map(machine.buffer, (v, w, b))), expected) == 1


def test_a_column_sum_of_a_layernorm_is_a_second_kernel(machine: Any, rng: Any) -> None:
    v, w, b = normal(rng, 40, 64), normal(rng, 64), normal(rng, 64)
    expected = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * w + b
    out = layernorm(*map(machine.buffer, (v, w, b))).reduce(Ops.ADD, (0,))
    assert kernels(machine, out, expected.sum(0, keepdims=True)) == 2


def test_log_softmax_with_its_loss_is_one_kernel(machine: Any, rng: Any) -> None:
    v = normal(rng, 64, 10)
    onehot = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 64)]
    loss = log_softmax(machine.buffer(v), 1).alu(Ops.MUL, machine.buffer(onehot)).reduce(Ops.ADD, (0, 1))
    assert kernels(machine, loss, (np.log(np_softmax(v)) * onehot).sum(keepdims=True)) == 1


def test_batchnorm_statistics_are_one_kernel(machine: Any, rng: Any) -> None:
    v = normal(rng, 8, 16, 4, 4)
    x = machine.buffer(v)
    m = mean(x, (0, 2, 3))
    d = x.alu(Ops.SUB, wide(m, x))
    var = mean(d.alu(Ops.MUL, d), (0, 2, 3))
    assert kernels(machine, [m, var], [v.mean((0, 2, 3), keepdims=True), v.var((0, 2, 3), keepdims=True)]) == 1


def test_a_column_mean_is_realised(machine: Any, rng: Any) -> None:
    v = normal(rng, 200, 100)
    x = machine.buffer(v)
    assert kernels(machine, x.alu(Ops.SUB, wide(mean(x, (0,)), x)), v - v.mean(0)) == 2


def test_a_mean_of_everything_is_realised(machine: Any, rng: Any) -> None:
    v = normal(rng, 200, 100)
    x = machine.buffer(v)
    assert kernels(machine, x.alu(Ops.SUB, wide(mean(x, (0, 1)), x)), v - v.mean()) == 2


def test_matmul_with_bias_and_relu_is_one_kernel(machine: Any, rng: Any) -> None:
    a, w, b = normal(rng, 32, 48), normal(rng, 48, 20), normal(rng, 20)
    out = relu(plus_row(matmul(machine.buffer(a), machine.buffer(w)), machine.buffer(b)))
    assert kernels(machine, out, np.maximum(a @ w + b, 0)) == 1


def test_a_matmul_may_be_stored_transposed(machine: Any, rng: Any) -> None:
    a, w = normal(rng, 32, 48), normal(rng, 48, 20)
    out = scalar(matmul(machine.buffer(a), machine.buffer(w)).permute((1, 0)), Ops.ADD, 1).contiguous()
    items, _ = schedule([out])
    (store,) = items[0].ast.src
    assert store.shape == (32, 20, 1), "the loops are the contraction's own"
    assert kernels(machine, out, (a @ w).T + 1) == 1


def test_a_matmul_with_a_residual_in_more_dimensions(machine: Any, rng: Any) -> None:
    a, w, r = normal(rng, 6, 16), normal(rng, 16, 20), normal(rng, 2, 3, 20)
    out = matmul(machine.buffer(a), machine.buffer(w)).reshape((2, 3, 20)).alu(Ops.ADD, machine.buffer(r))
    assert kernels(machine, out, (a @ w).reshape(2, 3, 20) + r) == 1


@pytest.mark.parametrize("swap", [False, True])
def test_products_of_matmuls_keep_their_epilogues(machine: Any, rng: Any, swap: bool) -> None:
    """What a contraction's results are put through is not left to the kernel of another contraction."""
    a, w, c, d = normal(rng, 31, 48), normal(rng, 48, 23), normal(rng, 31, 40), normal(rng, 40, 23)
    p, q = (matmul(*map(machine.buffer, pair)).alu(Ops.SIN) for pair in ((a, w), (c, d)))
    out = q.alu(Ops.MUL, p) if swap else p.alu(Ops.MUL, q)
    sines = [sum(n.op is Ops.SIN for n in item.ast.toposort()) for item in schedule([out])[0]]
    assert sines == [1, 1] and kernels(machine, out, np.sin(a @ w) * np.sin(c @ d)) == 2


def test_a_matmul_that_is_repeated_keeps_its_epilogue(machine: Any, rng: Any) -> None:
    a, w, y = normal(rng, 31, 48), normal(rng, 48, 23), normal(rng, 5, 31, 23)
    x = matmul(machine.buffer(a), machine.buffer(w)).alu(Ops.SIN).reshape((1, 31, 23)).expand((5, 31, 23))
    out = x.alu(Ops.ADD, machine.buffer(y))
    sines = [sum(n.op is Ops.SIN for n in item.ast.toposort()) for item in schedule([out])[0]]
    assert sines == [1, 0] and kernels(machine, out, np.sin(a @ w) + y) == 2


def test_an_mlp_is_one_kernel_a_layer(machine: Any, rng: Any) -> None:
    v = normal(rng, 64, 48)
    ws = [normal(rng, 48, 40), normal(rng, 40, 30), normal(rng, 30, 20)]
    bs = [normal(rng, 40), normal(rng, 30), normal(rng, 20)]
    x, expected = machine.buffer(v), v
    for w, b in zip(ws, bs, strict=True):
        x = relu(plus_row(matmul(x, machine.buffer(w)), machine.buffer(b)))
        expected = np.maximum(expected @ w + b, 0)
    assert kernels(machine, x, expected) == 3


def test_attention(machine: Any, rng: Any) -> None:
    q, k, v = normal(rng, 64, 32), normal(rng, 64, 32), normal(rng, 64, 32)
    scores = scalar(matmul(machine.buffer(q), machine.buffer(k).permute((1, 0))), Ops.MUL, 32**-0.5)
    out = matmul(softmax(scores, 1), machine.buffer(v))
    assert kernels(machine, out, np_softmax(q @ k.T * np.float32(32**-0.5)) @ v) == 3


def test_an_activation_is_not_recomputed_inside_of_a_large_matmul(machine: Any, rng: Any) -> None:
    a, w = normal(rng, 64, 64), normal(rng, 64, 256)
    x = scalar(machine.buffer(a), Ops.MUL, 2).alu(Ops.EXP2)
    assert kernels(machine, matmul(x, machine.buffer(w)), np.exp2(a * 2) @ w) == 2


def test_a_cast_is_free_inside_of_a_matmul(machine: Any, rng: Any) -> None:
    a, w = normal(rng, 64, 64), normal(rng, 64, 256).astype(np.float16)
    out = matmul(machine.buffer(a), machine.buffer(w).cast(dtypes.float32))
    assert kernels(machine, out, a @ w.astype(np.float32)) == 1


def test_reductions_of_one_input_share_a_kernel(machine: Any, rng: Any) -> None:
    v = normal(rng, 32, 40)
    x = machine.buffer(v)
    both = x.reduce(Ops.ADD, (1,)).alu(Ops.ADD, x.reduce(Ops.MAX, (1,)))
    assert kernels(machine, both, v.sum(1, keepdims=True) + v.max(1, keepdims=True)) == 1
    outs = [x.reduce(Ops.ADD, (1,)), x.reduce(Ops.MAX, (1,))]
    assert kernels(machine, outs, [v.sum(1, keepdims=True), v.max(1, keepdims=True)]) == 1


def test_outputs_over_one_input_share_a_kernel(machine: Any, rng: Any) -> None:
    v = normal(rng, 30)
    x = machine.buffer(v)
    assert kernels(machine, [scalar(x, Ops.ADD, 1), scalar(x, Ops.MUL, 2)], [v + 1, v * 2]) == 1


def test_what_one_output_computes_another_uses(machine: Any, rng: Any) -> None:
    v = normal(rng, 30, 5)
    x = machine.buffer(v)
    y = x.alu(Ops.EXP2)
    z = scalar(y, Ops.ADD, 1).reduce(Ops.ADD, (1,))
    assert kernels(machine, [y, scalar(y, Ops.MUL, 2)], [np.exp2(v), np.exp2(v) * 2]) == 1
    assert kernels(machine, [z], [(np.exp2(v) + 1).sum(1, keepdims=True)]) == 1


def test_statistics_of_rows_are_outputs_of_the_kernel_that_uses_them(machine: Any, rng: Any) -> None:
    v = normal(rng, 64, 100)
    x = machine.buffer(v)
    greatest = x.reduce(Ops.MAX, (1,))
    e = exp(x.alu(Ops.SUB, wide(greatest, x)))
    norm = e.reduce(Ops.ADD, (1,))
    out = e.alu(Ops.FDIV, wide(norm, e))
    total = np.exp(v - v.max(1, keepdims=True)).sum(1, keepdims=True)
    assert kernels(machine, [greatest, norm, out], [v.max(1, keepdims=True), total, np_softmax(v)]) == 1


def test_statistics_of_few_long_rows_are_not(machine: Any, rng: Any) -> None:
    v = normal(rng, 2, 30_000)
    x = machine.buffer(v)
    m = mean(x, (1,))
    expected = v.mean(1, keepdims=True)
    assert kernels(machine, [m, x.alu(Ops.SUB, wide(m, x))], [expected, v - expected]) == 2


def adam(p: LazyBuffer, m: LazyBuffer, v: LazyBuffer, g: LazyBuffer) -> list[LazyBuffer]:
    m1 = m.assign(scalar(m, Ops.MUL, 0.9).alu(Ops.ADD, scalar(g, Ops.MUL, 0.1)))
    v1 = v.assign(scalar(v, Ops.MUL, 0.99).alu(Ops.ADD, scalar(g.alu(Ops.MUL, g), Ops.MUL, 0.01)))
    step = scalar(m1, Ops.MUL, 10).alu(Ops.FDIV, scalar(scalar(v1, Ops.MUL, 100).alu(Ops.SQRT), Ops.ADD, 1e-8))
    return [p.assign(p.alu(Ops.SUB, scalar(step, Ops.MUL, 0.1))), m1, v1]


def test_adam_is_one_kernel_a_parameter(machine: Any, rng: Any) -> None:
    outputs, expected = [], []
    for n in range(3, 9):
        p, g = normal(rng, n, 4), normal(rng, n, 4)
        outputs += adam(*map(machine.buffer, (p, np.zeros_like(p), np.zeros_like(p), g)))
        m, v = 0.1 * g, 0.01 * g * g
        expected += [p - 0.1 * (10 * m) / (np.sqrt(100 * v) + 1e-8), m, v]
    assert kernels(machine, outputs, expected) == 6


def test_an_update_joins_the_gradient_that_it_uses(machine: Any, rng: Any) -> None:
    x, d, p = normal(rng, 64, 40), normal(rng, 64, 50), normal(rng, 40, 50)
    zeros = np.zeros_like(p)
    g = matmul(machine.buffer(x).permute((1, 0)), machine.buffer(d))
    outputs = adam(machine.buffer(p), machine.buffer(zeros), machine.buffer(zeros), g)
    gv = x.T @ d
    m, v = 0.1 * gv, 0.01 * gv * gv
    assert kernels(machine, outputs, [p - 0.1 * (10 * m) / (np.sqrt(100 * v) + 1e-8), m, v]) == 1


def test_a_large_sum_is_done_in_parts(machine: Any, rng: Any) -> None:
    v = normal(rng, 256, 1024)
    total = machine.buffer(v).reduce(Ops.ADD, (0, 1))
    items, _ = schedule([total])
    assert [item.ast.src[0].shape for item in items] == [(256, 1, 1), (1, 1)]
    assert "reduced in 256 parts" in items[0].reason
    assert kernels(machine, total, v.sum(keepdims=True)) == 2


def test_large_sums_of_one_input_are_done_in_parts_together(machine: Any, rng: Any) -> None:
    v = normal(rng, 64, 2048)
    x = machine.buffer(v)
    outs = [x.reduce(Ops.ADD, (0, 1)), x.reduce(Ops.MAX, (0, 1))]
    assert kernels(machine, outs, [v.sum(keepdims=True), v.max(keepdims=True)]) <= 3


def test_a_short_sum_of_prime_length_is_not_cut(machine: Any) -> None:
    v = np.ones(40_009, np.float32)
    assert kernels(machine, machine.buffer(v).reduce(Ops.ADD, (0,)), np.array([40_009.0])) == 1


@pytest.mark.parametrize("shape, axes", [((70_001,), (0,)), ((509, 257), (0, 1)), ((3, 1009, 67), (1, 2))])
def test_reductions_of_prime_length_are_done_in_parts(
    machine: Any, rng: Any, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    """A sum ends in zeros; the parts of what may meet an element twice overlap, and where it may not they divide."""
    v = -1 - np.abs(normal(rng, *shape))
    for op, want in ((Ops.ADD, v.sum(axes, keepdims=True)), (Ops.MAX, v.max(axes, keepdims=True))):
        out = machine.buffer(v).reduce(op, axes)
        items, _ = schedule([out])
        assert len(items) == 2 and "parts first" in items[0].reason
        assert prod(items[0].ast.src[0].shape) > 128 * shape[0] ** (0 not in axes)
        assert kernels(machine, out, want) == 2
    squares = machine.buffer(v).alu(Ops.MUL, machine.buffer(v))
    shifted = scalar(squares, Ops.ADD, 1.0)  # 0 becomes another number: beyond the end it must not
    assert kernels(machine, shifted.reduce(Ops.ADD, axes), (v * v + 1).sum(axes, keepdims=True)) <= 3
    signs = np.sign(v)
    out = machine.buffer(signs).reduce(Ops.MUL, axes)
    assert kernels(machine, out, signs.prod(axes, keepdims=True)) == 1 + (67 in shape)
    everywhere = machine.buffer(v < 0).reduce(Ops.MUL, axes)
    assert len(schedule([everywhere])[0]) == 2
    assert kernels(machine, everywhere, np.ones_like(v.sum(axes, keepdims=True), bool)) == 2


def test_pads_of_what_is_not_zero_for_zero(machine: Any, rng: Any) -> None:
    v = normal(rng, 4, 5)
    x = scalar(machine.buffer(v).alu(Ops.EXP2), Ops.ADD, 3)
    widths = ((1, 1), (0, 2))
    assert kernels(machine, scalar(x.pad(widths), Ops.MUL, 2), np.pad(np.exp2(v) + 3, widths) * 2) == 1


def test_padding_does_not_divide_by_zero(machine: Any) -> None:
    seven = LazyBuffer.const(7, dtypes.int32, (3,), "CPU")
    q = seven.alu(Ops.IDIV, machine.buffer(np.array([2, 3, -4], np.int32))).pad(((1, 0),))
    assert kernels(machine, scalar(q, Ops.ADD, 0).contiguous(), np.array([0, 3, 2, -1])) == 1
    a, b = np.array([7, 9, -4], np.int32), np.array([2, 3, 3], np.int32)
    q = machine.buffer(a).alu(Ops.IDIV, machine.buffer(b)).pad(((2, 1),))
    assert kernels(machine, scalar(q, Ops.ADD, 1), np.array([1, 1, 4, 4, 0, 1])) == 1


@pytest.mark.parametrize("constant", [-3, 0, 2])
def test_padding_of_an_op_with_a_constant(machine: Any, constant: int) -> None:
    v = np.array([5, -7, 0, 9], np.int32)
    x = machine.buffer(v)
    for op in (Ops.MUL, Ops.MAX, Ops.SUB, Ops.ADD, Ops.CMPLT, *((Ops.IDIV, Ops.MOD) if constant else ())):
        plain = x.alu(op, x.const_like(constant))
        assert kernels(machine, plain.pad(((2, 1),)).contiguous(), np.pad(machine.value(plain), (2, 1))) == 1


def test_a_concatenation_is_one_kernel(machine: Any, rng: Any) -> None:
    a, b = normal(rng, 2, 3), normal(rng, 4, 3)
    x = scalar(machine.buffer(a), Ops.ADD, 1).pad(((0, 4), (0, 0)))
    y = machine.buffer(b).alu(Ops.EXP2).pad(((2, 0), (0, 0)))
    assert kernels(machine, x.alu(Ops.ADD, y), np.concatenate([a + 1, np.exp2(b)])) == 1


def test_gathers_fuse_into_what_uses_them(machine: Any, rng: Any) -> None:
    table, index = normal(rng, 10, 4), np.array([[3, 0, 9], [12, -1, 5]], np.int32)
    rows = scalar(machine.buffer(index).reshape((2, 3, 1)).expand((2, 3, 4)), Ops.MUL, 4)
    places = rows.alu(Ops.ADD, LazyBuffer.iota(4, dtypes.int32, "CPU").reshape((1, 1, 4)).expand((2, 3, 4)))
    expected = np.zeros((2, 3, 4), np.float32)
    expected[0], expected[1, 2] = table[index[0]], table[5]
    out = scalar(machine.buffer(table).gather(places), Ops.ADD, 1)
    # rows -1 and 12 begin outside of the table; of row -1 nothing is inside
    assert kernels(machine, out, expected + 1) == 1
    padded = machine.buffer(table).gather(places).pad(((0, 0), (1, 0), (0, 0)))
    assert kernels(machine, padded.contiguous(), np.pad(expected, ((0, 0), (1, 0), (0, 0)))) == 1


def test_a_gather_reads_memory(machine: Any, rng: Any) -> None:
    v, index = normal(rng, 6), np.array([5, 0, 2], np.int32)
    source = scalar(machine.buffer(v), Ops.ADD, 1)
    assert kernels(machine, source.gather(machine.buffer(index)), (v + 1)[index]) == 2
    flipped = machine.buffer(v).flip((0,)).gather(machine.buffer(index))
    assert kernels(machine, flipped, v[::-1][index]) == 1


def test_constants_take_no_kernel_and_fold(machine: Any, rng: Any) -> None:
    c = LazyBuffer.const(3.0, dtypes.float32, (4, 5), "CPU")
    assert schedule([c])[0] == []
    ones = scalar(c, Ops.MUL, 2).reduce(Ops.ADD, (1,)).pad(((0, 1), (0, 0)))
    v = normal(rng, 5, 1)
    out = machine.buffer(v).alu(Ops.ADD, ones)
    (item,) = schedule([out])[0]
    assert {n.op for n in item.ast.toposort()} == {Ops.LOAD, Ops.CONST, Ops.VIEW, Ops.ADD, Ops.STORE, Ops.SINK}
    assert kernels(machine, out, v + np.array([30, 30, 30, 30, 0]).reshape(5, 1)) == 1
    assert kernels(machine, scalar(c, Ops.ADD, 1), np.full((4, 5), 4.0)) == 1


def test_a_diamond_of_diamonds_does_not_explode(machine: Any, rng: Any) -> None:
    v = normal(rng, 16)
    x, expected = machine.buffer(v), v
    for k in range(40):
        left = x.shrink(((k % 3, 16),)).pad(((k % 3, 0),))
        x = left.alu(Ops.MAX, x.flip((0,))).alu(Ops.MAX, x)
        expected = np.maximum(np.maximum(np.where(np.arange(16) >= k % 3, expected, 0), expected[::-1]), expected)
    items, _ = schedule([x])
    assert sum(len(item.ast.toposort()) for item in items) < 3000
    assert kernels(machine, x, expected) < 40


def test_kernels_stay_within_the_limits(machine: Any, rng: Any) -> None:
    vs = [normal(rng, 7) for _ in range(100)]
    x, expected = machine.buffer(vs[0]), vs[0]
    for v in vs[1:]:
        x, expected = x.alu(Ops.ADD, machine.buffer(v)), expected + v
    items, _ = schedule([x])
    assert max(len(item.bufs) for item in items) <= 31
    assert kernels(machine, x, expected) == 4


def test_limits_of_a_device(machine: Any, rng: Any) -> None:
    LIMITS["TINY"] = Limits(buffers=4, nodes=10)
    try:
        vs = [normal(rng, 7) for _ in range(20)]
        x, expected = machine.buffer(vs[0], "TINY:1"), vs[0]
        for v in vs[1:]:
            x, expected = x.alu(Ops.ADD, machine.buffer(v, "TINY:1")), expected + v
        items, _ = schedule([x])
        assert max(len(item.bufs) for item in items) <= 4
        assert kernels(machine, x, expected) >= 7
    finally:
        del LIMITS["TINY"]


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_a_kernel_has_no_more_reductions_than_the_device_allows(
    machine: Any, rng: Any, monkeypatch: pytest.MonkeyPatch, stages: int
) -> None:
    monkeypatch.setitem(LIMITS, "TINY", Limits(stages=stages))
    v = normal(rng, 37, 53)
    found = softmax(softmax(machine.buffer(v, "TINY"), 1), 1)  # four reductions over one row
    counts = [sum(n.op is Ops.REDUCE for n in item.ast.toposort()) for item in schedule([found])[0]]
    assert sum(counts) >= 4 and max(counts) == stages
    assert kernels(machine, found, np_softmax(np_softmax(v))) == len(counts)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("across", list(product([False, True], repeat=3)), ids=str)
def test_reductions_seen_across_count_among_those_of_their_kernel(
    machine: Any, rng: Any, monkeypatch: pytest.MonkeyPatch, across: tuple[bool, ...], stages: int
) -> None:
    monkeypatch.setitem(LIMITS, "TINY", Limits(stages=stages))
    x, expected = LazyBuffer.const(0.0, dtypes.float32, (13, 7), "TINY"), np.zeros((13, 7), np.float32)
    for turned in across:
        v = normal(rng, *((7, 13) if turned else (13, 7)), 5)
        total = machine.buffer(v, "TINY").reduce(Ops.ADD, (2,)).reshape(v.shape[:2])
        x = x.alu(Ops.ADD, total.permute((1, 0)) if turned else total)
        expected = expected + (v.sum(2).T if turned else v.sum(2))
    counts = [sum(n.op is Ops.REDUCE for n in item.ast.toposort()) for item in schedule([x])[0]]
    assert sum(counts) == 3 and max(counts) <= stages
    assert kernels(machine, x, expected) == len(counts)


@pytest.mark.parametrize("nodes", [3, 7, 10])
def test_a_kernel_has_no_more_nodes_than_the_device_allows(
    machine: Any, rng: Any, monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    monkeypatch.setitem(LIMITS, "TINY", Limits(nodes=nodes))
    v = normal(rng, 11)
    x, count = machine.buffer(v, "TINY"), 2 * nodes + 1
    for _ in range(count):
        x = x.alu(Ops.SIN)
    sines = [sum(n.op is Ops.SIN for n in item.ast.toposort()) for item in schedule([x])[0]]
    assert sum(sines) == count and max(sines) == nodes and len(sines) == 3
    for _ in range(count):
        v = np.sin(v)
    assert kernels(machine, x, v) == 3


def test_explanations_say_why(machine: Any, rng: Any) -> None:
    a, w = machine.buffer(normal(rng, 64, 64)), machine.buffer(normal(rng, 64, 256))
    x = scalar(a, Ops.MUL, 2).alu(Ops.EXP2)
    text = explain([relu(matmul(x, w))])
    assert "flops" in text and "bytes at" in text and "output" in text and "nodes in one kernel" in text
    assert "test_fusion.py:" in text
    assert explain(schedule([relu(matmul(x, w))])[0]).count("\n") == text.count("\n")
    assert not a.base.is_realized or x.is_realized is False


def test_device_memory_is_named_once(rng: Any) -> None:
    x = LazyBuffer.from_storage(Storage("CPU", 4, dtypes.float32))
    (item,) = schedule([x.alu(Ops.MUL, x).alu(Ops.ADD, x.flip((0,)))])[0]
    assert len(item.bufs) == 2


@pytest.mark.parametrize(("limits", "most"), [
    (Limits(balance=8.0, launch_bytes=0), 8), (Limits(balance=4.0, launch_bytes=0), 4),
    (Limits(balance=8.0, launch_bytes=128), 10),
    (Limits(balance=8.0, launch_bytes=128, serial_elements=64), 2),  # now it is a contraction, in one of two uses
])  # fmt: skip
def test_arithmetic_is_done_again_while_that_is_cheaper_than_memory(
    machine: Any, rng: Any, monkeypatch: pytest.MonkeyPatch, limits: Limits, most: int
) -> None:
    """Eight times for each of 64 elements; kept, they are written once and read twice, instead of their source."""
    monkeypatch.setitem(LIMITS, "TINY", limits)
    counts = []
    for flops in (most, most + 1):
        a, b, c = (machine.buffer(normal(rng, 8, 8), "TINY") for _ in range(3))
        x = a
        for i in range(flops):
            x = scalar(x, Ops.MAX if i % 2 else Ops.MUL, float(i + 1))
        products = x.reshape((8, 8, 1)).expand((8, 8, 8)).alu(Ops.MUL, b.reshape((1, 8, 8)).expand((8, 8, 8)))
        outputs = [products.reduce(Ops.ADD, (1,)), x.alu(Ops.MUL, c)]
        counts.append(sum(len(item.ast.src) for item in schedule(outputs)[0]))
    assert counts == [2, 3], "the outputs alone are stored, or what they share as well"


def test_what_a_kernel_reads_already_is_no_further_buffer(
    machine: Any, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "TINY", Limits(buffers=4))
    v = normal(rng, 7)
    x, expected = machine.buffer(v, "TINY"), v
    for i in range(7):  # one buffer and constants
        x = scalar(x, Ops.MUL, float(i - 3)).alu(Ops.MAX, x)
        expected = np.maximum(expected * np.float32(i - 3), expected)
    assert kernels(machine, x, expected) == 1


def test_what_counters_say_with_little_work_is_no_table(machine: Any, rng: Any) -> None:
    """A mask of 16 by 16 would be read as often as it is computed again; a function of counters is dearer."""
    for dear, kernels in ((False, 1), (True, 2)):
        x = machine.buffer(normal(rng, 4096, 1, 16), "CPU").expand((4096, 16, 16))
        term, result = (LazyBuffer.iota(16, dtypes.int32, "CPU").reshape(dims)
                        for dims in ((1, 1, 16), (1, 16, 1)))
        counts = result.expand((1, 16, 16)).alu(Ops.CMPLT, term.expand((1, 16, 16)))
        weight = counts.cast(dtypes.float32)
        if dear:
            for _ in range(6):
                weight = scalar(weight, Ops.ADD, 1.5).alu(Ops.EXP2)
        kept = weight.expand((4096, 16, 16)).alu(Ops.MUL, x).reduce(Ops.ADD, (2,))
        assert len(schedule([kept])[0]) == kernels


@pytest.mark.parametrize("terms", (4, 13, 40))
def test_sums_of_a_short_complex_product_share_a_kernel_and_have_no_memory(machine: Any, rng: Any, terms: int) -> None:
    count, beside = 11, 131
    shapes = [(count, 1, terms, beside)] * 2 + [(1, terms, terms, 1)] * 2
    arrays = [normal(rng, *shape) for shape in shapes]
    shape = (count, terms, terms, beside)
    a, b, c, s = (machine.buffer(array).expand(shape) for array in arrays)

    def dot(x: LazyBuffer, y: LazyBuffer, op: Ops, u: LazyBuffer, v: LazyBuffer) -> LazyBuffer:
        return x.alu(Ops.MUL, y).alu(op, u.alu(Ops.MUL, v)).reduce(Ops.ADD, (2,))

    re, im = dot(a, c, Ops.SUB, b, s), dot(a, s, Ops.ADD, b, c)
    turned = [re.alu(Ops.SUB, im).contiguous(), re.alu(Ops.ADD, im).contiguous()]
    items = machine.run(*turned)
    x, y = (arrays[0] + 1j * arrays[1]), (arrays[2] + 1j * arrays[3])
    z = (x * y).sum(2, keepdims=True)
    for found, expected in zip(turned, (z.real - z.imag, z.real + z.imag), strict=True):
        np.testing.assert_allclose(machine.value(found).reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)
    short = terms <= 16
    assert len(items) == (1 if short else 2)
    assert re.is_realized + im.is_realized == (0 if short else 2), "a sum that only its own kernel uses is not stored"
    machine.run(re)  # nor is it lost: who asks for it later has it computed again
    np.testing.assert_allclose(machine.value(re).reshape(z.shape), z.real, rtol=1e-4, atol=1e-4)


def test_what_only_its_kernel_reads_of_a_private_graph_is_not_stored(machine: Any, rng: Any) -> None:
    v = normal(rng, 64, 100)
    for private in (False, True, False):  # a remembered schedule of the one is none of the other
        total = scalar(machine.buffer(v).reduce(Ops.ADD, (1,)), Ops.ADD, 1)
        outs = [scalar(total, Ops.MUL, 2).contiguous(), scalar(total, Ops.MAX, 3).contiguous()]
        (item,) = machine.run(*outs, private=private)
        assert len(item.ast.src) == (2 if private else 3)
        want = v.sum(1, keepdims=True) + 1
        for out, expected in zip(outs, (want * 2, np.maximum(want, 3)), strict=True):
            np.testing.assert_allclose(machine.value(out), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("steps, expected", ((3, 1), (30, 2)))
def test_a_stored_product_and_little_that_is_made_of_it_share_a_kernel(
    machine: Any, rng: Any, steps: int, expected: int
) -> None:
    a, w = normal(rng, 32, 48), normal(rng, 48, 20)
    product = matmul(machine.buffer(a), machine.buffer(w)).contiguous()
    other, want = product, a @ w
    for _ in range(steps):
        other, want = scalar(scalar(other, Ops.MUL, 0.5), Ops.ADD, 1), want * 0.5 + 1
    assert kernels(machine, [product, other], [a @ w, want]) == expected


@pytest.mark.parametrize("terms", (7, 300))
def test_a_sum_that_is_held_survives_what_overwrites_its_operand(machine: Any, rng: Any, terms: int) -> None:
    data = normal(rng, 401, terms, 37)
    x = machine.buffer(data)
    total = x.reduce(Ops.ADD, (1,))
    one, two = scalar(total, Ops.MUL, 2).contiguous(), scalar(total, Ops.ADD, 1).contiguous()
    machine.run(one, two, x.assign(scalar(scalar(x, Ops.MUL, 0), Ops.ADD, 5)))
    machine.run(total)
    np.testing.assert_allclose(machine.value(total), data.sum(1, keepdims=True), rtol=1e-4, atol=1e-4)


def test_a_state_is_computed_once_an_iteration(machine: Any, rng: Any) -> None:
    weights = machine.buffer(normal(rng, 301, 301))
    state = machine.buffer(normal(rng, 1, 301))
    for _ in range(3):
        state = weights.alu(Ops.MUL, wide(state, weights)).reduce(Ops.ADD, (1,)).reshape((1, 301))
        assert len(machine.run(scalar(state, Ops.MUL, 2).contiguous(), scalar(state, Ops.ADD, 1).contiguous())) == 1


@pytest.mark.parametrize(("axis", "block_sums", "dtype", "count"), [
    (2, True, "int32", 1),  # both factors differ from block to block
    (2, False, "int32", 2),  # the target has no instructions for integers
    (2, True, "float32", 2),
    (1, True, "int32", 2),  # columns of a product: the left factor would be read anew for each
    (0, True, "int32", 2),
])  # fmt: skip
def test_integers_in_blocks_with_scales_are_one_kernel(
    machine: Any, rng: Any, monkeypatch: pytest.MonkeyPatch, axis: int, block_sums: bool, dtype: str, count: int
) -> None:
    """Sums of scaled products of blocks: what quantised weights are multiplied by."""
    monkeypatch.setitem(LIMITS, "TINY", Limits(block_sums=block_sums, serial_elements=64))
    rows, columns, blocks, terms = 6, 5, 4, 32
    v, w = rng.integers(-9, 9, (rows, blocks, terms)), rng.integers(-9, 9, (columns, blocks, terms))
    scale = normal(rng, rows, columns, blocks)
    whole = (rows, columns, blocks, terms)
    left, right = (machine.buffer(x.astype(dtype), "TINY") for x in (v, w))
    left = left.reshape((rows, 1, blocks, terms)).expand(whole)
    right = right.reshape((1, columns, blocks, terms)).expand(whole)
    sums = left.alu(Ops.MUL, right).reduce(Ops.ADD, (3,)).reshape((rows, columns, blocks)).cast(dtypes.float32)
    out = sums.alu(Ops.MUL, machine.buffer(scale, "TINY")).reduce(Ops.ADD, (axis,))
    expected = (np.einsum("mrk,nrk->mnr", v, w) * scale).sum(axis, keepdims=True)
    assert kernels(machine, out, expected) == count


def test_a_long_chain_of_shared_values_in_a_block_is_looked_at_once(
    machine: Any, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By each of many paths it would take forever, and a call for each of its values is more than Python has."""
    monkeypatch.setitem(LIMITS, "TINY", Limits(block_sums=True, serial_elements=64))
    whole = (4, 5, 2, 16)
    v, w = rng.integers(0, 9, (4, 1, 2, 16)).astype("int32"), rng.integers(0, 9, (1, 5, 2, 16)).astype("int32")
    right = machine.buffer(w, "TINY").expand(whole)
    chain = machine.buffer(v, "TINY").expand(whole).alu(Ops.ADD, right)
    expected = v + w
    for _ in range(600):
        chain, expected = chain.alu(Ops.MUL, chain).alu(Ops.ADD, chain), expected * expected + expected
    sums = chain.alu(Ops.MUL, right).reduce(Ops.ADD, (3,)).reshape((4, 5, 2))
    assert kernels(machine, sums.reduce(Ops.ADD, (2,)), (expected * w).sum((2, 3), dtype="int32")[..., None])


def halved(x: LazyBuffer) -> LazyBuffer:
    """The sum of the first half of all elements and the last one."""
    half = x.shape[0] // 2
    assert isinstance(half, int)
    return x.shrink(((0, half),)).alu(Ops.ADD, x.shrink(((half, 2 * half),)))


def test_parts_of_a_node_are_computed_in_a_kernel_while_they_are_few(machine: Any, rng: np.random.Generator) -> None:
    """A tree of halves computes each element once, however deep it is: but its code has a place for each part."""
    data = rng.integers(-9, 9, 512).astype(np.int32)
    out = machine.buffer(data)
    for _ in range(9):
        out = halved(scalar(out, Ops.ADD, 1))
    items = machine.run(out)
    loads = [sum(node.op is Ops.LOAD for node in item.ast.toposort()) for item in items]
    most = 2 * Limits().beside
    assert max(loads) <= most and len(items) <= 3, loads
    assert machine.memory[out.base.storage].tolist() == [data.sum() + 512 * 2 - 2]
