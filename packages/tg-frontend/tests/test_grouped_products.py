"""Products of groups of matrices, and of matrices with scales beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_frontend.nn import functional

F: Any = functional
RNG = np.random.default_rng(3)


def _drawn(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("ends", [[2, 5], [0, 7], [3, 3], [0, 0], [7, 7]])
def test_groups_of_each_axis(ends: list[int]) -> None:
    offs, spans = Tensor(ends), list(zip([0, *ends], ends, strict=False))
    rows, experts = _drawn(7, 3), _drawn(2, 3, 4)
    a, b = Tensor(rows, requires_grad=True), Tensor(experts, requires_grad=True)
    out = F.grouped_mm(a, b, offs=offs)
    wanted = np.zeros((7, 4), np.float32)
    slopes = np.zeros_like(experts)
    for n, (start, end) in enumerate(spans):
        wanted[start:end] = rows[start:end] @ experts[n]
        slopes[n] = rows[start:end].sum(0)[:, None]
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5, atol=1e-6)
    out.sum().backward()
    assert b.grad is not None
    np.testing.assert_allclose(b.grad.numpy(), slopes, rtol=1e-5, atol=1e-6)
    columns = _drawn(3, 7)
    wanted = np.zeros((4, 7), np.float32)
    for n, (start, end) in enumerate(spans):
        wanted[:, start:end] = experts[n].T @ columns[:, start:end]
    got = F.grouped_mm(Tensor(experts).mT, Tensor(columns), offs=offs)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6)
    both = F.grouped_mm(Tensor(columns), Tensor(rows), offs=offs, bias=Tensor([1.0, 2.0, 3.0])).numpy()
    for n, (start, end) in enumerate(spans):
        np.testing.assert_allclose(both[n], columns[:, start:end] @ rows[start:end] + [1, 2, 3], rtol=1e-5, atol=1e-6)


def test_batches_need_no_ends() -> None:
    a, b = _drawn(2, 3, 4), _drawn(2, 4, 5)
    np.testing.assert_allclose(F.grouped_mm(Tensor(a), Tensor(b)).numpy(), a @ b, rtol=1e-5, atol=1e-6)
    assert F.grouped_mm(Tensor(a), Tensor(b), out_dtype=dtypes.float64).dtype is dtypes.float64


@pytest.mark.parametrize(
    ("shapes", "offs", "said"),
    [
        (((3, 4), (4, 5)), None, "offs say where groups end"), (((2, 3, 4), (2, 4, 5)), [1, 2], "offs say where"),
        (((3, 4), (2, 5, 6)), [1, 2], "matrices, or batches"), (((3, 4), (2, 4, 5)), [1], "one end for each"),
        (((3, 4), (2, 4, 5)), [2, 1], "to grow"), (((3, 4), (2, 4, 5)), [2, 4], "to grow from 0 to 3"),
        (((2, 3, 4), (3, 4, 5)), None, "2 matrices and 3"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(shapes: Any, offs: list[int] | None, said: str) -> None:
    a, b = (Tensor(_drawn(*shape)) for shape in shapes)
    with pytest.raises(ValueError, match=rf"^functional\.grouped_mm: .*{said}"):
        F.grouped_mm(a, b, offs=None if offs is None else Tensor(offs))


def test_scales_of_rows_and_of_all() -> None:
    a, b, kinds = Tensor(_drawn(4, 6)).cast("fp8e4m3"), Tensor(_drawn(6, 5)).cast("fp8e5m2"), F.ScalingType
    rows, columns = RNG.uniform(0.5, 2, (4, 1)).astype(np.float32), RNG.uniform(0.5, 2, (1, 5)).astype(np.float32)
    exact = a.float().numpy() @ b.float().numpy()
    got = F.scaled_mm(a, b, Tensor(rows), kinds.RowWise, Tensor(columns), kinds.RowWise, output_dtype="float32")
    np.testing.assert_allclose(got.numpy(), exact * rows * columns, rtol=1e-5, atol=1e-5)
    whole = Tensor(3.0), kinds.TensorWise
    got = F.scaled_mm(a, b, *whole, *whole, bias=Tensor([1.0] * 5), contraction_dim=(-1, -2))
    assert got.dtype is dtypes.bfloat16
    np.testing.assert_allclose(got.float().numpy(), exact * 9 + 1, rtol=1e-2, atol=1e-2)
    assert F.scaled_mm(a, b, *whole, *whole, output_dtype=None).dtype is dtypes.fp8e4m3
    with pytest.raises(NotImplementedError, match="no swizzle"):
        F.scaled_mm(a, b, *whole, *whole, swizzle_a=F.SwizzleType.SWIZZLE_32_4_4)
    with pytest.raises(ValueError, match="scales of mat_b have shape"):
        F.scaled_mm(a, b, *whole, Tensor(rows), kinds.RowWise)
    with pytest.raises(ValueError, match="shapes"):
        F.scaled_mm(b, b, *whole, *whole)


def _blocks(rows: int, inner: int, kind: Any, swizzled: bool = False) -> tuple[Any, Any]:
    """Scales of the blocks of a matrix as they are given, and the scale of each of its elements."""
    high, wide = {"BlockWise1x16": (1, 16), "BlockWise1x32": (1, 32), "BlockWise1x128": (1, 128)}.get(
        kind.name, (128, 128)
    )
    scales = RNG.uniform(0.5, 2, (-(-rows // high), -(-inner // wide))).astype(np.float32)
    each = np.empty((rows, inner), np.float32)
    for row in range(rows):
        for column in range(inner):
            each[row, column] = scales[row // high, column // wide]
    if swizzled:  # where each scale lies, by the formula in NVIDIA's manual of cuBLAS
        across = -(-scales.shape[1] // 4)
        given = np.full(-(-rows // 128) * across * 512, np.nan, np.float32)
        for (row, column), value in np.ndenumerate(scales):
            inside = row % 32 * 16 + row % 128 // 32 * 4 + column % 4
            given[(row // 128 * across + column // 4) * 512 + inside] = value
        return given, each
    return (scales.T if high > 1 else scales), each


@pytest.mark.parametrize(("kind_a", "kind_b", "swizzled"), [
    ("BlockWise1x128", "BlockWise1x128", False), ("BlockWise1x128", "BlockWise128x128", False),
    ("BlockWise128x128", "BlockWise1x128", False), ("BlockWise1x32", "BlockWise1x32", False),
    ("BlockWise1x32", "BlockWise1x16", True), ("BlockWise1x16", "BlockWise1x128", True),
])  # fmt: skip
def test_scales_of_blocks(kind_a: str, kind_b: str, swizzled: bool) -> None:
    kinds, order = F.ScalingType, F.SwizzleType.SWIZZLE_32_4_4 if swizzled else None
    rows, inner, columns = 131, 290, 140
    a, b = Tensor(_drawn(rows, inner)).cast("fp8e4m3"), Tensor(_drawn(inner, columns)).cast("fp8e4m3")
    scale_a, each_a = _blocks(rows, inner, kinds[kind_a], swizzled)
    scale_b, each_b = _blocks(columns, inner, kinds[kind_b], swizzled)
    wanted = (a.float().numpy() * each_a) @ (b.float().numpy() * each_b.T)
    given_a, given_b = (Tensor(scale_a), kinds[kind_a]), (Tensor(scale_b), kinds[kind_b])
    got = F.scaled_mm(a, b, *given_a, *given_b, order, order, output_dtype="float32")
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-4)
    level = kinds.TensorWise  # a number for all beside those of the blocks
    got = F.scaled_mm(a, b, [given_a[0], Tensor([3.0])], [given_a[1], level], [given_b[0], Tensor(0.5)],
                      [given_b[1], level], [order, None], [order, None], output_dtype="float32")  # fmt: skip
    np.testing.assert_allclose(got.numpy(), wanted * 1.5, rtol=1e-5, atol=1e-4)


def test_scales_of_squares_may_be_filled_up() -> None:
    kind = F.ScalingType.BlockWise128x128
    a, b = Tensor(_drawn(3, 256)), Tensor(_drawn(256, 2))
    scales = np.array([[2.0], [3.0]], np.float32)
    filled = np.concatenate([scales, np.full((2, 1), np.nan, np.float32)])
    one = F.scaled_mm(a, b, Tensor(scales), kind, Tensor(filled), kind, output_dtype="float32")
    each = np.repeat([2.0, 3.0], 128).astype(np.float32)
    np.testing.assert_allclose(one.numpy(), (a.numpy() * each) @ (b.numpy() * each[:, None]), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("kind", "shape", "swizzled", "said"), [
    ("BlockWise1x32", (4, 2), False, r"BlockWise1x32 of a matrix that has 4 rows of 96 are \(4, 3\)"),
    ("BlockWise1x32", (4, 3), True, r"are \(512,\) swizzled"),
    ("BlockWise128x128", (2, 1), False, r"are \(1, 1\) or \(4, 1\)"),
])  # fmt: skip
def test_scales_of_blocks_of_another_shape(kind: str, shape: Any, swizzled: bool, said: str) -> None:
    a, whole = Tensor(_drawn(4, 96)), (Tensor(1.0), F.ScalingType.TensorWise)
    order = F.SwizzleType.SWIZZLE_32_4_4 if swizzled else None
    with pytest.raises(ValueError, match=said):
        F.scaled_mm(a, a.T, Tensor(_drawn(*shape)), F.ScalingType[kind], *whole, order)
    with pytest.raises(ValueError, match="2 scales, 1 recipes"):
        F.scaled_mm(a, a.T, [Tensor(1.0)] * 2, F.ScalingType.TensorWise, *whole)
    with pytest.raises(NotImplementedError, match="not swizzled"):
        F.scaled_mm(a, a.T, Tensor([[1.0]]), F.ScalingType.BlockWise128x128, *whole, F.SwizzleType.SWIZZLE_32_4_4)
