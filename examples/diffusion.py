"""A UNet learns to take the noise out of handwritten digits, and then makes digits out of noise.

    python examples/diffusion.py --steps 400

Denoising diffusion (Ho, Jain and Abbeel, 2020) on the 1797 images of 8 x 8 pixels of scikit-learn's package. Training
and every step of sampling are recorded by TinyJit. The environment variable DEV names the device.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

from tinytg import Device, Tensor, TinyJit, nn

SHADES = " .:-=+*#%@"


class Block:
    """Two convolutions, told the time in between, and added to what comes in."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else None

    def __call__(self, x: Tensor, t: Tensor) -> Tensor:
        h = self.conv1(self.norm1(x).silu()) + self.time(t)[:, :, None, None]
        h = self.conv2(self.norm2(h).silu())
        return h + (x if self.skip is None else self.skip(x))


class Attention:
    """Every place looks at every other one."""

    def __init__(self, channels: int) -> None:
        self.norm, self.qkv = nn.GroupNorm(4, channels), nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def __call__(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, dim=-1)
        return x + self.out(q.scaled_dot_product_attention(k, v).transpose(1, 2).reshape(x.shape))


class UNet:
    """Images (batch, 1, 8, 8) with noise, and how much, to the noise."""

    def __init__(self, width: int) -> None:
        self.width, wide, time = width, 2 * width, 2 * width
        self.time = [nn.Linear(width, time), Tensor.silu, nn.Linear(time, time), Tensor.silu]
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.down, self.shrink = Block(width, width, time), nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle, self.attention = Block(width, wide, time), Attention(wide)
        self.grow = nn.Conv2d(wide, width, 3, padding=1)
        self.up = Block(2 * width, width, time)
        self.norm, self.last = nn.GroupNorm(4, width), nn.Conv2d(width, 1, 3, padding=1)

    def __call__(self, x: Tensor, t: Tensor) -> Tensor:
        """``t``: shape (batch,), from 0 to 1."""
        half = self.width // 2
        angles = t.unsqueeze(1) * (Tensor.arange(half) * (-math.log(100) / half)).exp() * 100
        t = angles.sin().cat(angles.cos(), dim=1).sequential(self.time)
        x = self.down(self.first(x), t)
        h = self.attention(self.middle(self.shrink(x), t))
        h = self.grow(h.interpolate(scale_factor=2, mode="nearest"))
        return self.last(self.norm(self.up(x.cat(h, dim=1), t)).silu())


class Diffusion:
    """How noise is added, in so many steps, and taken out again.

    Attributes:
      kept: share of the image's variance that is left after each step.
    """

    def __init__(self, model: UNet, steps: int) -> None:
        self.model, self.steps = model, steps
        # a cosine, as Nichol and Dhariwal (2021) have it
        angles = (Tensor.arange(steps + 1) / steps + 0.008) / 1.008 * (math.pi / 2)
        betas = (1 - (angles[1:].cos() / angles[:-1].cos()).square()).clamp(max=0.999)
        self.kept = (1 - betas).cumprod(0).realize()
        self.betas = betas.realize()

    def loss(self, images: Tensor) -> Tensor:
        """The mean square of what is wrong with the noise that the model sees, for times at random."""
        t = Tensor.randint(len(images), high=self.steps)
        noise, kept = images.randn_like(), self.kept[t][:, None, None, None]
        noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise
        return (self.model(noisy, t / self.steps) - noise).square().mean()

    @TinyJit
    @Tensor.no_grad()
    def back(self, x: Tensor, t: Tensor) -> Tensor:
        """One step towards an image; ``t``: shape (1,)."""
        beta, kept = self.betas[t], self.kept[t]
        noise = self.model(x, (t / self.steps).expand(len(x)))
        image = ((x - (1 - kept).sqrt() * noise) / kept.sqrt()).clamp(-1, 1)
        before = kept / (1 - beta)
        mean = (before.sqrt() * beta * image + (1 - beta).sqrt() * (1 - before) * x) / (1 - kept)
        spread = (beta * (1 - before) / (1 - kept)).clamp(min=0).sqrt()
        return mean + (t > 0) * spread * x.randn_like()

    def sample(self, count: int) -> Tensor:
        """Images out of noise."""
        x = Tensor.randn(count, 1, 8, 8)
        for t in reversed(range(self.steps)):
            x = self.back(x, Tensor([t]))
        return x


def drawn(images: list[list[list[float]]]) -> str:
    """Images of values from -1 to 1 side by side, in letters."""
    shades = [[[SHADES[round((min(max(v, -1), 1) + 1) / 2 * 9)] for v in row] for row in image] for image in images]
    return "\n".join("   ".join("".join(c + c for c in image[y]) for image in shades) for y in range(8))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400, help="batches to learn from (default %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="images a step (default %(default)s)")
    parser.add_argument("--width", type=int, default=32, help="channels (default %(default)s)")
    parser.add_argument("--noise-steps", type=int, default=50, help="from image to noise (default %(default)s)")
    parser.add_argument("--samples", type=int, default=64, help="images to make (default %(default)s)")
    parser.add_argument("--lr", type=float, default=0.002, help="learning rate (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default %(default)s)")
    arguments = parser.parse_args()
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        sys.exit(f"diffusion.py needs the images that come with scikit-learn ({error}):\n  pip install scikit-learn")
    data = Tensor((load_digits().images / 8 - 1).astype("float32")).unsqueeze(1).realize()
    Tensor.manual_seed(arguments.seed)
    diffusion = Diffusion(UNet(arguments.width), arguments.noise_steps)
    optimizer = nn.optim.AdamW(nn.state.get_parameters(diffusion.model), lr=arguments.lr, weight_decay=0.0)
    schedule = nn.lr_scheduler.CosineAnnealingLR(optimizer, T_max=arguments.steps, warmup=min(20, arguments.steps))
    print(f"{len(data)} images; device {Device.DEFAULT}", flush=True)

    @TinyJit
    def step() -> Tensor:
        optimizer.zero_grad()
        loss = diffusion.loss(data[Tensor.randint(arguments.batch, high=len(data))]).backward()
        optimizer.step()
        return loss

    losses, began = [], time.perf_counter()
    for number in range(1, arguments.steps + 1):
        losses.append(float(step().item()))
        schedule.step()
        if number % 100 == 0 or number == arguments.steps:
            mean, seconds = sum(losses[-50:]) / len(losses[-50:]), time.perf_counter() - began
            print(f"step {number:4d}/{arguments.steps}  loss {mean:.4f}  {seconds:.1f} s", flush=True)
    began = time.perf_counter()
    made = diffusion.sample(arguments.samples)
    pixels, tail = made.numpy(), losses[-50:]
    seconds = time.perf_counter() - began
    print(f"loss     {losses[0]:.4f} at first, {sum(tail) / len(tail):.4f} at last")
    print(f"samples  mean {pixels.mean():.3f}, deviation {pixels.std():.3f}, "
          f"from {pixels.min():.2f} to {pixels.max():.2f}, in {seconds:.1f} s")  # fmt: skip
    print(f"data     mean {data.mean().item():.3f}, deviation {data.std().item():.3f}")
    print(drawn(made[:6, 0].tolist()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
