"""Integers and bools, unsigned ones above all, where a method computes in floats or counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.functions import gradient

A = np.array([[1, 3, 0, 2], [7, 0, 5, 5], [2, 2, 9, 1]])
B = np.array([[2, 1, 4, 2], [0, 6, 5, 8], [3, 2, 1, 1]])
BITS = np.array([[0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 1]])
CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "softmin": lambda a, b, y: a.softmin(1),
    "logsigmoid": lambda a, b, y: a.logsigmoid(),
    "l1_loss": lambda a, b, y: a.l1_loss(b),
    "mse_loss": lambda a, b, y: a.mse_loss(b),
    "huber_loss": lambda a, b, y: a.huber_loss(b, reduction="none"),
    "smooth_l1_loss": lambda a, b, y: a.smooth_l1_loss(b, reduction="none"),
    "margin_ranking_loss": lambda a, b, y: a.margin_ranking_loss(b, y),
    "soft_margin_loss": lambda a, b, y: a.soft_margin_loss(y),
    "triplet_margin_loss": lambda a, b, y: a.triplet_margin_loss(b, y),
    "multi_margin_loss": lambda a, b, y: a.multi_margin_loss(Tensor([3, 1, 0])),
    "multilabel_soft_margin_loss": lambda a, b, y: a.multilabel_soft_margin_loss(y),
    "binary_crossentropy": lambda a, b, y: y.binary_crossentropy(y),
    "binary_crossentropy_logits": lambda a, b, y: a.binary_crossentropy_logits(y),
    "kl_div": lambda a, b, y: a.kl_div(b, reduction="none", log_target=True),
    "newton_schulz": lambda a, b, y: (a + 9).newton_schulz(3, (1.5, -0.5)),
    "dist of a number": lambda a, b, y: a.dist(5.0),
    "lerp": lambda a, b, y: a.lerp(b, 0.25),
    "dist": lambda a, b, y: a.dist(b),
    "pdist": lambda a, b, y: a.pdist(),
    "cdist": lambda a, b, y: a.cdist(b),
    "pairwise_distance": lambda a, b, y: a.pairwise_distance(b),
    "cosine_similarity": lambda a, b, y: a.cosine_similarity(b),
    "trapezoid": lambda a, b, y: a.trapezoid(b),
    "trapezoid of one row of positions": lambda a, b, y: a.trapezoid(b[1]),
    "cumulative_trapezoid": lambda a, b, y: a.cumulative_trapezoid(b, axis=0),
    "gradient": lambda a, b, y: gradient(a, spacing=[b[2, [0, 2, 1]] * 2, b[1]])[1],
    "cov": lambda a, b, y: a.cov(),
    "corrcoef": lambda a, b, y: a.corrcoef(),
    "logsumexp": lambda a, b, y: a.logsumexp(1),
    "renorm": lambda a, b, y: a.renorm(2, 0, 1.0),
    "norm": lambda a, b, y: a.norm(3, 1),
    "attention": lambda a, b, y: a.scaled_dot_product_attention(b, a),
}


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int32"])
@pytest.mark.parametrize("name", CASES)
def test_integers_give_what_floats_give(name: str, dtype: str) -> None:
    of = CASES[name]
    got = of(*(Tensor(x).cast(dtype) for x in (A, B, BITS)))
    want = of(*(Tensor(x.astype(np.float32)) for x in (A, B, BITS)))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_bools_are_counted_by_sums_to_a_size() -> None:
    assert Tensor([[True, True, False]]).sum_to_size(1, 1).tolist() == [[2]]


DISTANCES: dict[str, Any] = {
    **{name: lambda x, y, name=name: getattr(x, name)(y) for name in (
        "l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss", "pairwise_distance", "cdist", "dist")},
    "softsign": lambda x, y: x.softsign(),
    "trapezoid": lambda x, y: (x * 0 + 1).trapezoid(y),
    "cumulative_trapezoid": lambda x, y: (x * 0 + 1).cumulative_trapezoid(y),
    "margin_ranking_loss": lambda x, y: x.margin_ranking_loss(y, x * 0 + 1),
    "triplet_margin_loss": lambda x, y: x.triplet_margin_loss(y, x),
    "multi_margin_loss": lambda x, y: x.multi_margin_loss(Tensor([0, 1])),
    "local_response_norm": lambda x, y: nn.functional.local_response_norm(x.reshape(1, 2, 3), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_of_narrow_integers_do_not_wrap(name: str) -> None:
    for kind in ("int8", "uint8", "int16", "int32"):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        a, b = np.array([[high, low, 3], [low, 100, high]]), np.array([[low, high, 5], [high, 27, low]])
        found = DISTANCES[name](Tensor(a.astype(kind)), Tensor(b.astype(kind)))
        wanted = DISTANCES[name](Tensor(a.astype(np.float64)), Tensor(b.astype(np.float64)))
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, err_msg=kind)
