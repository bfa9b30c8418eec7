"""Random numbers: the generator's published vectors, reproducibility, and the shapes of distributions."""

from __future__ import annotations

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor, TinyJit
from tg_frontend.ops.streams import threefry
from tg_lazy import LazyBuffer

# Random123's kat_vectors, threefry2x32 with 20 rounds: counter, key, result
VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "want"), VECTORS)
def test_published_vectors(
    counter: tuple[int, int], key: tuple[int, int], want: tuple[int, int], backend: str
) -> None:
    a, b, c, d = (LazyBuffer.const(word, dtypes.uint32, (1,), backend) for word in (*key, *counter))
    assert tuple(Tensor(word).item() for word in threefry((a, b), (c, d))) == want


def test_a_seed_makes_it_reproducible_on_every_device(backend: str) -> None:
    Tensor.manual_seed(7)
    first = [Tensor.rand(3), Tensor.randn(2, 2), Tensor.randint(5)]
    values = [t.tolist() for t in first]
    Tensor.manual_seed(7)
    again = [Tensor.rand(3), Tensor.randn(2, 2), Tensor.randint(5)]
    assert [t.tolist() for t in reversed(again)] == list(reversed(values))  # the order of computing does not matter
    Tensor.manual_seed(8)
    assert Tensor.rand(3).tolist() != values[0]


def threefry_words(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 of 20 rounds in Python's integers, from the paper's definition."""
    mask, parity = 0xFFFFFFFF, 0x1BD11BDA
    keys = (*key, key[0] ^ key[1] ^ parity)
    x, y = ((word + k) & mask for word, k in zip(counter, key, strict=True))
    for number in range(20):
        places = (13, 15, 26, 6, 17, 29, 16, 24)[number % 8]
        x = (x + y) & mask
        y = ((y << places | y >> (32 - places)) & mask) ^ x
        if number % 4 == 3:
            again = number // 4 + 1
            x, y = (x + keys[again % 3]) & mask, (y + keys[(again + 1) % 3] + again) & mask
    return x, y


@pytest.mark.parametrize(("counter", "key", "want"), VECTORS)
def test_the_reference_gives_the_published_vectors(
    counter: tuple[int, int], key: tuple[int, int], want: tuple[int, int]
) -> None:
    assert threefry_words(key, counter) == want


@pytest.mark.parametrize("seed", [7, 2**40 + 3])
def test_a_seed_gives_the_same_numbers_for_ever(backend: str, seed: int) -> None:
    """The seed's halves are the key, the counter is an element's place and the number of the call; 24 bits are used."""
    Tensor.manual_seed(seed)
    for call in range(2):
        got = Tensor.rand(5).tolist()
        key = (seed & 0xFFFFFFFF, seed >> 32)
        assert got == [(threefry_words(key, (place, call))[0] >> 8) / 2**24 for place in range(5)]


def test_the_same_numbers_on_every_device() -> None:
    got = []
    for device in ("NUMPY", "NUMPY:1"):
        Tensor.manual_seed(3)
        got.append(Tensor.rand(10, device=device).tolist())
    assert got[0] == got[1]


def test_uniform(backend: str) -> None:
    x = Tensor.rand(20_000).numpy()
    assert 0 <= x.min() < 0.001 and 0.999 < x.max() < 1
    assert abs(x.mean() - 0.5) < 0.01 and abs(x.var() - 1 / 12) < 0.003
    counts = np.histogram(x, 50, (0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < 49 + 5 * np.sqrt(98)  # chi-squared, 49 degrees of freedom
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03
    y = Tensor.uniform(10_000, low=-3, high=5).numpy()
    assert -3 <= y.min() < -2.9 and 4.9 < y.max() <= 5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "fp8e5m2"])
def test_uniform_of_every_float(dtype: str) -> None:
    t = Tensor.rand(2000, dtype=dtype)
    x = t.float().numpy()
    assert t.dtype.name == dtype and 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.15
    if dtype == "float64":
        assert len(set(np.mod(t.numpy() * 2**32, 1).tolist())) > 1900  # the low word is used


def test_normal(backend: str) -> None:
    x = Tensor.randn(20_000).numpy()
    assert abs(x.mean()) < 0.03 and abs(x.var() - 1) < 0.04
    assert abs((x**3).mean()) < 0.1 and abs((x**4).mean() - 3) < 0.25
    y = Tensor.normal(10_000, mean=5, std=0.5).numpy()
    assert abs(y.mean() - 5) < 0.03 and abs(y.std() - 0.5) < 0.02
    assert Tensor.randn(3, dtype="float16").dtype is dtypes.float16 and np.isfinite(Tensor.randn(5000).numpy()).all()


def test_integers(backend: str) -> None:
    x = Tensor.randint(10_000, low=-3, high=4)
    values, counts = np.unique(x.numpy(), return_counts=True)
    assert x.dtype is dtypes.int32 and values.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert abs(counts - 10_000 / 7).max() < 200
    assert Tensor.randint(100, high=256, dtype="uint8").dtype is dtypes.uint8
    wide = Tensor.randint(1000, low=-(2**31), high=2**31, dtype="int32").numpy()
    assert wide.min() < -(2**30) and wide.max() > 2**30
    assert Tensor.randint(0).shape == (0,)


def test_initialisations() -> None:
    for name, bound in (
        ("scaled_uniform", 1 / np.sqrt(6400)), ("glorot_uniform", np.sqrt(6 / (64 + 100))),
        ("kaiming_uniform", np.sqrt(6 / (1 + 0.01**2) / 100)),
    ):  # fmt: skip
        x = getattr(Tensor, name)(64, 100).numpy()
        assert 0.98 * bound < np.abs(x).max() <= bound * (1 + 1e-6), name
    x = Tensor.kaiming_normal(64, 100).numpy()
    assert abs(x.std() - np.sqrt(2 / 100)) < 0.01
    assert Tensor.rand(3, requires_grad=True).requires_grad and Tensor.rand(3).requires_grad is None
    base = Tensor.zeros(2, 3, dtype="float64")
    assert base.rand_like().dtype is dtypes.float64 and base.randn_like(dtype="float32").shape == (2, 3)


def test_permutations_and_draws(backend: str) -> None:
    x = Tensor.randperm(50)
    assert sorted(x.tolist()) == list(range(50)) and x.tolist() != list(range(50))
    assert Tensor.randperm(0).shape == (0,)
    weights = Tensor([1.0, 0.0, 3.0])
    drawn = np.array(weights.multinomial(2000, replacement=True).tolist())
    assert set(drawn) == {0, 2} and abs((drawn == 2).mean() - 0.75) < 0.05
    rows = Tensor([[1.0, 1, 1], [0, 1, 5]]).multinomial(2)
    assert rows.shape == (2, 2) and all(len(set(row)) == 2 for row in rows.tolist()) and 0 not in rows.tolist()[1]
    assert Tensor([0.0, 1.0]).multinomial().tolist() == [1]


def test_dropout(backend: str) -> None:
    x = Tensor.ones(5000)
    assert x.dropout(0.3) is x
    with Tensor.train():
        kept = x.dropout(0.3).numpy()
        assert set(np.unique(kept).tolist()) == {0.0, float(np.float32(1 / 0.7))}
        assert abs((kept == 0).mean() - 0.3) < 0.03
        assert x.dropout(0) is x and x.dropout(1).sum().item() == 0
        w = Tensor.ones(100, requires_grad=True)
        out = w.dropout(0.5)
        out.sum().backward()
        assert w.grad is not None and w.grad.tolist() == out.tolist()  # the same mask both ways


def test_a_mean_of_an_integer_stands_beside_deviations() -> None:
    widths = Tensor([0.0, 1e-3, 0.0, 2e-3, 0.0])
    drawn = Tensor.normal(2, widths)
    assert drawn.shape == (5,) and drawn[::2].tolist() == [2.0, 2.0, 2.0] and abs(drawn - 2).max().item() < 0.1


def test_truths_are_drawn_as_integers_are() -> None:
    drawn = Tensor.randint(4001, high=2, dtype="bool")
    assert drawn.dtype.name == "bool" and abs(drawn.mean(dtype="float32").item() - 0.5) < 0.05
    assert Tensor.randint(7, low=1, high=2, dtype="bool").all() and not Tensor.randint(7, high=1, dtype="bool").any()


def test_mistakes_are_named() -> None:
    with pytest.raises(TypeError, match="randint"):
        Tensor.rand(3, dtype="int32")
    with pytest.raises(ValueError, match="are 0 numbers"):
        Tensor.randint(3, low=5, high=5)
    with pytest.raises(ValueError, match="do not fit int8"):
        Tensor.randint(3, high=1000, dtype="int8")
    for low, high in ((0, 3), (-1, 2), (2, 3)):
        with pytest.raises(ValueError, match="do not fit bool"):
            Tensor.randint(3, low=low, high=high, dtype="bool")
    with pytest.raises(ValueError, match="samples of 2 without replacement"):
        Tensor([1.0, 2.0]).multinomial(3)
    with pytest.raises(ValueError, match="no fans"):
        Tensor.glorot_uniform()


def test_what_cannot_be_drawn_from_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Tensor\.normal: a standard deviation is 0 or more, got -1"):
        Tensor.normal(3, std=-1)
    with pytest.raises(ValueError, match=r"^Tensor\.uniform: from 2 to 1 is no range"):
        Tensor.uniform(3, low=2, high=1)
    bad: list[list[float]] = [[1, float("nan")], [1, -1], [0, 0], [1, float("inf")]]
    for weights in bad:
        for both in (Tensor(weights), Tensor([[1.0, 1.0], weights])):
            with pytest.raises(ValueError, match=r"^Tensor\.multinomial: weights are finite and not negative"):
                both.multinomial(1, replacement=True)
    with pytest.raises(ValueError, match="2 of them at least"):
        Tensor([1.0, 0.0]).multinomial(2)


def test_a_recorded_draw_from_nothing_is_no_position() -> None:
    @TinyJit
    def draw(weights: Tensor) -> Tensor:
        return weights.multinomial(1, replacement=True).realize()

    found = [draw(Tensor(w).contiguous().realize()).tolist() for w in ([0.0, 1.0], [0.0, 2.0], [0.0, 3.0])]
    assert found == [[1], [1], [1]]
    assert draw(Tensor([0.0, 0.0]).contiguous().realize()).tolist() == [-1]
    assert draw(Tensor([1.0, -1.0]).contiguous().realize()).tolist() == [-1]


def test_the_state_can_be_read_and_set(backend: str) -> None:
    Tensor.manual_seed(7)
    Tensor.rand(2)
    state = Tensor.get_rng_state()
    want = [Tensor.randn(3).tolist(), Tensor.randint(4, high=9).tolist()]
    for kept in (state, bytes(state.data()), state.to(backend)):
        Tensor.set_rng_state(kept)
        assert [Tensor.randn(3).tolist(), Tensor.randint(4, high=9).tolist()] == want
    for bad in (b"123", Tensor([1.0]), None):
        with pytest.raises(ValueError, match="set_rng_state"):
            Tensor.set_rng_state(bad)


def test_records_draw_from_the_state(backend: str) -> None:
    function = TinyJit(lambda x: x + Tensor.rand(2))
    zeros = [Tensor([0.0, 0.0]).realize() for _ in range(2)]
    for _ in range(3):
        function(zeros[0])
    state = Tensor.get_rng_state()
    want = [function(zeros[0]).tolist(), Tensor.rand(2).tolist(), function(zeros[1]).tolist()]
    Tensor.set_rng_state(state)
    assert [Tensor.rand(2).tolist() for _ in range(3)] == want  # each replay counts as one draw
    Tensor.set_rng_state(state)
    assert [function(zeros[0]).tolist(), Tensor.rand(2).tolist(), function(zeros[1]).tolist()] == want
    for change in (Tensor.manual_seed, Tensor.get_rng_state, lambda: Tensor.set_rng_state(state)):
        inside = TinyJit(lambda x, change=change: (change(), x + 1)[1])
        inside(zeros[0])
        with pytest.raises(RuntimeError, match="inside of a function while TinyJit records it"):
            inside(zeros[0])
