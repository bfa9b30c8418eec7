"""A deep network at a large batch: with checkpoints a step takes a fraction of the memory, and learns the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinytg import GlobalCounters, Tensor, TinyJit, nn

BATCH, WIDTH, BLOCKS = 2053, 24, 8


class Block:
    def __init__(self) -> None:
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.down(self.up(self.norm(x)).gelu().dropout(0.1))


def train(through: Callable[[Block, Tensor], Tensor]) -> tuple[list[float], list[Any], int]:
    """Losses, weights, and the most bytes that a step held beside what was there before."""
    Tensor.manual_seed(0)
    blocks, head = [Block() for _ in range(BLOCKS)], nn.Linear(WIDTH, 1)
    weights = nn.state.get_parameters([blocks, head])
    optimizer = nn.optim.SGD(weights, lr=0.01)
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((BATCH, WIDTH)).astype(np.float32))
    y = x.sin().sum(1, keepdim=True).realize(*weights)

    @TinyJit
    @Tensor.train()
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        for block in blocks:
            x = through(block, x)
        loss = (head(x) - y).square().mean().backward()
        optimizer.step()
        return loss

    GlobalCounters.reset()
    before, losses = GlobalCounters.mem_used, []
    for _ in range(6):
        losses.append(float(step(x, y).item()))
    return losses, [w.numpy() for w in weights], GlobalCounters.mem_peak - before


@pytest.mark.slow
@pytest.mark.usefixtures("collected")
def test_a_large_batch_in_little_memory() -> None:
    plain, want, whole = train(lambda block, x: block(x))
    losses, got, parts = train(nn.checkpoint)
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    assert losses[-1] < 0.9 * losses[0]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    activations = BLOCKS * 4 * WIDTH * BATCH * 4
    assert whole > activations and parts < whole / 3, (whole, parts, activations)
