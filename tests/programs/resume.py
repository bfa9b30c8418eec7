"""A training run that is saved and resumed bit for bit: model, optimiser, schedule, random numbers, order of the data.

    python tests/programs/resume.py OUT [--steps 12] [--save-at 7 PATH] [--resume PATH] [--jit]

OUT gets the final state as safetensors. The network has dropout and BatchNorm, the data are drawn in random order, the
rate follows a cosine with warm-up: all of that must go on as if the run had not been interrupted.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from tinytg import Tensor, TinyJit, nn

BATCH, ROWS = 8, 40


class Net:
    """Two layers with BatchNorm and dropout."""

    def __init__(self) -> None:
        self.first, self.norm, self.last = nn.Linear(6, 16), nn.BatchNorm(16), nn.Linear(16, 3)

    def __call__(self, x: Tensor) -> Tensor:
        """Scores, shape (rows, 3)."""
        return self.last(self.norm(self.first(x)).relu().dropout(0.3))


class Run:
    """A training run: everything that its next step depends on.

    Args:
      jit: record the step.
    """

    def __init__(self, jit: bool) -> None:
        Tensor.manual_seed(11)
        rng = np.random.default_rng(5)
        self.images = Tensor(rng.standard_normal((ROWS, 6)).astype(np.float32)).realize()
        self.labels = Tensor(rng.integers(0, 3, ROWS).astype(np.int32)).realize()
        self.net = Net()
        self.optimizer = nn.optim.AdamW(nn.state.get_parameters(self.net), lr=0.05)
        self.schedule = nn.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=10, warmup=3)
        self.step = TinyJit(self._step) if jit else self._step

    @Tensor.train()
    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.net(x).sparse_categorical_crossentropy(y).backward()
        self.optimizer.step()
        return loss.realize()

    def train(self, steps: int) -> None:
        """Makes steps, each on rows that are drawn at random."""
        for _ in range(steps):
            rows = Tensor.randint(BATCH, high=ROWS)
            self.step(self.images[rows].contiguous(), self.labels[rows].contiguous())
            self.schedule.step()

    def state(self) -> dict[str, Tensor]:
        """Everything, by name."""
        parts: dict[str, Any] = {
            "net": nn.state.get_state_dict(self.net), "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(), "random": {"state": Tensor.get_rng_state()},
        }  # fmt: skip
        return nn.state.get_state_dict(parts)

    def restore(self, state: dict[str, Tensor]) -> None:
        """Goes on where :meth:`state` was read."""
        def part(name: str) -> dict[str, Tensor]:
            return {key[len(name) + 1 :]: tensor for key, tensor in state.items() if key.startswith(name + ".")}

        nn.state.load_state_dict(self.net, part("net"))
        self.optimizer.load_state_dict(part("optimizer"))
        self.schedule.load_state_dict(part("schedule"))
        Tensor.set_rng_state(state["random.state"])


def main() -> None:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-at", type=int, default=0)
    parser.add_argument("--save-to", default="")
    parser.add_argument("--resume", default="")
    parser.add_argument("--jit", action="store_true")
    args = parser.parse_args()
    run = Run(args.jit)
    done = 0
    if args.resume:
        run.restore(nn.state.safe_load(args.resume))
        done = run.schedule.last_epoch
    if args.save_at:
        run.train(args.save_at - done)
        nn.state.safe_save(run.state(), args.save_to)
        done = args.save_at
    run.train(args.steps - done)
    nn.state.safe_save(run.state(), args.out)


if __name__ == "__main__":
    main()
