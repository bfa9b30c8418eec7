"""A convolutional network learns handwriting at MNIST's size: 60,000 images of 28 x 28 pixels, ten digits.

    python examples/mnist.py --steps 200
    DEV=CL python examples/mnist.py

The images are those of scikit-learn's package, 1797 of 8 x 8 pixels, enlarged and shifted at random, so that nothing is
downloaded; digits that are tested on are made from images that are never learnt from. A step takes a batch of 64. The
environment variable DEV names the device.
"""

from __future__ import annotations

import argparse
import sys
import time

from tinytg import Device, Tensor, TinyJit, dtypes, nn

SIDE, SCALE = 28, 3  # 8 x 8 pixels become 24 x 24, and find 5 x 5 places in the frame


class Network:
    """Two convolutions with pools, and a linear layer: (batch, 1, 28, 28) bytes to the scores of ten digits."""

    def __init__(self) -> None:
        self.conv1 = nn.Conv2d(1, 8, 5)
        self.conv2 = nn.Conv2d(8, 16, 5)
        self.linear = nn.Linear(16 * 4 * 4, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.conv1(x.cast(dtypes.float32) / 255).relu().max_pool2d(2)
        return self.linear(self.conv2(x).relu().max_pool2d(2).flatten(1))


def load(count: int, held_out: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images (count, 1, 28, 28) uint8 and digits to learn from, then those to test on."""
    try:
        import numpy as np
        from sklearn.datasets import load_digits
    except ImportError as error:
        sys.exit(f"mnist.py needs the images that come with scikit-learn ({error}):\n  pip install scikit-learn")
    random = np.random.default_rng(seed)
    small, digits = load_digits(return_X_y=True)
    order = random.permutation(len(small))
    small = (small[order].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    digits = digits[order].astype(np.int32)
    fifth = len(small) // 5

    def made(first: int, last: int, number: int) -> tuple[Tensor, Tensor]:
        chosen = random.integers(first, last, number)
        frames = np.zeros((number, 1, SIDE, SIDE), np.uint8)
        large = small[chosen].repeat(SCALE, axis=1).repeat(SCALE, axis=2)
        places = random.integers(0, SIDE - 8 * SCALE + 1, (number, 2))
        for y in range(SIDE - 8 * SCALE + 1):
            for x in range(SIDE - 8 * SCALE + 1):
                here = (places == (y, x)).all(axis=1)
                frames[here, 0, y : y + 8 * SCALE, x : x + 8 * SCALE] = large[here]
        return Tensor(frames), Tensor(digits[chosen])

    return *made(fifth, len(small), count), *made(0, fifth, held_out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="batches to learn from (default %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="images a step (default %(default)s)")
    parser.add_argument("--images", type=int, default=60_000, help="images to draw from (default %(default)s)")
    parser.add_argument("--held-out", type=int, default=512, help="images to test on (default %(default)s)")
    parser.add_argument("--lr", type=float, default=0.003, help="learning rate (default %(default)s)")
    parser.add_argument("--every", type=int, default=50, help="print the loss each so many steps (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default %(default)s)")
    arguments = parser.parse_args()
    began = time.perf_counter()
    train_x, train_y, test_x, test_y = load(arguments.images, arguments.held_out, arguments.seed)
    print(f"{len(train_x)} images of {SIDE} x {SIDE}; device {Device.DEFAULT}; ready after "
          f"{time.perf_counter() - began:.1f} s", flush=True)  # fmt: skip
    Tensor.manual_seed(arguments.seed)
    model = Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=arguments.lr)

    @TinyJit
    @Tensor.train()
    def step() -> Tensor:
        optimizer.zero_grad()
        chosen = Tensor.randint(arguments.batch, high=len(train_x))
        loss = model(train_x[chosen]).sparse_categorical_crossentropy(train_y[chosen]).backward()
        optimizer.step()
        return loss

    losses: list[float] = []
    replayed = 0.0
    for number in range(arguments.steps):
        start = time.perf_counter()
        losses.append(step().item())
        if number >= 2:  # the first is compiled, the second recorded
            replayed += time.perf_counter() - start
        if number % arguments.every == 0:
            print(f"step {number:4d}  loss {losses[-1]:.4f}", flush=True)
    with Tensor.no_grad():
        correct = int((model(test_x).argmax(axis=1) == test_y).sum().item())
    tail = losses[-10:]
    print(f"loss          {losses[0]:.4f} at first, {sum(tail) / len(tail):.4f} at last")
    print(f"accuracy      {correct / arguments.held_out:.2%} of the held-out images after {arguments.steps} steps")
    if replayed:
        print(f"speed         {(arguments.steps - 2) * arguments.batch / replayed:,.0f} images/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
