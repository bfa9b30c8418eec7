"""A convolutional network learns handwritten digits: 1797 images of 8 x 8 pixels, from scikit-learn's package.

    python examples/digits.py --epochs 12 --seed 0

Four fifths of the images are learnt from, the last fifth only tested on. Everything runs on the default device; the
environment variable DEV names another (``DEV=NUMPY``, ``DEV=CL``, …). Ctrl-C ends training and prints the summary.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass, field

from tinytg import Device, GlobalCounters, Tensor, TinyJit, nn


class Network:
    """Two convolutions, a pool and a linear layer: (batch, 1, 8, 8) to the scores of ten digits."""

    def __init__(self) -> None:
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm(32)
        self.linear = nn.Linear(32 * 4 * 4, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm1(self.conv1(x)).relu()
        x = self.norm2(self.conv2(x)).relu()
        return self.linear(x.max_pool2d(2).flatten(1).dropout(0.2))


@dataclass
class Data:
    """Images (count, 1, 8, 8) from 0 to 1 and their digits."""

    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor


def load(seed: int) -> Data:
    """The images, shuffled and split."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        sys.exit(f"digits.py needs the images that come with scikit-learn ({error}):\n  pip install scikit-learn")
    images, digits = load_digits(return_X_y=True)
    order = list(range(len(images)))
    random.Random(seed).shuffle(order)
    x = (images[order] / 16).astype("float32").reshape(-1, 1, 8, 8)
    y = digits[order].astype("int32")
    held_out = len(order) // 5
    return Data(*(Tensor(part) for part in (x[:-held_out], y[:-held_out], x[-held_out:], y[-held_out:])))


@dataclass
class Progress:
    """What the summary says."""

    started: float = field(default_factory=time.perf_counter)
    accuracy: float = float("nan")
    epochs: int = 0
    rates: list[float] = field(default_factory=list)
    kernels_per_step: int = 0
    first_step_s: float = float("nan")

    def summary(self) -> str:
        rate = max(self.rates, default=float("nan"))
        return "\n".join((
            f"accuracy      {self.accuracy:.2%} of the held-out images after {self.epochs} epochs",
            f"speed         {rate:,.0f} images/s in training (best epoch), first step {self.first_step_s:.2f} s",
            f"kernels       {self.kernels_per_step} a step, {GlobalCounters.kernel_count:,} launched in all",
            f"compile time  {GlobalCounters.compile_time_s:.2f} s for {GlobalCounters.compile_count} kernels",
            f"whole run     {time.perf_counter() - self.started:.1f} s on {Device.DEFAULT}",
        ))  # fmt: skip


def train(data: Data, epochs: int, batch: int, lr: float, seed: int, progress: Progress) -> None:
    Tensor.manual_seed(seed)
    model = Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=lr)

    @TinyJit
    @Tensor.train()
    def step(chosen: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(data.train_x[chosen]).sparse_categorical_crossentropy(data.train_y[chosen]).backward()
        optimizer.step()
        return loss

    @TinyJit
    def correct() -> Tensor:
        return (model(data.test_x).argmax(axis=1) == data.test_y).sum()

    order = list(range(len(data.train_x)))
    shuffling = random.Random(seed)
    batch = min(batch, len(order))
    for epoch in range(1, epochs + 1):
        began = time.perf_counter()
        shuffling.shuffle(order)
        losses = []
        for start in range(0, len(order) - batch + 1, batch):
            before = GlobalCounters.kernel_count
            losses.append(step(Tensor(order[start : start + batch], dtype="int32")))
            progress.kernels_per_step = GlobalCounters.kernel_count - before
            if progress.first_step_s != progress.first_step_s:
                progress.first_step_s = time.perf_counter() - began
        mean = sum(loss.item() for loss in losses) / len(losses)
        seconds = time.perf_counter() - began
        progress.rates.append(len(losses) * batch / seconds)
        progress.accuracy, progress.epochs = int(correct()) / len(data.test_x), epoch
        print(
            f"epoch {epoch:2d}/{epochs}  loss {mean:.4f}  held out {progress.accuracy:.2%}  "
            f"{seconds:.2f} s  {progress.rates[-1]:,.0f} images/s",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12, help="passes over the images (default %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="images a step (default %(default)s)")
    parser.add_argument("--lr", type=float, default=0.003, help="learning rate (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default %(default)s)")
    parser.add_argument("--require", type=float, default=0.0, metavar="PERCENT", help="fail below this accuracy")
    arguments = parser.parse_args()
    if arguments.epochs < 1 or arguments.batch < 1:
        parser.error("--epochs and --batch must be at least 1")
    progress = Progress()
    data = load(arguments.seed)
    print(f"{len(data.train_x)} images to learn from, {len(data.test_x)} held out; device {Device.DEFAULT}", flush=True)
    try:
        train(data, arguments.epochs, arguments.batch, arguments.lr, arguments.seed, progress)
    except KeyboardInterrupt:
        print("\nstopped")
    print(progress.summary())
    if progress.epochs == arguments.epochs and not progress.accuracy * 100 >= arguments.require:
        print(f"digits.py: the accuracy is below the required {arguments.require:g}%", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
