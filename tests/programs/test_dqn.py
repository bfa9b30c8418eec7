"""Deep Q-learning: a pole is balanced on a cart, by a network that learns from what it did."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tinytg import Tensor, TinyJit, nn

Array = npt.NDArray[np.float32]


class CartPole:
    """The pole of Barto, Sutton and Anderson (1983): 0 pushes left, 1 right; over after 200 steps or a fall."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> Array:
        self.state, self.steps = self.rng.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32)

    def step(self, action: int) -> tuple[Array, bool, bool]:
        """The next state, whether the pole fell, and whether the episode is over."""
        x, v, angle, turn = self.state
        force, sin, cos = (10.0 if action else -10.0), math.sin(angle), math.cos(angle)
        push = (force + 0.05 * turn**2 * sin) / 1.1
        turned = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        moved = push - 0.05 * turned * cos / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * moved, angle + 0.02 * turn, turn + 0.02 * turned])
        self.steps += 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 12 * math.pi / 180
        return self.state.astype(np.float32), fell, fell or self.steps >= 200


class QNet:
    def __init__(self) -> None:
        self.layers = [nn.Linear(4, 64), Tensor.relu, nn.Linear(64, 64), Tensor.relu, nn.Linear(64, 2)]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)


class Agent:
    """Double Q-learning from a memory of transitions, with a second network that follows the first."""

    def __init__(self) -> None:
        self.net, self.slow = QNet(), QNet()
        nn.state.load_state_dict(self.slow, nn.state.get_state_dict(self.net))
        self.optimizer = nn.optim.Adam(nn.state.get_parameters(self.net), lr=4e-3)
        self.memory = [np.zeros((5000, n), np.float32) for n in (4, 1, 1, 4, 1)]
        self.stored = 0

    def store(self, *transition: Any) -> None:
        for column, value in zip(self.memory, transition, strict=True):
            column[self.stored % len(column)] = value
        self.stored += 1

    @TinyJit
    @Tensor.no_grad()
    def best(self, state: Tensor) -> Tensor:
        return self.net(state).argmax(1)

    @TinyJit
    def learn(self, state: Tensor, action: Tensor, reward: Tensor, following: Tensor, fell: Tensor) -> Tensor:
        with Tensor.no_grad():
            chosen = self.net(following).argmax(1, keepdim=True)
            target = reward + 0.98 * (1 - fell) * self.slow(following).gather(1, chosen)
        self.optimizer.zero_grad()
        values = self.net(state).gather(1, action.cast("int32"))
        error = (values - target).abs()
        loss = (error < 1).where(0.5 * error.square(), error - 0.5).mean().backward()
        self.optimizer.step()
        pairs = zip(nn.state.get_parameters(self.slow), nn.state.get_parameters(self.net), strict=True)
        with Tensor.no_grad():
            Tensor.realize(*[slow.assign(slow.lerp(fast, 0.02)) for slow, fast in pairs])
        return loss


def play(agent: Agent, env: CartPole) -> int:
    """An episode without learning: how long the pole stood."""
    state, over = env.reset(), False
    while not over:
        state, _, over = env.step(int(agent.best(Tensor(state[None])).item()))
    return env.steps


def test_a_pole_is_balanced() -> None:
    Tensor.manual_seed(2)
    agent, env, rng = Agent(), CartPole(0), np.random.default_rng(0)
    before = np.mean([play(agent, CartPole(100 + i)) for i in range(3)])
    state, recent = env.reset(), list[int]()
    for number in range(3000):
        explore = max(0.05, 1 - number / 1000)
        action = int(rng.integers(2)) if rng.random() < explore else int(agent.best(Tensor(state[None])).item())
        following, fell, over = env.step(action)
        agent.store(state, action, 1.0, following, fell)
        state = following
        if over:
            recent.append(env.steps)
            state = env.reset()
        if number >= 200:
            rows = rng.integers(0, min(agent.stored, 5000), 64)
            agent.learn(*[Tensor(column[rows]) for column in agent.memory])
        if len(recent) >= 3 and np.mean(recent[-3:]) > 180:
            break
    after = np.mean([play(agent, CartPole(200 + i)) for i in range(3)])
    assert before < 60 and after > 120, (before, after, recent)
