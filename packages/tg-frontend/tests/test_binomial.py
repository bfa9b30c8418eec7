"""Binomial counts against the probabilities that scipy has for them, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit
from tg_frontend.ops.binomial import _log_chance

COUNT = {"NUMPY": 10_007, "CPU": 100_003}
LEAST_CHANCE = 1e-6
"""Chi-square as large as the draws' has this probability at least, were they from the distribution."""


def chance(counts: np.ndarray, trials: float, prob: float) -> float:
    """With which probability chi-square of draws is larger; in at most 60 classes of counts."""
    stats = pytest.importorskip("scipy.stats")
    low, high = stats.binom.ppf(1e-4, trials, prob), stats.binom.isf(1e-4, trials, prob)
    ends = np.unique(np.linspace(low, high, min(int(high - low), 59) + 1).astype(int))
    cumulative = stats.binom.cdf(ends, trials, prob)
    wanted = np.diff([0, *cumulative, 1]) * len(counts)
    found = np.bincount(np.searchsorted(ends, counts, side="left"), minlength=len(wanted))
    some = wanted > 1e-9 * len(counts)
    assert found[~some].sum() == 0
    square = ((found - wanted)[some] ** 2 / wanted[some]).sum()
    return float(stats.chi2.sf(square, some.sum() - 1))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("trials", "prob"),
    [(7, 0.5), (20, 0.5), (23, 0.47), (1000, 0.003), (100_003, 0.25), (1_000_003, 0.7)],
)
def test_counts_are_as_probable_as_they_should_be(trials: float, prob: float, dtype: str, backend: str) -> None:
    Tensor.manual_seed(3)
    count = COUNT[backend]
    many, one = Tensor.full((count,), float(trials), dtype=dtype), Tensor(prob, dtype=dtype)
    counts = many.binomial(one)
    assert counts.dtype.name == dtype and counts.shape == (count,)
    found = counts.numpy()
    assert (found == np.floor(found)).all() and found.min() >= 0 and found.max() <= trials
    assert chance(found, trials, float(one.item())) > LEAST_CHANCE
    if dtype == "float32" and count > 100_000:  # a shift of this size is seen
        assert chance(found, trials, prob + 0.05 * math.sqrt(prob * (1 - prob) / trials)) < LEAST_CHANCE
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(many.binomial(one).numpy(), found)


def test_probabilities_are_those_of_the_distribution() -> None:
    stats = pytest.importorskip("scipy.stats")
    for trials, prob in ((20.0, 0.5), (53.0, 0.25), (3001.0, 0.0625), (300_001.0, 0.375)):
        mean, spread = trials * prob, math.sqrt(trials * prob * (1 - prob))
        counts = np.unique(np.clip(np.floor(np.linspace(mean - 9 * spread, mean + 9 * spread, 211)), 0, trials))
        for kind, bound in (("float64", 1e-11), ("float32", 1e-5)):
            full = np.full(counts.shape, trials), np.full(counts.shape, prob)
            given = (Tensor(part, dtype=kind) for part in (counts, counts - mean, *full))
            wanted = stats.binom.logpmf(counts, trials, prob)
            np.testing.assert_allclose(_log_chance(*given).numpy(), wanted, rtol=bound, atol=4 * bound + trials * 2e-14)


def test_parameters_broadcast_and_edges_are_certain() -> None:
    Tensor.manual_seed(1)
    trials, prob = Tensor([[0.0], [7.0], [5000.0]]), Tensor([0.0, 1.0, 0.5])
    found = trials.binomial(prob).numpy()
    assert found[:, 0].tolist() == [0, 0, 0] and found[:, 1].tolist() == [0, 7, 5000]
    assert found[0, 2] == 0 and 0 <= found[1, 2] <= 7 and 2300 < found[2, 2] < 2700
    assert Tensor([3.0], dtype="float16").binomial(Tensor([1.0])).dtype.name == "float16"


def test_what_is_refused_and_slopes() -> None:
    for trials, prob in ((-1.0, 0.5), (2.5, 0.5), (math.inf, 0.5), (2.0, 1.5), (2.0, -0.1), (2.0, math.nan)):
        with pytest.raises(ValueError, match="Tensor.binomial: trials are whole"):
            Tensor([trials]).binomial(Tensor([prob]))
    with pytest.raises(TypeError, match="are floats"):
        Tensor([2]).binomial(Tensor([0.5]))
    n, p = Tensor([20.0, 90.0], requires_grad=True), Tensor([0.5], requires_grad=True)
    n.binomial(p).sum().backward()
    assert n.grad is not None and n.grad.tolist() == [0.0, 0.0]
    assert p.grad is not None and p.grad.tolist() == [0.0]


def test_recorded_draws_go_on() -> None:
    @TinyJit
    def draw(n: Tensor) -> Tensor:
        return n.binomial(Tensor([0.5])).realize()

    Tensor.manual_seed(7)
    recorded = [draw(Tensor([40.0, -1.0]) if i else Tensor([40.0, 1.0])).numpy()[0] for i in range(5)]
    Tensor.manual_seed(7)
    wanted = [Tensor([40.0, 1.0]).binomial(Tensor([0.5])).numpy()[0] for _ in range(5)]
    assert recorded == wanted
