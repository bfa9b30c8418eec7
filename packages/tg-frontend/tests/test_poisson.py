"""Poisson's counts against the probabilities that scipy has for them, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, scan, vmap
from tg_frontend.ops.poisson import _log_chance

COUNT = {"NUMPY": 20_011, "CPU": 1_000_003}
"""Draws: as many as a second allows."""
LEAST_CHANCE = 1e-6
"""Chi-square as large as the draws' has this probability at least, were they from the distribution."""


def chance(counts: np.ndarray, rate: float) -> float:
    """With which probability chi-square of draws at a rate is larger; in at most 60 classes of counts."""
    stats = pytest.importorskip("scipy.stats")
    low, high = stats.poisson.ppf(1e-4, rate), stats.poisson.isf(1e-4, rate)
    ends = np.unique(np.linspace(low, high, min(int(high - low), 59) + 1).astype(int))
    wanted = np.diff([0, *stats.poisson.cdf(ends, rate), 1]) * len(counts)
    found = np.bincount(np.searchsorted(ends, counts, side="left"), minlength=len(wanted))
    square = ((found - wanted) ** 2 / wanted).sum()
    return float(stats.chi2.sf(square, len(wanted) - 1))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rate", [1e-3, 0.3, 1, 3, 9.99, 10, 11, 17.3, 60, 1000, 123_456])
def test_counts_are_as_probable_as_they_should_be(rate: float, dtype: str, backend: str) -> None:
    Tensor.manual_seed(3)
    count = COUNT[backend]
    rates = Tensor.full((count,), rate, dtype=dtype)
    counts = rates.poisson()
    assert counts.dtype.name == dtype and counts.shape == (count,)
    found = counts.numpy()
    assert (found == np.floor(found)).all() and found.min() >= 0
    assert chance(found, float(rates[0].item())) > LEAST_CHANCE
    following = np.corrcoef(found[:-1], found[1:])[0, 1]
    assert abs(following) < 5 / math.sqrt(count)
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(rates.poisson().numpy(), found)


def test_probabilities_are_those_of_the_distribution() -> None:
    stats = pytest.importorskip("scipy.stats")
    for rate in (10.0, 13.7, 35.5, 1000.25, 3e5):
        counts = np.unique(np.floor(np.linspace(max(0, rate - 9 * rate**0.5), rate + 9 * rate**0.5, 211)))
        for kind, bound in (("float64", 1e-12), ("float32", 4e-6)):
            given = (Tensor(part, dtype=kind) for part in (counts, counts - rate, np.full(counts.shape, rate)))
            found = _log_chance(*given).numpy()
            cancelled = rate * math.log(rate) * 2.0**-50  # in scipy's own terms
            wanted = stats.poisson.logpmf(counts, rate)
            np.testing.assert_allclose(found, wanted, rtol=bound, atol=4 * bound + cancelled)


def test_the_bound_notices_another_rate() -> None:
    Tensor.manual_seed(3)
    assert chance(Tensor.full((50_021,), 10.0).poisson().numpy(), 10.2) < LEAST_CHANCE
    assert chance(Tensor.full((50_021,), 9.0).poisson().numpy(), 9.2) < LEAST_CHANCE


def test_tails_are_drawn() -> None:
    stats = pytest.importorskip("scipy.stats")
    Tensor.manual_seed(11)
    found = Tensor.full((300_007,), 9.5).poisson().numpy()
    for point, wanted in ((0, stats.poisson.cdf(0, 9.5)), (22, stats.poisson.sf(21, 9.5))):
        hits = int((found <= point).sum() if point < 9 else (found >= point).sum())
        assert abs(hits - wanted * len(found)) < 5 * math.sqrt(wanted * len(found)), point


def test_rates_of_a_tensor_are_its_own(backend: str) -> None:
    Tensor.manual_seed(5)
    rates = np.array([[0.0, 0.5, 4.0], [20.0, 300.0, 1e6]], dtype=np.float32)
    drawn = Tensor(np.broadcast_to(rates, (997, 2, 3)).copy(), device=backend).poisson()
    assert drawn.device == Tensor.zeros(1, device=backend).device
    found = drawn.numpy()
    assert (found[:, 0, 0] == 0).all()
    error = np.abs(found.mean(0) - rates) / np.sqrt(np.maximum(rates, 1e-9) / 997)
    assert error.max() < 5
    assert (np.abs(found.var(0) / np.maximum(rates, 1e-9) - 1)[rates > 0] < 0.3).all()
    for shape in ((), (0,), (3, 0), (1,), (7, 5)):
        assert Tensor.ones(*shape, device=backend).poisson().shape == shape


def test_what_is_drawn_next_depends_on_no_rate() -> None:
    seen = []
    for rates in ([1.0, 2.0], [20.0, 30.0], [1.0, 20.0]):
        Tensor.manual_seed(1)
        Tensor(rates).poisson().realize()
        seen.append(Tensor.rand(3).tolist())
    assert seen[0] == seen[1] == seen[2]
    Tensor.manual_seed(1)
    small = Tensor([1.0, 2.0]).poisson().tolist()
    Tensor.manual_seed(1)
    assert Tensor([1.0, 50.0]).poisson().tolist()[0] == small[0]


def test_dtypes_of_few_bits_are_rounded_to() -> None:
    for dtype in ("float16", "bfloat16"):
        counts = Tensor.full((99,), 3.0, dtype=dtype).poisson()
        assert counts.dtype.name == dtype and 1 < counts.float().mean().item() < 5
    great = Tensor.full((9,), 1e30).poisson().numpy()
    np.testing.assert_allclose(great, 1e30, rtol=1e-6)


def test_recorded_draws_go_on() -> None:
    Tensor.manual_seed(9)
    plain = [Tensor([3.0, 40.0]).poisson().tolist() for _ in range(5)]
    draw = TinyJit(lambda rates: rates.poisson().realize())
    Tensor.manual_seed(9)
    assert [draw(Tensor([3.0, 40.0]).contiguous().realize()).tolist() for _ in range(5)] == plain
    bad = draw(Tensor([-1.0, math.inf]).contiguous().realize()).numpy()
    assert np.isnan(bad).all()


def test_the_gradient_is_zero() -> None:
    rates = Tensor([0.5, 3.0, 30.0], requires_grad=True)
    (rates.poisson() * rates).sum().backward()
    counts = Tensor([0.5, 3.0, 30.0], requires_grad=True)
    counts.poisson().sum().backward()
    assert counts.grad is not None and counts.grad.tolist() == [0, 0, 0]
    assert rates.grad is not None and (rates.grad >= 0).all().item()


def test_bad_rates_are_told() -> None:
    for bad in (-1.0, -1e-30, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"^Tensor\.poisson: rates are finite and not negative"):
            Tensor([1.0, bad]).poisson()
    for dtype in ("int32", "bool"):
        with pytest.raises(TypeError, match=rf"^Tensor\.poisson: rates are floats, got a tensor of {dtype}"):
            Tensor([1], dtype=dtype).poisson()
    with pytest.raises(TypeError, match="complex numbers"):
        Tensor([1j]).poisson()


def test_draws_of_a_mapped_function_look_at_nothing() -> None:
    counts = vmap(lambda rate: rate.poisson())(Tensor([0.0, 30.0, -1.0, math.inf]))
    assert counts[0].item() == 0 and counts[1].item() == counts[1].round().item()
    assert counts[2:].isnan().all().item()
    assert np.isnan(vmap(lambda p: p.bernoulli())(Tensor([0.0, 1.0, 2.0])).numpy()).tolist() == [False, False, True]
    chosen = vmap(lambda row: row.multinomial(2, True))(Tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    assert chosen.tolist() == [[1, 1], [-1, -1]]
    for draw in (Tensor.poisson, Tensor.bernoulli):
        with pytest.raises(RuntimeError, match="draws random numbers"):
            scan(lambda carry, x, draw=draw: (carry, draw(x)), Tensor(0.0), Tensor([0.1, 0.2]))  # type: ignore[misc]
