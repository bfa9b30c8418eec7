"""Elements that do not count for a result: whatever they are, NaN or infinite, the result is the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, functions, linalg
from tg_frontend.nn import functional as F

DEVICE = "NUMPY"  # what is asked is whether the graph is right
RNG = np.random.default_rng(8)
X = RNG.normal(size=(4, 6)).astype(np.float32)
TABLE = RNG.normal(size=(5, 3)).astype(np.float32)
SQUARE = RNG.normal(size=(5, 5)).astype(np.float32)
POSITIVE = (SQUARE @ SQUARE.T + 5 * np.eye(5)).astype(np.float32)
SCORES = RNG.normal(size=(5, 3, 4)).astype(np.float32)
MASK = RNG.random((4, 6)) < 0.5
ROW = np.broadcast_to(np.arange(4).reshape(4, 1) == 1, X.shape)
OF_TABLE = np.broadcast_to(np.arange(5).reshape(5, 1) == 2, TABLE.shape)
UPPER = np.triu(np.ones((5, 5)), 1) > 0
LATE = np.zeros(SCORES.shape, bool)
LATE[3:, 1] = True
CLASSES = np.array([0, -100, 2, 5])


def t(values: Any) -> Tensor:
    return Tensor(np.asarray(values), device=DEVICE)


Case = tuple[Any, Any, Callable[[Tensor], Any]]
CASES: dict[str, Case] = {
    "a class that is ignored": (X, ROW, lambda x: x.cross_entropy(t(CLASSES), label_smoothing=0.1)),
    "a logarithm that is ignored": (X, ROW, lambda x: x.nll_loss(t(CLASSES))),
    "rows of other bags": (TABLE, OF_TABLE, lambda w: F.embedding_bag(t([0, 2, 1]), w, t([0, 1, 2]), mode="sum")[::2]),
    "rows of other bags, means": (TABLE, OF_TABLE, lambda w: F.embedding_bag(t([0, 2, 1]), w, t([0, 1, 2]))[::2]),
    "rows of other bags, maxima": (
        TABLE, OF_TABLE, lambda w: F.embedding_bag(t([0, 2, 1]), w, t([0, 1, 2]), mode="max")[::2]),
    "padding in a bag": (TABLE, OF_TABLE, lambda w: F.embedding_bag(t([0, 2]), w, t([0]), mode="sum", padding_idx=2)),
    "padding in a square": (TABLE, OF_TABLE, lambda w: F.embedding_bag(t([[0, 2], [1, 2]]), w, padding_idx=2)),
    "steps behind the end": (
        SCORES, LATE, lambda x: F.ctc_loss(x.log_softmax(-1), t([[1, 2], [1, 2], [3, 1]]), [5, 3, 5], [2, 2, 2])),
    "other segments": (X, ROW, lambda x: x.segment_reduce("sum", lengths=t([1, 1, 2]))[::2]),
    "rows in no group": (
        X, np.arange(4).reshape(4, 1) == 3 + 0 * X,
        lambda x: F.grouped_mm(x, t(np.ones((2, 6, 3), np.float32)), offs=t([1, 3]))[:3]),
    "elsewhere scattered": (X, ROW, lambda x: t(0 * X).index_add(0, t([0, 3, 1, 1]), x)[:3]),
    "the upper triangle of Cholesky": (POSITIVE, UPPER, linalg.cholesky),
    "the upper triangle of eigenvalues": (POSITIVE, UPPER, linalg.eigvalsh),
    "the other triangle of a system": (
        POSITIVE, UPPER, lambda a: linalg.solve_triangular(a, t(SQUARE), upper=False)),
    "no piece": (X, MASK, lambda x: functions.piecewise(x, [t(~MASK)], [lambda x: x * x])),
    "no piece, one number": (X, MASK, lambda x: functions.piecewise(x, [t(~MASK)], [2.0])),
    "another choice": (X, MASK, lambda x: functions.select([t(~MASK)], [x], 0.0)),
    "what is taken to the power of 0": (X, MASK, lambda x: linalg.vander(x, N=1)),
    "later ones, running": (X, np.arange(6) >= 3 + 0 * X, lambda x: x.cumsum(1)[:, :3] + x.cumprod(1)[:, :3]),
    "behind the end of a convolution": (X[0], np.arange(6) == 0, lambda x: functions.convolve(x, t([1.0, 2, 3]))[3:]),
    "before the end of a convolution": (X[0], np.arange(6) == 5, lambda x: functions.convolve(t([1.0, 2, 3]), x)[:5]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_nothing_comes_of_it(name: str) -> None:
    values, where, of = CASES[name]
    assert where.any() and not where.all()
    found = []
    for fill in ([0.5], [math.nan, math.inf, -math.inf]):
        given = values.copy()
        given[where] = np.resize(np.asarray(fill, np.float32), int(where.sum()))
        found.append(of(t(given)).numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    assert np.isfinite(found[0]).all()
