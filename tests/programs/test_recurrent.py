"""Recurrent networks as users write them: a loop of cells over time, unrolled in a recorded step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tinytg import Tensor, TinyJit, nn


class LSTMCell:
    """PyTorch's: the gates lie in the order input, forget, cell, output."""

    def __init__(self, inputs: int, width: int) -> None:
        bound = 1 / math.sqrt(width)
        self.width = width
        self.weight_ih = Tensor.uniform(4 * width, inputs, low=-bound, high=bound)
        self.weight_hh = Tensor.uniform(4 * width, width, low=-bound, high=bound)
        self.bias_ih = Tensor.uniform(4 * width, low=-bound, high=bound)
        self.bias_hh = Tensor.uniform(4 * width, low=-bound, high=bound)

    def __call__(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates = x.linear(self.weight_ih.T, self.bias_ih) + h.linear(self.weight_hh.T, self.bias_hh)
        i, f, g, o = gates.chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class GRUCell:
    """PyTorch's: the gates lie in the order reset, update, new."""

    def __init__(self, inputs: int, width: int) -> None:
        bound = 1 / math.sqrt(width)
        self.width = width
        self.weight_ih = Tensor.uniform(3 * width, inputs, low=-bound, high=bound)
        self.weight_hh = Tensor.uniform(3 * width, width, low=-bound, high=bound)
        self.bias_ih = Tensor.uniform(3 * width, low=-bound, high=bound)
        self.bias_hh = Tensor.uniform(3 * width, low=-bound, high=bound)

    def __call__(self, x: Tensor, h: Tensor) -> Tensor:
        xr, xz, xn = x.linear(self.weight_ih.T, self.bias_ih).chunk(3, dim=1)
        hr, hz, hn = h.linear(self.weight_hh.T, self.bias_hh).chunk(3, dim=1)
        z = (xz + hz).sigmoid()
        return (1 - z) * (xn + (xr + hr).sigmoid() * hn).tanh() + z * h


class Adder:
    """Two numbers of a sequence are marked: what is their sum? (batch, time, 2) to (batch, 1)."""

    def __init__(self, width: int) -> None:
        self.cell, self.out = LSTMCell(2, width), nn.Linear(width, 1)

    def __call__(self, x: Tensor) -> Tensor:
        h = c = Tensor.zeros(x.shape[0], self.cell.width)
        for part in x.transpose(0, 1):
            h, c = self.cell(part, h, c)
        return self.out(h)


def marked(count: int, time: int, seed: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    x = np.zeros((count, time, 2), np.float32)
    x[:, :, 0] = rng.uniform(0, 1, (count, time))
    first, second = rng.integers(0, time // 2, count), rng.integers(time // 2, time, count)
    x[np.arange(count), first, 1] = x[np.arange(count), second, 1] = 1
    return Tensor(x), Tensor((x[:, :, 0] * x[:, :, 1]).sum(1, keepdims=True))


def test_an_lstm_adds_what_is_marked() -> None:
    """The mean of all sums is off by 1/6 in the square; what has remembered both numbers is far below."""
    Tensor.manual_seed(2)
    model = Adder(16)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.02)
    x, y = marked(2048, 7, 0)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        rows = Tensor.randint(32, high=2048)
        loss = (model(x[rows]) - y[rows]).square().mean().backward()
        optimizer.step()
        return loss

    losses = [step() for _ in range(200)]
    assert 0.1 < float(losses[0].item())
    tests = marked(101, 7, 1)
    with Tensor.no_grad():
        assert float((model(tests[0]) - tests[1]).square().mean().item()) < 0.02


TEXT = "a stranger understands each sentence at first reading, and each name without one. "
LETTERS = sorted(set(TEXT))


class Reciter:
    """Letters to the scores of the next: (batch, time) to (batch, time, letters), and what is remembered."""

    def __init__(self, width: int) -> None:
        self.letters, self.cell = nn.Embedding(len(LETTERS), 9), GRUCell(9, width)
        self.out = nn.Linear(width, len(LETTERS))

    def __call__(self, ids: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        scores = []
        for letter in self.letters(ids).transpose(0, 1):
            h = self.cell(letter, h)
            scores.append(self.out(h))
        return Tensor.stack(*scores, dim=1), h


@pytest.mark.slow
def test_a_gru_knows_how_a_sentence_goes_on() -> None:
    """A sentence is learnt from pieces of it. Said letter by letter, the state goes in and out of a record."""
    Tensor.manual_seed(0)
    model = Reciter(32)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.02)
    ids = Tensor([LETTERS.index(c) for c in TEXT + TEXT[:10]], dtype="int32")

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        rows = ids[Tensor.randint(16, 1, high=len(TEXT)) + Tensor.arange(8)]
        scores, _ = model(rows[:, :-1], Tensor.zeros(16, 32))
        loss = scores[:, 4:].flatten(0, 1).cross_entropy(rows[:, 5:].flatten()).backward()
        optimizer.step()
        return loss

    losses = [step() for _ in range(200)]
    assert float(losses[0].item()) > 2 and float(losses[-1].item()) < 0.2

    @TinyJit
    @Tensor.no_grad()
    def following(letters: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        scores, h = model(letters, h)
        return scores[:, -1], h

    pieces, h = ids[Tensor.arange(len(TEXT)).unsqueeze(1) + Tensor.arange(8)], Tensor.zeros(len(TEXT), 32)
    h = h.contiguous()
    for t in range(7):
        scores, h = following(pieces[:, t : t + 1].contiguous(), h)
    assert float((scores.argmax(1) == pieces[:, 7]).float().mean().item()) > 0.95
    with Tensor.no_grad():
        at_once, _ = model(pieces[:, :7], Tensor.zeros(len(TEXT), 32))
    np.testing.assert_allclose(scores.numpy(), at_once[:, -1].numpy(), rtol=1e-4, atol=1e-4)
