"""Training loops as users write them: under TinyJit they end where they end without it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tinytg import Context, Tensor, TinyJit, Variable, nn

ROWS = 50
RNG = np.random.default_rng(1)
X = RNG.standard_normal((ROWS, 5)).astype(np.float32)
Y = (X @ RNG.standard_normal((5, 1)).astype(np.float32) + 0.1).astype(np.float32)


class Net:
    def __init__(self) -> None:
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).tanh())


def bits(value: Any) -> Any:
    return [t.numpy().tobytes() for t in nn.state.get_parameters(value)]


def test_restore_the_best_and_evaluate() -> None:
    """The weights of the best epoch are kept, training goes on, the best are restored and evaluated."""
    def program(jit: bool) -> tuple[list[float], float]:
        Tensor.manual_seed(0)
        net = Net()
        optimizer = nn.optim.SGD(nn.state.get_parameters(net), lr=0.3)

        def step(x: Tensor, y: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean().backward()
            optimizer.step()
            return loss

        def evaluate(x: Tensor, y: Tensor) -> Tensor:
            return (net(x) - y).square().mean()

        train: Any = TinyJit(step) if jit else step
        test: Any = TinyJit(evaluate) if jit else evaluate
        losses, best, kept = [], math.inf, {}
        for epoch in range(8):
            for start in range(0, 40, 10):
                train(Tensor(X[start : start + 10]), Tensor(Y[start : start + 10]))
            losses.append(float(test(Tensor(X[40:]), Tensor(Y[40:])).item()))
            if losses[-1] < best:
                best = losses[-1]
                kept = {name: tensor.clone() for name, tensor in nn.state.get_state_dict(net).items()}
            if epoch == 4:
                optimizer.lr = 3.0  # from here on it gets worse
        nn.state.load_state_dict(net, kept)
        restored = float(test(Tensor(X[40:]), Tensor(Y[40:])).item())
        assert restored == best != losses[-1]
        return losses, restored

    assert program(True) == program(False)


@pytest.mark.parametrize("how", ["schedule", "number", "assign"])
def test_a_cosine_with_warm_up(how: str) -> None:
    def rate(step: int) -> float:
        return 0.5 * (step + 1) / 4 if step < 3 else 0.25 * (1 + math.cos(math.pi * min((step - 3) / 9, 1)))

    def program(jit: bool) -> tuple[list[float], Any]:
        Tensor.manual_seed(0)
        net = Net()
        optimizer = nn.optim.Adam(nn.state.get_parameters(net), lr=0.5)
        schedule = nn.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9, warmup=3) if how == "schedule" else None

        def step(x: Tensor, y: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean().backward()
            optimizer.step()
            return loss

        run: Any = TinyJit(step) if jit else step
        rates = []
        for i in range(12):
            if how == "number":
                optimizer.lr = rate(i)
            elif how == "assign":
                optimizer.lr.assign([rate(i)])
            run(Tensor(X[i : i + 8]), Tensor(Y[i : i + 8]))
            rates.append(float(optimizer.lr.item()))
            if schedule is not None:
                schedule.step()
        np.testing.assert_allclose(rates, [rate(i) for i in range(12)], rtol=1e-6)
        return rates, bits(net)

    assert program(True) == program(False)


def test_a_smaller_last_batch() -> None:
    """The last batch has fewer rows: a symbolic size makes it a replay of the same record."""
    def program(jit: bool, symbolic: bool) -> tuple[list[float], Any]:
        Tensor.manual_seed(0)
        net, rows = Net(), Variable("rows", 1, 16)
        optimizer = nn.optim.SGD(nn.state.get_parameters(net), lr=0.2, momentum=0.9)
        calls = []

        def step(x: Tensor, y: Tensor) -> Tensor:
            calls.append(1)
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean().backward()
            optimizer.step()
            return loss

        run: Any = TinyJit(step) if jit else step
        losses = []
        images, labels = np.zeros((64, 5), np.float32), np.zeros((64, 1), np.float32)  # room for whole batches
        images[:ROWS], labels[:ROWS] = X, Y
        for _ in range(3):
            for start in range(0, ROWS, 16):
                count = min(16, ROWS - start)
                n = rows.bind(count) if symbolic else count
                x, y = Tensor(images[start : start + 16])[:n], Tensor(labels[start : start + 16])[:n]
                losses.append(float(run(x, y).item()))
        assert len(calls) == (2 if jit else 12)
        return losses, [t.numpy() for t in nn.state.get_parameters(net)]

    plain, jitted, symbolic = program(False, False), program(True, True), program(False, True)
    assert jitted[0] == symbolic[0]
    np.testing.assert_allclose(jitted[0], plain[0], rtol=1e-4)
    for a, b, c in zip(jitted[1], plain[1], symbolic[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        assert a.tobytes() == c.tobytes()


def test_a_moving_average_of_the_weights() -> None:
    def program(jit: bool) -> tuple[Any, Any, list[float]]:
        Tensor.manual_seed(0)
        net, mean = Net(), Net()
        nn.state.load_state_dict(mean, {name: t.clone() for name, t in nn.state.get_state_dict(net).items()})
        averages, weights = nn.state.get_parameters(mean), nn.state.get_parameters(net)
        optimizer = nn.optim.Adam(weights, lr=0.05)

        def step(x: Tensor, y: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean().backward()
            optimizer.step()
            for average, weight in zip(averages, weights, strict=True):
                average.assign(average * 0.9 + weight.detach() * 0.1)
            return loss

        run: Any = TinyJit(step) if jit else step
        test: Any = TinyJit(lambda x: mean(x).sum()) if jit else lambda x: mean(x).sum()
        tests = []
        for i in range(10):
            run(Tensor(X[i : i + 8]), Tensor(Y[i : i + 8]))
            tests.append(float(test(Tensor(X[40:])).item()))
        return bits(net), bits(mean), tests

    assert program(True) == program(False)


@pytest.mark.parametrize("way", ["in one call", "in a buffer"])
def test_gradients_are_accumulated(way: str) -> None:
    """Four parts of a batch, in one recorded call, or added up in tensors by four calls and applied by a fifth."""
    def program(jit: bool) -> Any:
        Tensor.manual_seed(0)
        net = Net()
        weights = nn.state.get_parameters(net)
        optimizer = nn.optim.SGD(weights, lr=0.1, momentum=0.5)
        sums = [Tensor.zeros(*w.shape).contiguous().realize() for w in weights]

        def whole(x: Tensor, y: Tensor) -> None:
            optimizer.zero_grad()
            for part in range(4):
                rows = slice(4 * part, 4 * part + 4)
                ((net(x[rows]) - y[rows]).square().mean() / 4).backward()
            optimizer.step()

        def add(x: Tensor, y: Tensor) -> None:
            optimizer.zero_grad()
            ((net(x) - y).square().mean() / 4).backward()
            for total, w in zip(sums, weights, strict=True):
                assert w.grad is not None
                total += w.grad
            sums[0].realize(*sums[1:])

        def apply() -> None:
            for total, w in zip(sums, weights, strict=True):
                w.grad = total * 1
            optimizer.step()
            optimizer.zero_grad()
            for total in sums:
                total.assign(0)
            sums[0].realize(*sums[1:])

        one, two, three = [TinyJit(f) if jit else f for f in (whole, add, apply)]  # type: Any, Any, Any
        for i in range(6):
            x, y = X[4 * i : 4 * i + 16], Y[4 * i : 4 * i + 16]
            if way == "in one call":
                one(Tensor(x), Tensor(y))
            else:
                for part in range(4):
                    two(Tensor(x[4 * part : 4 * part + 4]), Tensor(y[4 * part : 4 * part + 4]))
                three()
        return bits(net)

    assert program(True) == program(False)


def test_a_model_in_a_loop_over_devices() -> None:
    """A method is recorded for each instance: two models of other sizes in one loop."""
    class Scorer:
        def __init__(self, width: int) -> None:
            self.layer = nn.Linear(5, width)

        @TinyJit
        def score(self, x: Tensor) -> Tensor:
            return self.layer(x).sum(1)

    models = [Scorer(2), Scorer(7)]
    with Context(JIT=0):
        want = [[m.score(Tensor(X[i : i + 4])).tolist() for m in models] for i in range(5)]
    assert [[m.score(Tensor(X[i : i + 4])).tolist() for m in models] for i in range(5)] == want
