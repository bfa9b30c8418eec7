"""Complex tensors against numpy, and that nothing takes complex numbers that has no rule for them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from inspect import signature, unwrap
from itertools import permutations
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

import tg_frontend as frontend
from tg_dtype import dtypes
from tg_frontend import Tensor, linalg, nn, special
from tg_frontend.array import Array
from tg_frontend.complex.componentwise import ALIKE, ELEMENTS
from tg_frontend.complex.kind import class_beside
from tg_frontend.complex.products import CONVOLUTIONS
from tg_frontend.complex.table import KEPT, KEPT_OPERATORS, OPERATORS, RULES
from tg_frontend.domains import NUMBERS
from tg_lazy import Context

T: Any = Tensor  # of which mypy asks nothing
rng = np.random.default_rng(15)


def drawn(*shape: int, dtype: str = "complex128") -> Any:
    """Complex normal numbers."""
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


Z, W = drawn(3, 5), drawn(3, 5)
R = rng.standard_normal((3, 5))
V, U = drawn(7), drawn(7)
SQUARE, OTHER = drawn(3, 3), drawn(3, 3)
BATCH, BATCH2 = drawn(2, 3, 5), drawn(2, 5, 3)
INDEX = np.array([2, 0, 2])
PLACES = rng.integers(0, 3, (3, 5))
MASK = rng.random((3, 5)) < 0.5


def t(x: Any) -> Any:
    """Arrays as tensors; everything else as it is."""
    if isinstance(x, np.ndarray):
        return Tensor(x)
    return type(x)(t(item) for item in x) if isinstance(x, (list, tuple)) else x


def same(ours: Any, theirs: Any, rtol: float = 1e-12) -> None:
    """Asserts that a result is numpy's, dtype included."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, two in zip(ours, theirs, strict=True):
            same(one, two, rtol)
        return
    if not isinstance(ours, Tensor):
        assert ours == theirs
        return
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype.kind == {"c": "complex", "f": "float", "b": "bool", "i": "int"}[theirs.dtype.kind]
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=rtol, atol=rtol)


def changed(x: Any, write: Callable[[Any], None]) -> Any:
    """A copy that was written to."""
    out = x.copy()
    write(out)
    return out


def padded(x: Any) -> Any:
    return np.pad(x, ((1, 2), (0, 3)), constant_values=1 - 2j)


def scattered(x: Any, add: bool = False) -> Any:
    out = x.copy()
    for i in range(3):
        for j in range(5):
            out[PLACES[i, j], j] = (out[PLACES[i, j], j] if add else 0) + W[i, j]
    return out


def indexed(x: Any) -> Any:
    out = x.copy()
    np.add.at(out, INDEX, W)
    return out


def windows(x: Any) -> Any:
    return np.stack([x[:, i : i + 2] for i in range(4)], 1)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    # name: ours, numpy's, arguments
    "add": (lambda z, w: z + w, np.add, (Z, W)),
    "add number": (lambda z: z + (2 - 1j), lambda z: z + (2 - 1j), (R,)),
    "add alpha": (lambda z, w: z.add(w, alpha=2), lambda z, w: z + 2 * w, (Z, R)),
    "sub": (lambda z, w: w - z, lambda z, w: w - z, (Z, R)),
    "rsub": (lambda z, w: z.rsub(w), lambda z, w: w - z, (Z, W)),
    "mul": (lambda z, w: z * w, np.multiply, (Z, W)),
    "mul real": (lambda z, r: r * z, lambda z, r: r * z, (Z, R)),
    "mul broadcast": (lambda z, w: z * w, np.multiply, (Z, W[:1])),
    "div": (lambda z, w: z / w, np.divide, (Z, W)),
    "div real": (lambda z, r: r / z, lambda z, r: r / z, (Z, R)),
    "div number": (lambda z: z / (0.5 + 3j) + (1 + 2j) / z, lambda z: z / (0.5 + 3j) + (1 + 2j) / z, (Z,)),
    "pow": (lambda z, w: z**w, np.power, (Z, W)),
    "pow whole": (lambda z: z**5 + z**-3, lambda z: z**5 + z**-3.0, (Z,)),
    "pow number": (lambda z: z ** (0.5 + 1j) + z**0.5, lambda z: z ** (0.5 + 1j) + z**0.5, (Z,)),
    "rpow": (lambda z: 2.5**z, lambda z: 2.5**z, (Z,)),
    "float_power": (lambda z: z.float_power(2.5), lambda z: z**2.5, (Z,)),
    "neg": (lambda z: -z, np.negative, (Z,)),
    "positive": (lambda z: z.positive(), np.positive, (Z,)),
    "reciprocal": (lambda z: z.reciprocal(), lambda z: 1 / z, (Z,)),
    "square": (lambda z: z.square(), np.square, (Z,)),
    "lerp": (lambda z, w: z.lerp(w, 0.25), lambda z, w: z + 0.25 * (w - z), (Z, W)),
    "addcmul": (lambda z, w: z.addcmul(w, z, value=2), lambda z, w: z + 2 * w * z, (Z, W)),
    "addcdiv": (lambda z, w: z.addcdiv(w, z), lambda z, w: z + w / z, (Z, W)),
    "eq": (lambda z, w: z == w, np.equal, (Z, np.where(MASK, Z, Z.real))),
    "ne": (lambda z, w: z != w, np.not_equal, (Z, np.where(MASK, Z, Z.real))),
    **{
        name: (lambda z, name=name: getattr(z, name)(), getattr(np, name), (Z,))
        for name in "abs angle exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh isnan isinf "
        "isfinite isreal conj sum mean prod any all logical_not".split()
    },
    **{
        name: (lambda z, name=name: getattr(z, name)(), getattr(np, "arc" + name[1:]), (2 * Z,))
        for name in "asin acos atan asinh acosh atanh".split()
    },
    "rsqrt": (lambda z: z.rsqrt(), lambda z: 1 / np.sqrt(z), (Z,)),
    "sigmoid": (lambda z: z.sigmoid(), lambda z: 1 / (1 + np.exp(-z)), (Z,)),
    "sgn": (lambda z: z.sgn(), np.sign, (Z,)),
    "conj_physical": (lambda z: z.conj_physical(), np.conj, (Z,)),
    "resolve_conj": (lambda z: z.conj().resolve_conj(), np.conj, (Z,)),
    "resolve_neg": (lambda z: z.conj().resolve_neg(), np.conj, (Z,)),
    "view_as_real": (lambda z: z.view_as_real(), lambda z: np.stack([z.real, z.imag], -1), (Z,)),
    "H": (lambda z: z.H, lambda z: z.conj().T, (Z,)),
    "mH": (lambda z: z.mH, lambda z: z.conj().swapaxes(-1, -2), (BATCH,)),
    "T": (lambda z: z.T, lambda z: z.T, (Z,)),
    "reshape": (lambda z: z.reshape(5, -1), lambda z: z.reshape(5, 3), (Z,)),
    "reshape_as": (lambda z, w: z.reshape_as(w), lambda z, w: z.reshape(15), (Z, drawn(15))),
    "view": (lambda z: z.view(15), lambda z: z.reshape(15), (Z,)),
    "view_as": (lambda z, w: z.view_as(w), lambda z, w: z.reshape(15), (Z, drawn(15))),
    "view_copy": (lambda z: z.view_copy(15), lambda z: z.reshape(15), (Z,)),
    "expand": (lambda z: z[:1].expand(4, 5), lambda z: np.broadcast_to(z[:1], (4, 5)), (Z,)),
    "expand_as": (lambda z, w: z[:1].expand_as(w), lambda z, w: np.broadcast_to(z[:1], (3, 5)), (Z, W)),
    "expand_copy": (lambda z: z[:1].expand_copy(4, 5), lambda z: np.broadcast_to(z[:1], (4, 5)), (Z,)),
    "broadcast_to": (lambda z: z.broadcast_to((2, 3, 5)), lambda z: np.broadcast_to(z, (2, 3, 5)), (Z,)),
    "permute": (lambda z: z.permute(2, 0, 1), lambda z: z.transpose(2, 0, 1), (BATCH,)),
    "permute_copy": (lambda z: z.permute_copy(2, 0, 1), lambda z: z.transpose(2, 0, 1), (BATCH,)),
    "transpose": (lambda z: z.transpose(0, 1), lambda z: z.T, (Z,)),
    "transpose_copy": (lambda z: z.transpose_copy(0, 1), lambda z: z.T, (Z,)),
    "t": (lambda z: z.t(), lambda z: z.T, (Z,)),
    "t_copy": (lambda z: z.t_copy(), lambda z: z.T, (Z,)),
    "movedim": (lambda z: z.movedim(0, 2), lambda z: np.moveaxis(z, 0, 2), (BATCH,)),
    "flip": (lambda z: z.flip(1), lambda z: np.flip(z, 1), (Z,)),
    "fliplr": (lambda z: z.fliplr(), np.fliplr, (Z,)),
    "flipud": (lambda z: z.flipud(), np.flipud, (Z,)),
    "rot90": (lambda z: z.rot90(), np.rot90, (Z,)),
    "roll": (lambda z: z.roll(2, 1), lambda z: np.roll(z, 2, 1), (Z,)),
    "shrink": (lambda z: z.shrink([(1, 3), None]), lambda z: z[1:3], (Z,)),
    "shrink_to": (lambda z: z.shrink_to(2, None), lambda z: z[:2], (Z,)),
    "narrow": (lambda z: z.narrow(1, 1, 2), lambda z: z[:, 1:3], (Z,)),
    "narrow_copy": (lambda z: z.narrow_copy(1, 1, 2), lambda z: z[:, 1:3], (Z,)),
    "select": (lambda z: z.select(1, 2), lambda z: z[:, 2], (Z,)),
    "pad": (lambda z: z.pad([(1, 2), (0, 3)], value=1 - 2j), padded, (Z,)),
    "pad_to": (lambda z: z.pad_to(4, 5, value=1 - 2j),
               lambda z: np.pad(z, ((0, 1), (0, 0)), constant_values=1 - 2j), (Z,)),
    "squeeze": (lambda z: z[:1].squeeze(), lambda z: z[0], (Z,)),
    "squeeze_copy": (lambda z: z[:1].squeeze_copy(), lambda z: z[0], (Z,)),
    "unsqueeze": (lambda z: z.unsqueeze(1), lambda z: z[:, None], (Z,)),
    "unsqueeze_copy": (lambda z: z.unsqueeze_copy(1), lambda z: z[:, None], (Z,)),
    "flatten": (lambda z: z.flatten(), np.ravel, (Z,)),
    "ravel": (lambda z: z.ravel(), np.ravel, (Z,)),
    "unflatten": (lambda z: z.unflatten(1, (5, 1)), lambda z: z[..., None], (Z,)),
    "split": (lambda z: z.split(2, 1), lambda z: (z[:, :2], z[:, 2:4], z[:, 4:]), (Z,)),
    "split_with_sizes_copy": (lambda z: z.split_with_sizes_copy([2, 3], 1), lambda z: (z[:, :2], z[:, 2:]), (Z,)),
    "chunk": (lambda z: z.chunk(2, 1), lambda z: [z[:, :3], z[:, 3:]], (Z,)),
    "tensor_split": (lambda z: list(z.tensor_split(2, 1)), lambda z: np.array_split(z, 2, 1), (Z,)),
    "hsplit": (lambda z: list(z.hsplit([2])), lambda z: np.hsplit(z, [2]), (Z,)),
    "vsplit": (lambda z: list(z.vsplit([2])), lambda z: np.vsplit(z, [2]), (Z,)),
    "dsplit": (lambda z: list(z.dsplit([2])), lambda z: np.dsplit(z, [2]), (BATCH,)),
    "unbind": (lambda z: z.unbind(1), lambda z: tuple(z.T), (Z,)),
    "unbind_copy": (lambda z: z.unbind_copy(1), lambda z: tuple(z.T), (Z,)),
    "repeat": (lambda z: z.repeat(2, 3), lambda z: np.tile(z, (2, 3)), (Z,)),
    "tile": (lambda z: z.tile((2, 3)), lambda z: np.tile(z, (2, 3)), (Z,)),
    "repeat_interleave": (lambda z: z.repeat_interleave(2, 1), lambda z: np.repeat(z, 2, 1), (Z,)),
    "rearrange": (lambda z: z.rearrange("a b -> b a"), np.transpose, (Z,)),
    "unfold": (lambda z: z.unfold(1, 2, 1), windows, (Z,)),
    "unfold_copy": (lambda z: z.unfold_copy(1, 2, 1), windows, (Z,)),
    "diagonal": (lambda z: z.diagonal(), np.diagonal, (SQUARE,)),
    "diagonal_copy": (lambda z: z.diagonal_copy(), np.diagonal, (SQUARE,)),
    "diag": (lambda z: z.diag(), np.diag, (V,)),
    "diag_embed": (lambda z: z.diag_embed(), np.diag, (V,)),
    "diagflat": (lambda z: z.diagflat(), np.diagflat, (V,)),
    "tril": (lambda z: z.tril(), np.tril, (SQUARE,)),
    "triu": (lambda z: z.triu(1), lambda z: np.triu(z, 1), (SQUARE,)),
    "trace": (lambda z: z.trace(), np.trace, (SQUARE,)),
    "atleast_1d": (lambda z: z.sum().atleast_1d(), lambda z: np.atleast_1d(z.sum()), (Z,)),
    "atleast_2d": (lambda z: z.atleast_2d(), np.atleast_2d, (V,)),
    "atleast_3d": (lambda z: z.atleast_3d(), np.atleast_3d, (Z,)),
    "pixel_shuffle": (lambda z: z.pixel_shuffle(2).flatten().sum(), np.sum, (drawn(1, 4, 2, 2),)),
    "pixel_unshuffle": (lambda z: z.pixel_unshuffle(2).pixel_shuffle(2), lambda z: z, (drawn(1, 1, 4, 4),)),
    "channel_shuffle": (lambda z: z.channel_shuffle(2), lambda z: z[:, [0, 2, 1, 3]], (drawn(1, 4, 2, 2),)),
    "getitem": (lambda z: z[1:, None, ::2], lambda z: z[1:, None, ::2], (Z,)),
    "getitem ellipsis": (lambda z: z[..., -1], lambda z: z[..., -1], (Z,)),
    "getitem list": (lambda z: z[[2, 0]], lambda z: z[[2, 0]], (Z,)),
    "getitem mask": (lambda z, m: z[m], lambda z, m: z[m], (Z, MASK)),
    "iterate": (lambda z: list(z), list, (Z,)),
    "gather": (lambda z, i: z.gather(0, i), lambda z, i: np.take_along_axis(z, i, 0), (Z, PLACES)),
    "take_along_dim": (lambda z, i: z.take_along_dim(i, 0), lambda z, i: np.take_along_axis(z, i, 0), (Z, PLACES)),
    "index_select": (lambda z, i: z.index_select(0, i), lambda z, i: z[i], (Z, INDEX)),
    "take": (lambda z, i: z.take(i), lambda z, i: z.ravel()[i], (Z, INDEX)),
    "masked_select": (lambda z, m: z.masked_select(m), lambda z, m: z[m], (Z, MASK)),
    "masked_fill": (lambda z, m: z.masked_fill(m, 2j), lambda z, m: np.where(m, 2j, z), (Z, MASK)),
    "masked_scatter": (
        lambda z, m, w: z.masked_scatter(m, w), lambda z, m, w: changed(z, lambda o: np.put(o, np.flatnonzero(m), w)),
        (Z, MASK, W),
    ),
    "where": (lambda m, z, w: m.where(z, w), np.where, (MASK, Z, W)),
    "where number": (lambda m, z: m.where(z, 1j), lambda m, z: np.where(m, z, 1j), (MASK, R)),
    "scatter": (lambda z, i, w: z.scatter(0, i, w), lambda z, i, w: scattered(z), (Z, PLACES, W)),
    "scatter_add": (lambda z, i, w: z.scatter_add(0, i, w), lambda z, i, w: scattered(z, True), (Z, PLACES, W)),
    "index_add": (lambda z, i, w: z.index_add(0, i, w), lambda z, i, w: indexed(z), (Z, INDEX, W)),
    "index_copy": (
        lambda z, w: z.index_copy(0, Tensor([2, 0]), w[:2]), lambda z, w: np.stack([w[1], z[1], w[0]]), (Z, W)
    ),
    "index_fill": (
        lambda z: z.index_fill(0, Tensor([1]), 3j), lambda z: np.stack([z[0], 0 * z[0] + 3j, z[2]]), (Z,)
    ),
    "index_put": (
        lambda z, w: z.index_put((Tensor([2, 0]),), w[:2]), lambda z, w: np.stack([w[1], z[1], w[0]]), (Z, W)
    ),
    "put": (
        lambda z, w: z.put(Tensor([3, 1]), w[0, :2]),
        lambda z, w: changed(z, lambda o: np.put(o, [3, 1], w[0, :2])), (Z, W),
    ),
    "select_scatter": (
        lambda z, w: z.select_scatter(w[0], 0, 1), lambda z, w: np.stack([z[0], w[0], z[2]]), (Z, W)
    ),
    "slice_scatter": (
        lambda z, w: z.slice_scatter(w[:1], 0, 1, 2), lambda z, w: np.stack([z[0], w[0], z[2]]), (Z, W)
    ),
    "diagonal_scatter": (
        lambda z, w: z.diagonal_scatter(w[0, :3]), lambda z, w: changed(z, lambda o: np.fill_diagonal(o, w[0, :3])),
        (SQUARE, W),
    ),
    "cat": (lambda z, r: T.cat([z, r], 1), lambda z, r: np.concatenate([z, r], 1), (Z, R)),
    "cat method": (lambda r, z: r.cat(z, dim=0), lambda r, z: np.concatenate([r, z], 0), (R, Z)),
    "stack": (lambda z, r: T.stack([r, z], dim=1), lambda z, r: np.stack([r, z], 1), (Z, R)),
    "hstack": (lambda z, r: T.hstack([z, r]), lambda z, r: np.hstack([z, r]), (Z, R)),
    "vstack": (lambda z, r: T.vstack([z, r]), lambda z, r: np.vstack([z, r]), (Z, R)),
    "dstack": (lambda z, r: T.dstack([z, r]), lambda z, r: np.dstack([z, r]), (Z, R)),
    "column_stack": (lambda z, r: T.column_stack([z, r]), lambda z, r: np.column_stack([z, r]), (Z, R)),
    "block_diag": (
        lambda z, w: Tensor.block_diag(z, w), lambda z, w: np.block([[z, np.zeros((3, 3))], [np.zeros((3, 3)), w]]),
        (SQUARE, OTHER),
    ),
    "broadcast_tensors": (
        lambda z, w: list(Tensor.broadcast_tensors(z, w)), lambda z, w: list(np.broadcast_arrays(z, w)), (Z, W[:1])
    ),
    "meshgrid": (
        lambda v, u: list(v.meshgrid(u, indexing="ij")), lambda v, u: list(np.meshgrid(v, u, indexing="ij")), (V, U)
    ),
    "cartesian_prod": (
        lambda v, u: Tensor.cartesian_prod(v, u), lambda v, u: np.stack([np.repeat(v, 7), np.tile(u, 7)], -1), (V, U)
    ),
    "sum axis": (lambda z: z.sum(0, keepdim=True), lambda z: z.sum(0, keepdims=True), (Z,)),
    "mean axis": (lambda z: z.mean(axis=(0, 1)), lambda z: z.mean((0, 1)), (Z,)),
    "prod axis": (lambda z: z.prod(1), lambda z: z.prod(1), (Z,)),
    "nansum": (lambda z: z.nansum(), np.nansum, (Z,)),
    "nan_to_num": (lambda z: z.nan_to_num(), np.nan_to_num, (Z,)),
    "cumsum": (lambda z: z.cumsum(1), lambda z: np.cumsum(z, 1), (Z,)),
    "cumprod": (lambda z: z.cumprod(1), lambda z: np.cumprod(z, 1), (Z,)),
    "var": (lambda z: z.var(0), lambda z: z.var(0, ddof=1), (Z,)),
    "std": (lambda z: z.std(0), lambda z: z.std(0, ddof=1), (Z,)),
    "norm": (lambda z: z.norm(), np.linalg.norm, (Z,)),
    "norm p": (lambda z: z.norm(3, 1), lambda z: np.linalg.norm(z, 3, 1), (Z,)),
    "dist": (lambda z, w: z.dist(w), lambda z, w: np.linalg.norm(z - w), (V, U)),
    "count_nonzero": (lambda z, m: z.masked_fill(m, 0).count_nonzero().int(), lambda z, m: (~m).sum(), (Z, MASK)),
    "nonzero": (lambda z, m: z.masked_fill(m, 0).nonzero().int(), lambda z, m: np.argwhere(~m), (Z, MASK)),
    "logical_and": (lambda z, m: z.logical_and(m), np.logical_and, (Z, MASK)),
    "logical_or": (lambda z, m: z.logical_or(m), np.logical_or, (Z, MASK)),
    "logical_xor": (lambda z, m: z.logical_xor(m), np.logical_xor, (Z, MASK)),
    "diff": (lambda z: z.diff(), np.diff, (Z,)),
    "diff around": (
        lambda z, r: z.diff(prepend=r, append=z), lambda z, r: np.diff(z, prepend=r, append=z), (Z, R)
    ),
    "trapezoid": (lambda z: z.trapezoid(), np.trapezoid, (Z,)),
    "cumulative_trapezoid": (
        lambda z: z.cumulative_trapezoid(), lambda z: np.cumsum((z[:, 1:] + z[:, :-1]) / 2, 1), (Z,)
    ),
    "sum_to_size": (lambda z: z.sum_to_size(1, 5), lambda z: z.sum(0, keepdims=True), (Z,)),
    "isclose": (lambda z: z.isclose(z + 1e-9j), lambda z: np.isclose(z, z + 1e-9j), (Z,)),
    "allclose": (lambda z: z.allclose(z + 1e-3j), lambda z: np.allclose(z, z + 1e-3j), (Z,)),
    "equal": (lambda z, w: (z.equal(z), z.equal(w)), lambda z, w: (True, False), (Z, W)),
    "matmul": (lambda z, w: z @ w, np.matmul, (BATCH, BATCH2)),
    "rmatmul": (lambda z, r: r @ z, lambda z, r: r @ z, (Z.T.copy(), R)),
    "matmul real": (lambda r, z: r.matmul(z), np.matmul, (R, Z.T.copy())),
    "dot": (lambda v, u: v.dot(u), np.dot, (V, U)),
    "vdot": (lambda v, u: v.vdot(u), np.vdot, (V, U)),
    "vdot real": (lambda v, u: v.vdot(u), np.vdot, (V.real.copy(), U)),
    "adjoint": (lambda z: z.adjoint(), lambda z: z.conj().T, (SQUARE,)),
    "matrix_power": (lambda z: z.matrix_power(3), lambda z: np.linalg.matrix_power(z, 3), (SQUARE,)),
    "matrix_power of 0": (lambda z: z.matrix_power(0), lambda z: np.linalg.matrix_power(z, 0), (SQUARE,)),
    "mm": (lambda z, w: z.mm(w), np.matmul, (SQUARE, OTHER)),
    "mv": (lambda z, v: z.mv(v[0]), lambda z, v: z @ v[0], (SQUARE, OTHER)),
    "bmm": (lambda z, w: z.bmm(w), np.matmul, (BATCH, BATCH2)),
    "outer": (lambda v, u: v.outer(u), np.outer, (V, U)),
    "inner": (lambda z, w: z.inner(w), np.inner, (Z, W)),
    "kron": (lambda z, w: z.kron(w), np.kron, (SQUARE, OTHER)),
    "cross": (lambda z, w: z.cross(w), np.cross, (SQUARE, OTHER)),
    "tensordot": (lambda z, w: z.tensordot(w, 1), lambda z, w: np.tensordot(z, w, 1), (SQUARE, OTHER)),
    "linear": (lambda z, w, v: z.linear(w, v[0]), lambda z, w, v: z @ w + v[0], (SQUARE, OTHER, OTHER)),
    "addmm": (lambda z, w: z.addmm(z, w, beta=2, alpha=1j), lambda z, w: 2 * z + 1j * (z @ w), (SQUARE, OTHER)),
    "addmv": (lambda z, w: z[0].addmv(z, w[0]), lambda z, w: z[0] + z @ w[0], (SQUARE, OTHER)),
    "addr": (lambda z, w: z.addr(w[0], w[1]), lambda z, w: z + np.outer(w[0], w[1]), (SQUARE, OTHER)),
    "baddbmm": (lambda a, z, w: a.baddbmm(z, w), lambda a, z, w: a + z @ w, (drawn(2, 3, 3), BATCH, BATCH2)),
    "addbmm": (lambda a, z, w: a.addbmm(z, w), lambda a, z, w: a + (z @ w).sum(0), (SQUARE, BATCH, BATCH2)),
    "einsum": (
        lambda z, r, w: Tensor.einsum("bij,kj,bjl->kl", z, r, w), lambda z, r, w: np.einsum("bij,kj,bjl->kl", z, r, w),
        (BATCH, R, BATCH2),
    ),
    "cast": (lambda r: r.cast("complex128"), lambda r: r.astype(complex), (R,)),
    "to": (lambda z, w: z.to("complex64").to(w), lambda z, w: z.astype("complex64").astype(complex), (Z, W)),
    "type": (lambda r: r.type("complex128"), lambda r: r.astype(complex), (R,)),
    "type_as": (lambda r, z: r.type_as(z), lambda r, z: r.astype(complex), (R, Z)),
    "to_": (lambda z: z.clone().to_("NUMPY"), lambda z: z, (Z,)),
    "bool": (lambda z, m: z.masked_fill(m, 0).bool(), lambda z, m: ~m, (Z, MASK)),
    "cfloat": (lambda z: z.cfloat().cast("complex128"), lambda z: z.astype("complex64"), (Z,)),
    "cdouble": (lambda z: z.cdouble(), lambda z: z, (Z,)),
    "clone": (lambda z: z.clone(), np.copy, (Z,)),
    "contiguous": (lambda z: z.T.contiguous(), np.transpose, (Z,)),
    "contiguous_backward": (lambda z: z.contiguous_backward(), np.copy, (Z,)),
    "detach": (lambda z: z.detach(), np.copy, (Z,)),
    "to_dense": (lambda z: z.to_dense(), np.copy, (Z,)),
    "realize": (lambda z: (z + 1).realize(z * 2), lambda z: z + 1, (Z,)),
    "zeros_like": (lambda z: z.zeros_like(), np.zeros_like, (Z,)),
    "ones_like": (lambda z: z.ones_like(), np.ones_like, (Z,)),
    "empty_like": (lambda z: z.empty_like().zero_(), np.zeros_like, (Z,)),
    "full_like": (lambda z: z.full_like(2j), lambda z: np.full_like(z, 2j), (Z,)),
    "const_like": (lambda z: z.const_like(2j), lambda z: np.full_like(z, 2j), (Z,)),
    "new_zeros": (lambda z: z.new_zeros(2, 3), lambda z: np.zeros((2, 3), complex), (Z,)),
    "new_ones": (lambda z: z.new_ones(2, 3), lambda z: np.ones((2, 3), complex), (Z,)),
    "new_empty": (lambda z: z.new_empty(2, 3).fill_(1j), lambda z: np.full((2, 3), 1j), (Z,)),
    "new_tensor": (lambda z: z.new_tensor([1j, 2]), lambda z: np.array([1j, 2]), (Z,)),
    "new": (lambda z: z.new([1j, 2]), lambda z: np.array([1j, 2]), (Z,)),
    "new_full": (lambda z: z.new_full((2, 3), 1j), lambda z: np.full((2, 3), 1j), (Z,)),
    "fill": (lambda z: z.fill(1j), lambda z: np.full_like(z, 1j), (Z,)),
    "fill_": (lambda z: z.clone().fill_(2), lambda z: np.full_like(z, 2), (Z,)),
    "zero_": (lambda z: z.clone().zero_(), np.zeros_like, (Z,)),
    "assign": (lambda z, w: z.clone().assign(w), lambda z, w: w, (Z, W)),
    "replace": (lambda z, w: z.clone().replace(w), lambda z, w: w, (Z, W)),
    "zeros": (lambda: Tensor.zeros(2, 3, dtype=complex), lambda: np.zeros((2, 3), complex), ()),
    "ones": (lambda: Tensor.ones(2, dtype="complex128"), lambda: np.ones(2, complex), ()),
    "empty": (lambda: Tensor.empty(2, dtype="complex128").fill_(1), lambda: np.ones(2, complex), ()),
    "eye": (lambda: Tensor.eye(3, dtype=np.complex128), lambda: np.eye(3, dtype=complex), ()),
    "arange": (lambda: Tensor.arange(3, dtype="complex128"), lambda: np.arange(3, dtype=complex), ()),
    "scalar_tensor": (lambda: T.scalar_tensor(2 - 1j, dtype="complex128"), lambda: np.array(2 - 1j), ()),
    "full": (lambda: T.full((2, 2), 1j, dtype="complex128"), lambda: np.full((2, 2), 1j), ()),
    "linspace": (
        lambda: T.linspace(0, 1 + 2j, 5, dtype="complex128"), lambda: np.linspace(0, 1 + 2j, 5), ()
    ),
}  # fmt: skip

ELSEWHERE = frozenset(
    """
    float half bfloat16 double int long short byte char bitcast numpy data tolist item schedule schedule_with_vars
    requires_grad_ retain_grad register_hook register_post_accumulate_grad_hook backward gradient rand randn
    rand_like randn_like conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d cholesky cholesky_inverse cholesky_solve det geqrf inverse logdet lu lu_solve
    matrix_exp orgqr ormqr pinverse qr slogdet svd triangular_solve as_strided as_strided_scatter combinations corrcoef
    cov l1_loss ldexp log_softmax logaddexp logcumsumexp logspace logsumexp nonzero_static normal_ normalize
    pairwise_distance renorm silu sinc softmax softmin softsign std_mean swish tanhshrink triplet_margin_loss uniform_
    var_mean stride storage_offset is_contiguous is_nonzero fill_diagonal_ copy_ detach_
    """.split()
)
"""Methods of which other tests are made."""


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    ours, theirs, args = CASES[name]
    same(ours(*t(list(args))), theirs(*args))


_WRITTEN = {
    "add_": (2 - 1j,), "mul_": (2 - 1j,), "sub_": (2.0,), "div_": (1j,), "pow_": (2,), "lerp_": (1j, 0.25),
    "masked_fill_": (Tensor([[True, False, False], [False, True, True]]), 0.5j), "put_": (Tensor([0, -1]), 7j),
}  # fmt: skip
_REFUSED = "abs_ absolute_ angle_ eq_ ne_ not_equal_ logical_and_ logical_not_ logical_or_ logical_xor_".split()


def test_every_name_with_an_underscore_writes_complex_numbers_or_refuses() -> None:
    """None gives another tensor and leaves its own as it was."""
    checked = 0
    for name in dir(Tensor):
        plain = name[:-1]
        if not name.endswith("_") or name.startswith("_") or not hasattr(Tensor, plain):
            continue
        z = Tensor([[1 + 2j, 3 - 1j, 0.5j], [2 + 0j, -1 - 1j, 0.25 + 0j]], dtype="complex128")
        args: tuple[Any, ...] = _WRITTEN.get(name, (0, 1) if name in ("transpose_", "swapaxes_", "swapdims_") else ())
        args = args or ((0,) if name in ("unsqueeze_", "cumsum_", "cumprod_") else ())
        try:
            wanted = getattr(z.clone(), plain)(*args)
        except (TypeError, ValueError):
            continue  # takes none, or other arguments
        if name in ("detach_", "to_") or not isinstance(wanted, Tensor) or wanted.dtype.kind != "complex":
            continue
        assert getattr(z, name)(*args) is z, name
        np.testing.assert_array_equal(z.numpy(), wanted.numpy(), err_msg=name)
        checked += 1
    assert checked > 30
    for name in _REFUSED:
        if hasattr(Tensor, name):
            with pytest.raises((TypeError, ValueError)):
                getattr(Tensor([1 + 2j]), name)(*((1j,) if name not in ("abs_", "absolute_", "logical_not_") else ()))


def test_where_elements_lie_is_said_as_of_floats() -> None:
    rows, columns = (int(n) for n in np.random.default_rng().integers(2, 6, 2))
    z = Tensor(np.arange(rows * columns).reshape(rows, columns) * (1 - 1j)).realize()
    for one in (z, z.T, z[1:], z[:, ::2]):
        for name in ("stride", "storage_offset", "is_contiguous"):
            assert getattr(one, name)() == getattr(one.real, name)(), name
    assert z[1:].storage_offset() == columns and z.T.stride() == (1, columns) and not z.T.is_contiguous()
    assert Tensor([1j]).is_nonzero() and not Tensor([0j]).is_nonzero() and z.type() == "complex128"


def test_copies_into_complex_tensors_views_of_them_and_real_ones() -> None:
    rng = np.random.default_rng(11)
    rows, cols = (int(n) for n in rng.integers(2, 8, 2))
    first, second = (rng.standard_normal((rows, cols)) + 1j * rng.standard_normal((rows, cols)) for _ in range(2))
    for given in (second, second.real.copy(), second[:1], np.complex128(2 - 1j), second.astype(np.complex64)):
        z = Tensor(first)
        value = given if given.ndim == 0 else Tensor(given)
        assert z.copy_(value) is z
        np.testing.assert_array_equal(z.numpy(), np.broadcast_to(given, (rows, cols)))
    z = Tensor(first)
    z.T.copy_(z.T.conj() * 2)  # reads what it writes
    np.testing.assert_array_equal(z.numpy(), first.conj() * 2)
    z[0].copy_(z[1])
    np.testing.assert_array_equal(z[0].numpy(), z[1].numpy())
    x = Tensor(first.real.copy())
    with pytest.raises(TypeError, match=r"copy_: complex numbers into a tensor of float64; cast them"):
        x.copy_(Tensor(second))
    np.testing.assert_array_equal(x.numpy(), first.real)
    for wrong in (None, Tensor(second).reshape(1, rows, cols).repeat(2, 1, 1)):
        with pytest.raises((TypeError, ValueError), match=r"^Tensor\.copy_: "):
            z.copy_(wrong)


def test_each_part_is_written_by_its_name() -> None:
    rng = np.random.default_rng(13)
    rows, cols = (int(n) for n in rng.integers(2, 8, 2))
    given = rng.standard_normal((rows, cols)) + 1j * rng.standard_normal((rows, cols))
    z, wanted = Tensor(given), given.copy()
    whole: Any = z
    whole.real, wanted.real = Tensor(given.imag.copy()), given.imag
    np.testing.assert_array_equal(z.numpy(), wanted)
    row: Any = z[0]
    row.imag, wanted[0].imag = 7, 7  # of a view, in the memory of the whole
    np.testing.assert_array_equal(z.numpy(), wanted)
    with pytest.raises(TypeError, match="copy_: complex numbers"):
        whole.imag = Tensor(given)
    np.testing.assert_array_equal(z.numpy(), wanted)
    with pytest.raises(ValueError, match="copy_"):
        whole.real = Tensor(np.zeros((rows, cols + 1)))


def test_a_gradient_flows_through_copies_of_complex_numbers() -> None:
    z = Tensor([1 + 2j, 3 - 1j], requires_grad=True)
    target = Tensor([0j, 0j])
    target.copy_(z * z)
    target.abs().sum().backward()  # |z²| = |z|², of which PyTorch's gradient is 2 z
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy(), rtol=1e-6)
    made = z * 2
    assert made.detach_() is made and made.requires_grad is False


def test_a_diagonal_of_complex_numbers_is_filled_as_numpy_fills_it() -> None:
    rows, cols = 7, 2
    number: Any = 2 - 1j
    for wrap in (False, True):
        filled = Tensor(np.zeros((rows, cols), np.complex128)).fill_diagonal_(number, wrap=wrap).numpy()
        wanted = np.zeros((rows, cols), np.complex128)
        np.fill_diagonal(wanted, 2 - 1j, wrap=wrap)
        np.testing.assert_array_equal(filled, wanted)


def test_every_rule_has_a_case() -> None:
    assert set(RULES) <= {name.partition(" ")[0] for name in CASES} | ELSEWHERE


def test_every_method_has_a_rule_or_refuses() -> None:
    kind = class_beside(Tensor)
    for name in (name for name in dir(Tensor) if not name.startswith("_")):
        own = getattr(unwrap(getattr(Tensor, name)), "__name__", name)
        if own in RULES or name in KEPT or own in KEPT:
            continue
        assert vars(kind)[name] is not getattr(Tensor, name)
        with pytest.raises(TypeError, match=rf"Tensor\.{own}: complex numbers"):
            getattr(Tensor([1j]), name)(1, 2, 3)
    for name in (name for name in vars(Array) if name.startswith("__")):
        if callable(getattr(Array, name)):
            assert name in vars(kind) or name in KEPT_OPERATORS or name in OPERATORS, name


def test_the_names_of_what_takes_complex_numbers() -> None:
    operators = {name for name in OPERATORS if name.strip("_") in ("add", "sub", "mul", "truediv", "pow", "matmul")}
    assert {name for name, kind in NUMBERS.items() if kind == "both"} == set(RULES) | operators


ARGUMENTS = ([0], [0, 0], [1, 0], [2], [2, 2], [3, 4, 0], [3.0, 2], [0, 1])


@pytest.mark.parametrize("module", [linalg, special, nn.functional], ids=lambda m: m.__name__)
def test_free_functions_refuse(module: Any) -> None:
    allowed = {*linalg.__all__, "exp2", "expm1", "log1p", "linear", "bilinear", "fold", "rms_norm", *CONVOLUTIONS}
    allowed |= {name for name, kind in NUMBERS.items() if kind == "both"}
    allowed.remove("lobpcg")
    z = Tensor(SQUARE)
    for name in module.__all__:
        if name in allowed or not callable(getattr(module, name)) or isinstance(getattr(module, name), type):
            continue
        for args in ((z,), (z, z), (z, 1), (Tensor(SQUARE.real.copy()), z), ([z, z],)):
            with pytest.raises(TypeError):
                getattr(module, name)(*args)


def test_real_methods_refuse_complex_arguments() -> None:
    z, real, index = Tensor(SQUARE), Tensor(SQUARE.real.copy()), Tensor(INDEX)
    places: list[Any] = [z, 1j, 2, 0, index, real]
    for name in (name for name in dir(Tensor) if not name.startswith("_")):
        method = getattr(Tensor, name)
        own = getattr(unwrap(method), "__name__", name)
        if not callable(method) or own in NUMBERS:
            continue
        for pattern in ARGUMENTS:
            args = [places[p] if isinstance(p, int) else p for p in pattern]
            if any(arg is z or arg == 1j if not isinstance(arg, Tensor) else arg is z for arg in args):
                with pytest.raises(TypeError, match=own):
                    method(*([] if isinstance(getattr(method, "__self__", None), type) else [real]), *args)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (3, 1, 4)])
def test_in_and_out(shape: tuple[int, ...], dtype: str) -> None:
    x = drawn(*shape, dtype=dtype) if shape else np.asarray(drawn(1, dtype=dtype)[0])
    z = Tensor(x)
    assert z.dtype.name == dtype and z.shape == shape and z.element_size() == x.itemsize and z.nbytes() == x.nbytes
    assert z.is_complex() and not z.is_floating_point() and z.ndim == x.ndim and z.numel() == x.size
    np.testing.assert_array_equal(z.numpy(), x)
    assert z.numpy().dtype == x.dtype and z.tolist() == x.tolist()
    np.testing.assert_array_equal(np.asarray(z), x)
    np.testing.assert_array_equal(np.from_dlpack(z), x)
    np.testing.assert_array_equal(Tensor.from_dlpack(x).numpy(), x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(z)).numpy(), x)
    if x.size or x.ndim == 1:
        np.testing.assert_array_equal(Tensor(x.tolist(), dtype=dtype).numpy(), x)
    np.testing.assert_array_equal(Tensor(x.tobytes(), dtype=dtype).numpy(), x.reshape(-1))
    assert bytes(z.data()) == x.tobytes()


def test_views_of_memory() -> None:
    x = drawn(2, 3)
    z = Tensor.from_dlpack(x[:, ::2])
    x[0, 0] = 9j
    assert z[0, 0].item() == 9j
    pairs = Tensor([[1.0, 2.0], [3.0, 4.0]])
    w = pairs.view_as_complex()
    w[0] = 5 - 5j
    assert pairs.tolist() == [[5.0, -5.0], [3.0, 4.0]]
    w.imag.assign([0.0, 1.0])
    assert w.tolist() == [5 + 0j, 3 + 1j] and w[1:].fill_(2j) is not None and w.tolist() == [5 + 0j, 2j]
    import array

    mine = array.array("d", [1, 2, 3, 4])
    lent = Tensor.from_blob(mine.buffer_info()[0], (2,), "complex128", "NUMPY", owner=mine)
    mine[1] = 7
    assert lent.tolist() == [1 + 7j, 3 + 4j]


def test_a_result_shares_no_part_with_an_operand() -> None:
    z = Tensor([1 + 2j, 3 + 4j])
    made: list[Any] = [
            z + 1.0, z.conj(), z.detach().clone(), z.real.cast("complex64"), Tensor.complex(z.real, z.imag), z * 1,
            t(z).cat(), z.masked_fill(Tensor([False] * 2), 0), z.cast("complex128").cast("complex64")]  # fmt: skip
    before = [one.tolist() for one in made]
    z.assign([0, 0])
    assert [one.tolist() for one in made] == before


def test_in_place() -> None:
    x, w = drawn(5), drawn(5)
    for operator in ("iadd", "isub", "imul", "itruediv"):
        z, expected = Tensor(x), x.copy()
        kept = z.real
        changed = getattr(z, f"__{operator}__")(Tensor(w))
        getattr(expected, f"__{operator}__")(w)
        assert changed is z
        np.testing.assert_allclose(z.numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(kept.numpy(), expected.real, rtol=1e-12)
    z = Tensor(x)
    z *= z  # both parts are made of the old ones
    z[1:3] = z[:2]
    z[0] = 2
    z[4] = 1j
    expected = x * x
    expected[1:3] = expected[:2].copy()
    expected[0], expected[4] = 2, 1j
    np.testing.assert_allclose(z.numpy(), expected, rtol=1e-12)
    z **= 2
    np.testing.assert_allclose(z.numpy(), expected**2, rtol=1e-12)
    r = Tensor([1.0])
    with pytest.raises(ValueError, match=r"\+=: the result type complex64 can't be cast to float32"):
        r += 1j
    with pytest.raises(TypeError, match="complex numbers into a tensor of float32"):
        r[0] = 1j
    with pytest.raises(TypeError, match="complex numbers into a tensor of float32"):
        r.assign(Tensor([1j]))


def test_text() -> None:
    assert repr(Tensor([1 + 2j, -0.5 - 1j])) == "Tensor([ 1. +2.j, -0.5-1.j])"
    assert repr(Tensor(1j)) == "Tensor(0.+1.j)" and f"{Tensor(1 + 2j):.2f}" == "1.00+2.00j"
    assert repr(Tensor([], dtype="complex64")) == "Tensor([], dtype=complex64)"
    assert repr(Tensor([1j], dtype="complex128", requires_grad=True)) == (
        "Tensor([0.+1.j], dtype=complex128, requires_grad=True)"
    )
    assert "nan" in repr(Tensor([complex("nan"), complex("inf")]))
    assert "..." in repr(Tensor.zeros(2000, dtype="complex64"))
    assert Tensor([1j])._repr_html_() == "<pre>Tensor([0.+1.j])</pre>"


def test_casts_to_real_warn_as_in_torch() -> None:
    z = Tensor([1.9 + 2j, -3 + 0j])
    for name, kind in (("float", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"), ("double", "float64"),
                       ("int", "int32"), ("long", "int64"), ("short", "int16"), ("char", "int8")):  # fmt: skip
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            out = getattr(z, name)()
        assert out.dtype.name == kind and out[1].item() == -3
    with pytest.warns(UserWarning, match="imaginary"):
        assert z.abs().cast("complex64").byte().tolist() == [2, 3]
    with pytest.raises(TypeError, match="view_as_real"):
        z.bitcast("float64")
    assert [z.cast("complex128").dtype, z.cast("complex64") is z] == [dtypes.complex128, True]


def test_promotion() -> None:
    one = {kind: Tensor.ones(1, dtype=kind) for kind in (*dtypes.all, *dtypes.complexes)}
    for kind, x in one.items():
        wide = kind in (dtypes.float64, dtypes.complex128)
        assert (x + one[dtypes.complex64]).dtype.name == ("complex128" if wide else "complex64")
        assert (x * 1j).dtype.name == ("complex128" if wide else "complex64")
        assert (one[dtypes.complex64] + 1.0).dtype is dtypes.complex64
        assert x.cast("complex64").tolist() == [1 + 0j]


def test_powers_of_zero_and_quotients() -> None:
    zero, one = Tensor([0j], dtype="complex128"), Tensor([1 + 1j], dtype="complex128")
    assert (zero ** Tensor([2 + 1j])).tolist() == [0j] and (zero**0).tolist() == [1 + 0j]
    assert (zero**0.25).tolist() == [0j] and (zero ** Tensor([0j])).tolist() == [1 + 0j]
    assert np.isnan((zero ** Tensor([-1 + 1j])).item().real)
    with np.errstate(all="ignore"):
        for top in (1 + 1j, 1 + 0j, 0j):
            np.testing.assert_array_equal((one * 0 + top).div(zero).numpy(), np.array([top]) / np.array([0j]))
    large = np.array([1e300 + 1e300j])
    np.testing.assert_allclose((Tensor(large) / Tensor(large)).numpy(), [1])
    np.testing.assert_allclose((Tensor(large) / (1e300 - 1e300j)).numpy(), [1j])


SPECIAL = [complex(a, b) for a in (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf) for b in (0.0, -0.0, 2.0, np.inf, -np.inf)]


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "abs", "angle", "sinh", "cosh"])
def test_special_values(name: str) -> None:
    x = np.array(SPECIAL)
    if name in ("exp", "sinh", "cosh"):
        x = x[np.isfinite(x.imag)]
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(x)
    ours = getattr(Tensor(x), name)().numpy()
    for one, two in ((ours.real, theirs.real), (ours.imag, theirs.imag)):
        np.testing.assert_allclose(one, two, rtol=1e-14)


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "acosh", "atanh", "atan", "asinh"])
def test_branch_cuts(name: str) -> None:
    x = np.array([complex(a, b) for a in (-2.5, 2.5) for b in (0.0, -0.0)])
    x = 1j * x if name in ("atan", "asinh") else x
    theirs = getattr(np, {"a": "arc" + name[1:]}.get(name[0], name))(x)
    np.testing.assert_allclose(getattr(Tensor(x), name)().numpy(), theirs, rtol=1e-13)


ACCURATE = "exp log log1p expm1 sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh reciprocal".split()


@pytest.mark.parametrize("name", ACCURATE)
def test_accuracy_of_complex64(name: str) -> None:
    x = (drawn(2000) * 10.0 ** rng.uniform(-3, 0.5, 2000)).astype("complex64")
    numpys = {"reciprocal": np.reciprocal}.get(name) or getattr(np, "arc" + name[1:] if name in CASES and
                                                               name[0] == "a" and name != "abs" else name)  # fmt: skip
    exact, ours = numpys(x.astype(complex)), getattr(Tensor(x), name)().numpy()
    assert np.max(np.abs(ours - exact) / np.abs(exact)) < 2e-6


SLOPES: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "expm1": np.exp, "exp2": lambda z: np.log(2) * np.exp2(z),
    "log": lambda z: 1 / z, "log1p": lambda z: 1 / (1 + z), "log2": lambda z: 1 / (z * np.log(2)),
    "log10": lambda z: 1 / (z * np.log(10)), "sqrt": lambda z: 0.5 / np.sqrt(z),
    "rsqrt": lambda z: -0.5 / (z * np.sqrt(z)),
    "sinh": np.cosh, "cosh": np.sinh, "tanh": lambda z: 1 / np.cosh(z) ** 2,
    "sin": np.cos, "cos": lambda z: -np.sin(z), "tan": lambda z: 1 / np.cos(z) ** 2,
    "asin": lambda z: 1 / (np.sqrt(1 - z) * np.sqrt(1 + z)), "acos": lambda z: -1 / (np.sqrt(1 - z) * np.sqrt(1 + z)),
    "atan": lambda z: 1 / ((1 + 1j * z) * (1 - 1j * z)), "atanh": lambda z: 1 / ((1 - z) * (1 + z)),
    "asinh": lambda z: 1 / (np.sqrt(1 + 1j * z) * np.sqrt(1 - 1j * z)),
    "acosh": lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)), "reciprocal": lambda z: -1 / z**2,
}  # fmt: skip
"""Derivatives of functions, written so that nothing cancels."""


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_complex64_have_their_digits(name: str) -> None:
    """Also where a function is nearly constant, as tanh is at a distance, and its slope is small."""
    draw = np.random.default_rng(sorted(SLOPES).index(name))
    sizes = draw.choice([0.01, 0.3, 1.0, 4.0, 9.0], (2, 3000)) * draw.standard_normal((2, 3000))
    x = (sizes[0] + 1j * sizes[1]).astype("complex64")
    exact = SLOPES[name](x.astype(complex)).conj()
    for part, turned in (("real", 1), ("imag", 1j)):
        z = Tensor(x, requires_grad=True)
        getattr(getattr(z, name)(), part).sum().backward()
        assert z.grad is not None
        slope = exact * turned
        known = (np.abs(slope) > 1e-30) & (np.abs(slope) < 1e30)
        assert np.max(np.abs(z.grad.numpy() - slope)[known] / np.abs(slope)[known]) < 4e-6, part


@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "mean", "cumsum", "cumprod", "trace"])
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_totals_are_in_the_dtype_that_was_asked_for(name: str) -> None:
    """A real one is that of the real parts: the imaginary ones are dropped before."""
    z = np.array([[1 + 2j, 2 - 1j], [3j, 4 + 1j]])
    args = (0,) if name.startswith("cum") else ()
    for kind in ("float32", "float64", "complex64", "complex128", *(() if name == "mean" else ("int32",))):
        with Context(DEV="NUMPY"):
            found = getattr(Tensor(z), name)(*args, dtype=kind)
            real = getattr(Tensor(z.real), name)(*args, dtype=kind)
        wanted = getattr(np, name)(z.astype(kind), *args)
        assert found.dtype is real.dtype, (kind, found.dtype, real.dtype)
        np.testing.assert_allclose(found.numpy(), wanted, 1e-6, err_msg=kind)


@pytest.mark.parametrize("order", ["nuc", "fro", None, 0, 1, 2, 3, 0.5, np.inf, -np.inf])
def test_norms_of_complex_matrices(order: Any) -> None:
    for x, axes in ((SQUARE, None), (BATCH, (1, 2)), (BATCH, (2, 0))):
        for keepdim in (False, True):
            found = T(x).norm(order, axes, keepdim)
            moved = x if axes is None else np.moveaxis(x, axes, (-2, -1))
            if order == "nuc":
                wanted = np.linalg.norm(moved, "nuc", (-2, -1))
            else:
                flat = moved.reshape(*moved.shape[:-2], -1)
                wanted = np.linalg.norm(flat, 2 if order in ("fro", None) else order, -1)
            assert found.ndim == (x.ndim if keepdim else x.ndim - 2)
            np.testing.assert_allclose(found.numpy().reshape(np.shape(wanted)), wanted, rtol=1e-12)
            others = np.ones_like(x)
            if axes is None and not keepdim:
                np.testing.assert_allclose(T(x + others).dist(T(others), order).numpy(), wanted, rtol=1e-12)


def test_casts_and_copies_as_those_of_reals() -> None:
    z = Tensor(Z)
    assert z.to("complex128") is z and z.to("complex128", False, True) is not z and z.to(copy=True) is not z
    narrow: list[Callable[[], Any]] = [
        lambda: z.to(z.device, "complex64", True, True), lambda: z.to("complex64", True, True),
        lambda: z.to(dtype="complex64", copy=True),
    ]  # fmt: skip
    for call in narrow:
        moved = call()
        assert moved.dtype is dtypes.complex64 and np.allclose(moved.numpy(), Z, rtol=1e-6)
    copy = z.to(z.device, copy=True)
    copy[0, 0] = 9
    assert z.numpy()[0, 0] == Z[0, 0]
    number = Tensor.scalar_tensor(-5, dtype="complex64")
    assert number.dtype is dtypes.complex64 and number.item() == -5


DIFFERENTIABLE: dict[str, Callable[[Any], Any]] = {
    **{name: methodcaller(name) for name in
       "exp log log1p expm1 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh abs angle sgn "
       "square reciprocal sigmoid conj sum mean prod exp2 log2 log10".split()},
    "real": lambda z: z.real * z.imag,
    "mul": lambda z: z * z.conj().flip(0) * 2j,
    "div": lambda z: z / z.flip(0),
    "div number": lambda z: (1 + 2j) / z,
    "pow": lambda z: z ** z.flip(0),
    "whole power": lambda z: z**-3,
    "matmul": lambda z: z.reshape(2, 2) @ z.reshape(2, 2).H,
    "cumprod": lambda z: z.cumprod(0),
    "index": lambda z: z[[0, 0, 2]].cat(z[1:], dim=0),
    "where": lambda z: (z.detach().abs() > 1).where(z, z * z),
    "view_as_real": lambda z: z.view_as_real().square().view_as_complex(),
    "polar": lambda z: Tensor.polar(z.real.square(), z.imag),
    "norm": lambda z: z.norm(),
}  # fmt: skip


@pytest.mark.drawn(16)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_and_second_gradients(name: str) -> None:
    function = DIFFERENTIABLE[name]
    x = 0.4 * drawn(4) + (1.5 + 0.7j)
    weights = drawn(*function(Tensor(x)).shape) if function(Tensor(x)).shape else drawn(1)[0]

    def number(z: Any) -> Any:
        out = function(z)
        real = out if not out.is_complex() else (out * Tensor(weights).conj()).real
        return (real * (Tensor(np.asarray(weights.real)) if not out.is_complex() else 1)).sum()

    def slope(z: Any) -> Any:
        return number(z).gradient(z)[0]

    ways = drawn(4)
    z = Tensor(x)
    found = slope(z)
    second = ((found * Tensor(ways).conj()).real.sum()).gradient(z, materialize_grads=True)[0].numpy()
    step = 1e-5
    for i, unit in ((0, 1), (1, 1j), (3, 1)):
        moved = [x.copy(), x.copy()]
        moved[0][i] += step * unit
        moved[1][i] -= step * unit
        rise = (number(Tensor(moved[0])).item() - number(Tensor(moved[1])).item()) / (2 * step)
        ours = found[i].item()
        assert (ours.real if unit == 1 else ours.imag) == pytest.approx(rise, rel=1e-6, abs=1e-8)
        bend = [(slope(Tensor(one)).numpy() * ways.conj()).real.sum() for one in moved]
        ours = second[i]
        expected = (bend[0] - bend[1]) / (2 * step)
        assert (ours.real if unit == 1 else ours.imag) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_backward() -> None:
    z: Any = Tensor([3 + 4j, 0j], requires_grad=True)
    assert z.requires_grad is True
    assert not z.grad
    z.abs().sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), np.array([0.6 + 0.8j, 0]), rtol=1e-6)
    z.grad = None
    w = z * (1 + 2j)
    w.backward(Tensor([1 + 1j, 2j]))  # the conjugate of the factor, times the weight
    assert z.grad.tolist() == [(1 + 1j) * (1 - 2j), 2j * (1 - 2j)]
    with pytest.raises(RuntimeError, match=r"Tensor\.backward|backward: gradients are of real numbers"):
        (z * z).sum().backward()
    with pytest.raises(RuntimeError, match="nothing depends on target 0"):
        Tensor([1.0], requires_grad=True).sum().gradient(Tensor([1j]))
    only: Any = Tensor([1 + 1j], requires_grad=True)
    only.real.sum().backward()
    assert only.grad.tolist() == [1 + 0j] and only.requires_grad_(False).requires_grad is False
    nn.optim.SGD([only.requires_grad_()], lr=0.5).step()
    assert only.tolist() == [0.5 + 1j]


def test_transforms() -> None:
    z, w = drawn(3), drawn(3)

    def energy(x: Any) -> Any:
        return (x * x.conj()).real.sum()

    np.testing.assert_allclose(frontend.grad(energy)(Tensor(z)).numpy(), 2 * z)
    value, back = frontend.vjp(lambda x: x * x, Tensor(z))
    np.testing.assert_allclose(value.numpy(), z * z)
    np.testing.assert_allclose(back(Tensor(w))[0].numpy(), 2 * z.conj() * w)
    value, moved = frontend.jvp(lambda x: x * x, (Tensor(z),), (Tensor(w),))
    np.testing.assert_allclose(moved.numpy(), 2 * z * w)
    rows = drawn(4, 3)
    np.testing.assert_allclose(frontend.vmap(lambda x: (x * Tensor(w)).sum())(Tensor(rows)).numpy(), rows @ w)
    for function in (frontend.jacrev, frontend.jacfwd, frontend.hessian):
        with pytest.raises(TypeError, match="complex"):
            function(lambda x: x * x)(Tensor(z))


def test_tinyjit() -> None:
    weight = Tensor(drawn(3, 3))

    @frontend.TinyJit
    def step(x: Any) -> Any:
        return (x @ weight).realize()

    for _ in range(4):
        x = drawn(2, 3)
        np.testing.assert_allclose(step(Tensor(x).realize()).numpy(), x @ weight.numpy(), rtol=1e-12)
    weight.assign(drawn(3, 3))
    x = drawn(2, 3)
    np.testing.assert_allclose(step(Tensor(x).realize()).numpy(), x @ weight.numpy(), rtol=1e-12)


def test_random() -> None:
    Tensor.manual_seed(3)
    z = Tensor.randn(20000, dtype="complex64").numpy()
    assert z.dtype == "complex64" and abs(np.mean(np.abs(z) ** 2) - 1) < 0.03 and abs(np.mean(z)) < 0.03
    assert abs(np.var(z.real) - 0.5) < 0.02 and abs(np.mean(z.real * z.imag)) < 0.02
    u = Tensor.rand(1000, dtype="complex128").numpy()
    assert u.real.min() >= 0 and u.imag.max() < 1 and u.dtype == "complex128"
    assert Tensor.randn(2, 3, dtype="complex64").randn_like().dtype.name == "complex64"
    assert Tensor.rand(2, 3).rand_like(dtype="complex64").shape == (2, 3)


def test_files(tmp_path: Any) -> None:
    path = str(tmp_path / "z.safetensors")
    z = Tensor(drawn(3, 5, dtype="complex64"))
    nn.state.safe_save({"z": z.T, "r": Tensor([1.0])}, path)
    loaded = nn.state.safe_load(path)
    np.testing.assert_array_equal(loaded["z"].numpy(), z.numpy().T)
    with pytest.raises(TypeError, match="complex128 has no name in the format"):
        nn.state.safe_save({"z": z.cast("complex128")}, path)


def test_schedule_and_dunders() -> None:
    z = Tensor([1j, 2]) + 1
    assert len(z.schedule()) >= 1 and len(z.schedule_with_vars()[0]) >= 1
    assert not z.is_realized and z.realize().is_realized
    assert complex(z[0]) == 1 + 1j and bool(z[0]) and len(z) == 2 and hash(z) == id(z)
    assert (np.array([1.0, 2.0]) + z).tolist() == [2 + 1j, 5 + 0j]
    np.testing.assert_allclose(np.exp(z), np.exp(z.numpy()))
    for wrong in (lambda: z < z, lambda: z >= 1, lambda: z // 2, lambda: z % 2, lambda: z & z, lambda: ~z,
                  lambda: float(z[0]), lambda: int(z[0]), lambda: range(z[0]), lambda: z << 1):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="have no order"):
        _ = z < z
    with pytest.raises(TypeError, match="imag: complex numbers are wanted"):
        _ = Tensor([1.0]).imag
    assert Tensor([1.0]).real.tolist() == [1.0] and Tensor([-1.0, 2.0]).angle().tolist() == [np.float32(np.pi), 0]


def test_bad_input() -> None:
    with pytest.raises(TypeError, match=r"Tensor\.complex: the parts are floats, got int32"):
        Tensor.complex(Tensor([1]), Tensor([2]))
    with pytest.raises(TypeError, match=r"Tensor\.polar"):
        Tensor.polar(Tensor([1]), Tensor([2]))
    with pytest.raises(ValueError, match="the last axis is of size 2"):
        Tensor([1.0, 2.0, 3.0]).view_as_complex()
    with pytest.raises(TypeError, match="view_as_real: complex numbers are wanted"):
        Tensor([1.0]).view_as_real()
    with pytest.raises(ValueError, match=r"Tensor\.add|add: the shapes"):
        Tensor([1j, 2j]) + Tensor([1j, 2j, 3j])
    with pytest.raises(ValueError, match="reshape"):
        Tensor([1j, 2j]).reshape(3)
    with pytest.raises(IndexError):
        Tensor([1j, 2j])[0, 0]
    with pytest.raises(TypeError, match="div"):
        Tensor([1j]).div(2, rounding_mode="floor")


def test_a_method_of_the_class_given_complex_numbers() -> None:
    z = np.array([1 + 2j, -3 - 0.5j, 2.0 + 0j])
    t = Tensor(z)
    assert Tensor.conj(t).tolist() == z.conj().tolist() and Tensor.conj_physical(t).tolist() == z.conj().tolist()
    np.testing.assert_allclose(Tensor.angle(t).numpy(), np.angle(z), rtol=1e-6)
    assert Tensor.isreal(t).tolist() == [False, False, True]
    np.testing.assert_allclose(Tensor.float_power(t, 2).numpy(), z**2, rtol=1e-6)
    np.testing.assert_allclose(Tensor.reshape(t, 3, 1).numpy(), z.reshape(3, 1))


@pytest.mark.parametrize("name", ["abs", "angle", "conj", "exp", "isfinite", "isreal", "mean", "sgn", "sqrt", "sum"])
def test_a_method_of_the_class_is_that_of_the_tensor(name: str) -> None:
    t = Tensor(np.array([1 + 2j, -3 - 0.5j, 2.0 + 0j]))
    np.testing.assert_array_equal(getattr(Tensor, name)(t).numpy(), getattr(t, name)().numpy())


def test_imaginary_parts_in_odd_places_are_computed_with() -> None:
    np.testing.assert_allclose(T.linspace(T(1 + 1j), 2j, 3).numpy(), np.linspace(1 + 1j, 2j, 3), rtol=1e-6)
    bounds = np.array([1 + 1j, 3]), np.array([0.5, 2])
    got = T.linspace(*map(T, bounds), 4, dtype="complex128")
    np.testing.assert_allclose(got.numpy(), np.linspace(*bounds, 4), rtol=1e-12)
    y, x = (np.array(values) for values in ([[1 + 2j, 3, 1j], [0, 1 - 1j, 2]], [0.5j, 1 + 1j, 2]))
    for values, at in ((y, x), (y.real, x), (y, x.real)):
        given = T(np.ascontiguousarray(values)), T(np.ascontiguousarray(at))
        np.testing.assert_allclose(given[0].trapezoid(given[1]).numpy(), np.trapezoid(values, at), rtol=1e-12)
    np.testing.assert_allclose(T(y.real).trapezoid(dx=2j).numpy(), np.trapezoid(y.real, dx=2j), rtol=1e-12)
    padded = T([1.0, 2.0]).pad(((1, 0),), value=1j)
    assert padded.tolist() == [1j, 1, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: T(1j, dtype="float32"), lambda x: x.var(0, correction=1 + 2j), lambda x: x.std(correction=T(1j)),
        lambda x: T.linspace(0, 1, 3 + 1j), lambda x: T.linspace(T(1j), 1, 3, dtype="float32"),
        lambda x: x.index_fill(0, T([0]), np.complex64(1j)), lambda x: x.__setitem__(0, np.complex64(1j)),
        lambda x: x.sum(1j), lambda x: T.stack(x, x, dim=1j), lambda x: x.diff(1j),
        lambda x: (x + 1j).gather(0, x + 1j),
    ],
)  # fmt: skip
def test_imaginary_parts_that_have_no_meaning_are_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="complex|j is no|real number|number of steps"):
        call(T([1.0, 2.0]))


def test_products_and_blocks_promote_as_those_of_reals() -> None:
    """Those of PyTorch 2.13: of the Kronecker product axes do not count, of blocks they do."""
    z, one = T([1j, 2.0], dtype="complex64"), T(2.0, dtype="float64")
    assert (z.kron(one).dtype.name, one.kron(z).dtype.name) == ("complex128", "complex128")
    assert (z.block_diag(one).dtype.name, z.block_diag(one.reshape((1, 1))).dtype.name) == ("complex64", "complex128")


def test_no_argument_that_holds_elements_goes_to_both_parts_alike() -> None:
    taken = {name: set(signature(getattr(Tensor, name)).parameters) & ELEMENTS for name in ALIKE}
    del taken["movedim"]  # whose source is a place
    assert {name: found for name, found in taken.items() if found} == {}


@pytest.mark.parametrize("name", ["broadcast_tensors", "meshgrid"])
def test_tensors_that_each_give_one_keep_their_dtypes(name: str) -> None:
    """Whichever comes first, and however they are given."""
    for kinds in permutations(("bool", "int32", "float16", "complex64", "complex128"), 3):
        given = [T([1, 0], dtype=kind) for kind in kinds]
        for found in (getattr(T, name)(*given), getattr(given[0], name)(*given[1:])):
            assert tuple(one.dtype.name for one in found) == kinds
    for one, wanted in zip(T.meshgrid(T([1, 2]), T([1j])), np.meshgrid([1, 2], [1j], indexing="ij"), strict=True):
        np.testing.assert_array_equal(one.numpy(), wanted)
