"""Low-rank adapters: a network is frozen, and what it learns anew is a thin product beside each weight."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytg import Tensor, TinyJit, nn

RNG = np.random.default_rng(2)
X = RNG.standard_normal((256, 21)).astype(np.float32)
TEACHER = RNG.standard_normal((21, 5)).astype(np.float32)
CHANGE = (RNG.standard_normal((21, 2)) @ RNG.standard_normal((2, 5))).astype(np.float32)


class LoRALinear:
    """What a layer gives, and beside it x @ a.T @ b.T * scale; b is zeros at first, so that nothing changes."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        self.base, self.scale = base, alpha / rank
        for parameter in nn.state.get_parameters(base):
            parameter.requires_grad = False
        inputs, outputs = base.in_features, base.out_features
        self.lora_a = Tensor.kaiming_uniform(rank, inputs, a=math.sqrt(5), requires_grad=True)
        self.lora_b = Tensor.zeros(outputs, rank, requires_grad=True)

    def __call__(self, x: Tensor) -> Tensor:
        return self.base(x) + (x @ self.lora_a.T) @ self.lora_b.T * self.scale

    def merged(self) -> nn.Linear:
        """One layer that gives the same."""
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        state = {name: tensor.clone() for name, tensor in nn.state.get_state_dict(self.base).items()}
        state["weight"] = (state["weight"] + self.lora_b @ self.lora_a * self.scale).detach()
        nn.state.load_state_dict(layer, state)
        return layer


class Net:
    def __init__(self) -> None:
        self.first: Any = nn.Linear(21, 48)
        self.last: Any = nn.Linear(48, 5)

    def __call__(self, x: Tensor) -> Tensor:
        scores: Tensor = self.last(self.first(x).gelu())
        return scores


def fit(net: Net, classes: Tensor, steps: int, lr: float) -> tuple[float, float]:
    """The loss at first and at last."""
    learnt = [p for p in nn.state.get_parameters(net) if p.requires_grad is not False]
    optimizer = nn.optim.AdamW(learnt, lr=lr, weight_decay=0.0)
    x = Tensor(X)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = net(x).cross_entropy(classes).backward()
        optimizer.step()
        return loss

    losses = [step() for _ in range(steps)]
    return float(losses[0].item()), float(losses[-1].item())


def bits(tensors: list[Tensor]) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in tensors]


def test_adapters_learn_and_the_base_stays() -> None:
    Tensor.manual_seed(0)
    net, changed = Net(), Tensor((X @ (TEACHER + CHANGE)).argmax(1).astype(np.int32))
    fit(net, Tensor((X @ TEACHER).argmax(1).astype(np.int32)), 60, 0.01)
    base = nn.state.get_parameters(net)
    for parameter in base:
        parameter.grad = None
    kept, before = bits(base), net(Tensor(X)).numpy()

    adapted = Net()
    adapted.first, adapted.last = LoRALinear(net.first, 3, 6.0), LoRALinear(net.last, 3, 6.0)
    np.testing.assert_array_equal(adapted(Tensor(X)).numpy(), before)
    first, last = fit(adapted, changed, 150, 0.02)
    assert last < 0.3 * first, (first, last)
    assert bits(base) == kept and all(p.grad is None for p in base)
    names = {name for name, p in nn.state.get_state_dict(adapted).items() if p.requires_grad}
    assert names == {"first.lora_a", "first.lora_b", "last.lora_a", "last.lora_b"}

    merged = Net()
    merged.first, merged.last = adapted.first.merged(), adapted.last.merged()
    scores = adapted(Tensor(X)).numpy()
    np.testing.assert_allclose(merged(Tensor(X)).numpy(), scores, rtol=1e-4, atol=1e-4)
    assert np.abs(scores - before).max() > 1
    assert (scores.argmax(1) == changed.numpy()).mean() > 0.9
