"""A byte-level GPT learns real text, and can be stopped and resumed at any step.

    python examples/train_gpt.py --steps 600 --out run
    python examples/train_gpt.py --steps 1200 --out run --resume
    python examples/train_gpt.py --text novel.txt essays/*.txt --width 128 --layers 4

The text is this repository's documentation unless files are named; a tenth of it is held out. The rate warms up and
falls along a cosine, gradients are clipped. The folder named by ``--out`` gets a checkpoint (weights, optimiser,
schedule, random numbers, losses) every ``--save`` steps, at the end and on Ctrl-C, and the curve of the losses as
``loss.svg``. What is resumed continues with the same numbers as if it had not stopped. The environment variable DEV
names the device.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from tinytg import Device, Tensor, TinyJit, Variable, dtypes, nn

DOCS = Path(__file__).resolve().parents[1] / "docs"
BYTES = 256


class Attention:
    """Causal attention of several heads."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = q.scaled_dot_product_attention(k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block:
    """Attention and two linear layers, each behind a normalisation and added to what comes in."""

    def __init__(self, width: int, heads: int) -> None:
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.up(self.norm2(x)).gelu())


class GPT:
    """Bytes to the scores of the next: (batch, length) to (batch, length, 256)."""

    def __init__(self, context: int, width: int, heads: int, layers: int) -> None:
        self.context = context
        self.bytes, self.places = nn.Embedding(BYTES, width), nn.Embedding(context, width)
        self.blocks = [Block(width, heads) for _ in range(layers)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, BYTES, bias=False)

    def __call__(self, ids: Tensor) -> Tensor:
        x = self.bytes(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Training:
    """A model, what trains it, and where it is.

    Args:
      text: bytes, of which the last tenth is held out.
      options: as ``main`` reads them.
    """

    def __init__(self, text: bytes, options: argparse.Namespace) -> None:
        self.shape = {name: getattr(options, name) for name in ("context", "width", "heads", "layers", "batch")}
        self.steps, self.batch = options.steps, options.batch
        kept = max(len(text) // 10, options.context + 1)
        if len(text) < 2 * kept:
            raise ValueError(f"{len(text)} bytes of text are too few for a context of {options.context}")
        self.learnt, self.kept = len(text) - kept, kept
        self.ids, self.held_out = (
            Tensor(np.frombuffer(part, np.uint8)).cast(dtypes.int32).realize() for part in (text[:-kept], text[-kept:])
        )
        self.model = GPT(options.context, options.width, options.heads, options.layers)
        self.parameters = nn.state.get_parameters(self.model)
        self.optimizer = nn.optim.AdamW(self.parameters, lr=options.lr, weight_decay=0.01)
        self.schedule = nn.lr_scheduler.CosineAnnealingLR(
            self.optimizer, T_max=options.steps, warmup=min(options.warmup, options.steps))  # fmt: skip
        self.losses: list[float] = []
        self.checks: list[tuple[int, float]] = []

    @TinyJit
    @Tensor.train()
    def step(self) -> Tensor:
        """Learns from a batch of pieces drawn at random; the loss before."""
        self.optimizer.zero_grad()
        starts = Tensor.randint(self.batch, 1, high=self.learnt - self.model.context)
        rows = self.ids[starts + Tensor.arange(self.model.context + 1)]
        loss = self.model(rows[:, :-1]).flatten(0, 1).cross_entropy(rows[:, 1:].flatten()).backward()
        nn.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        return loss

    @TinyJit
    @Tensor.no_grad()
    def check(self) -> Tensor:
        """The loss on the text that is held out."""
        context = self.model.context
        count = min((self.kept - 1) // context, 64)
        places = Tensor.arange(count).unsqueeze(1) * context + Tensor.arange(context + 1)
        rows = self.held_out[places]
        return self.model(rows[:, :-1]).flatten(0, 1).cross_entropy(rows[:, 1:].flatten())

    def save(self, file: Path) -> None:
        """Writes a checkpoint; the one before stays until this one is whole."""
        state = {f"model.{name}": x for name, x in nn.state.get_state_dict(self.model).items()}
        state["optimizer"] = self.optimizer.state_dict()
        state |= {f"schedule.{name}": x for name, x in self.schedule.state_dict().items()}
        state["random"] = Tensor.get_rng_state()
        facts = {"losses": self.losses, "checks": self.checks, "shape": self.shape}
        nn.state.safe_save(state, file, {name: json.dumps(fact) for name, fact in facts.items()})

    def load(self, file: Path) -> None:
        """Goes on where a checkpoint was written.

        Raises:
          ValueError: if it is of a model of another shape.
        """
        header = nn.state.safe_load_metadata(file)[1]
        facts = {name: json.loads(text) for name, text in header.get("__metadata__", {}).items()}
        if facts.get("shape") != self.shape:
            raise ValueError(f"{file} is of {facts.get('shape')}, not of {self.shape}")
        state = nn.state.safe_load(file)

        def part(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): x for name, x in state.items() if name.startswith(prefix)}

        nn.state.load_state_dict(self.model, part("model."))
        self.optimizer.load_state_dict(part("optimizer."))
        self.schedule.load_state_dict(part("schedule."))
        Tensor.set_rng_state(state["random"])
        self.losses, self.checks = facts["losses"], [(step, loss) for step, loss in facts["checks"]]

    def run(self, out: Path, every: int, look: int = 50) -> None:
        """Trains to the last step; saves every so many, at the end, and when it is interrupted."""
        began, first = time.perf_counter(), len(self.losses)
        try:
            while len(self.losses) < self.steps:
                self.losses.append(float(self.step().item()))
                self.schedule.step()
                number = len(self.losses)
                if number % look == 0 or number == self.steps:
                    self.checks.append((number, float(self.check().item())))
                    speed = (number - first) * self.batch * self.model.context / (time.perf_counter() - began)
                    print(f"step {number:5d}/{self.steps}  loss {self.losses[-1]:.4f}  held out "
                          f"{self.checks[-1][1]:.4f}  {speed:,.0f} bytes/s", flush=True)  # fmt: skip
                if number % every == 0:
                    self.save(out / "checkpoint.safetensors")
        except KeyboardInterrupt:
            print(f"\nstopped after step {len(self.losses)}; --resume goes on there", flush=True)
        self.save(out / "checkpoint.safetensors")
        (out / "loss.svg").write_text(curve(self.losses, self.checks), encoding="utf-8")

    @TinyJit
    @Tensor.no_grad()
    def following(self, ids: Tensor, last: Variable) -> Tensor:
        """The likeliest byte behind position ``last`` of (1, context)."""
        return self.model(ids)[0, last].argmax()

    def continued(self, prompt: bytes, count: int) -> bytes:
        """``prompt`` with the likeliest bytes behind it."""
        made, context = bytearray(prompt), self.model.context
        place = Variable("place", 0, context - 1)
        for _ in range(count):
            seen = bytes(made[-context:])
            ids = Tensor([list(seen.ljust(context, b"\0"))], dtype=dtypes.int32)
            made.append(int(self.following(ids, place.bind(len(seen) - 1)).item()))
        return bytes(made)


def curve(losses: list[float], checks: list[tuple[int, float]], width: int = 720, height: int = 360) -> str:
    """The losses of training (thin: each step; thick: a running mean) and of the text that is held out (dots)."""
    if not losses:
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"/>\n'
    top = max(math.ceil(max(losses)), 1)
    mean, means = losses[0], []
    for loss in losses:
        mean += 0.05 * (loss - mean)
        means.append(mean)

    def at(step: float, loss: float) -> tuple[float, float]:
        return 48 + (width - 64) * step / len(losses), 16 + (height - 48) * (1 - loss / top)

    def line(values: list[float], style: str) -> str:
        points = " ".join("{:.1f},{:.1f}".format(*at(step, loss)) for step, loss in enumerate(values, start=1))
        return f'<polyline fill="none" {style} points="{points}"/>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]  # fmt: skip
    for loss in range(top + 1):
        x, y = at(0, loss)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{width - 16}" y2="{y:.1f}" stroke="#dee2e6"/>')
        out.append(f'<text x="{x - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#495057">{loss}</text>')
    for step in sorted({0, len(losses) // 2, len(losses)}):
        x = at(step, 0)[0]
        out.append(f'<text x="{x:.1f}" y="{height - 12}" text-anchor="middle" fill="#495057">{step}</text>')
    out.append(line(losses, 'stroke="#1971c2" opacity="0.3"'))
    out.append(line(means, 'stroke="#1971c2" stroke-width="2"'))
    for step, loss in checks:
        x, y = at(step, loss)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#d6336c"/>')
    x, y = width - 16, 32
    for text, colour in (("loss of training, cross entropy by step", "#1971c2"), ("held out", "#d6336c")):
        out.append(f'<text x="{x}" y="{y}" text-anchor="end" fill="{colour}">{text}</text>')
        y += 16
    return "\n".join([*out, "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, nargs="+", help="files to learn (if none, the documentation)")
    parser.add_argument("--steps", type=int, default=600, help="batches to learn from in all (default %(default)s)")
    parser.add_argument("--batch", type=int, default=16, help="pieces of text a step (default %(default)s)")
    parser.add_argument("--context", type=int, default=128, help="bytes that are looked at (default %(default)s)")
    parser.add_argument("--width", type=int, default=96, help="of the vectors (default %(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="of attention (default %(default)s)")
    parser.add_argument("--layers", type=int, default=3, help="blocks (default %(default)s)")
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate (default %(default)s)")
    parser.add_argument("--warmup", type=int, default=50, help="steps until it is reached (default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("gpt"), help="folder of checkpoint and curve (default gpt)")
    parser.add_argument("--save", type=int, default=200, help="steps between checkpoints (default %(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on where the checkpoint was written")
    parser.add_argument("--prompt", default="A tensor is ", help="what to continue at the end (default %(default)r)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default %(default)s)")
    arguments = parser.parse_args()
    file = arguments.out / "checkpoint.safetensors"
    if file.exists() and not arguments.resume:
        sys.exit(f"{file} is there: --resume goes on with it, another --out begins anew")
    try:
        files = arguments.text or sorted(DOCS.rglob("*.md"))
        text = b"\n".join(path.read_bytes() for path in files)
        Tensor.manual_seed(arguments.seed)
        training = Training(text, arguments)
        if arguments.resume:
            training.load(file)
        arguments.out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"train_gpt.py: {error}")
    count = sum(x.numel() for x in training.parameters)
    print(f"{len(text):,} bytes of text, {count:,} parameters; device {Device.DEFAULT}", flush=True)
    training.run(arguments.out, arguments.save)
    made = training.continued(arguments.prompt.encode(), 80)
    print(f"continued  {made.decode(errors='replace')!r}")
    print(f"curve      {arguments.out / 'loss.svg'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
