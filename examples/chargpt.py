"""A character-level GPT learns a text, and continues it with a cache of keys and values.

    python examples/chargpt.py --steps 300
    python examples/chargpt.py --text my_novel.txt --width 96 --prompt "Once upon"

The text is this repository's docs/jit.md unless another is named. A generated character is one replay of one
record, whatever its position: the position is a variable, and keys and values of earlier characters stay in memory.
The environment variable DEV names the device.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

from tinytg import Device, Tensor, TinyJit, Variable, dtypes, nn

TEXT = Path(__file__).resolve().parents[1] / "docs" / "jit.md"


class Attention:
    """Causal attention of several heads, which remembers keys and values when it is told a position."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        self.heads, self.context = heads, context
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.cache: Tensor | None = None

    def __call__(self, x: Tensor, start: Variable | None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if start is None:
            y = q.scaled_dot_product_attention(k, v, is_causal=True)
        else:
            if self.cache is None:
                shape = (2, batch, self.heads, self.context, width // self.heads)
                self.cache = Tensor.zeros(*shape).contiguous().realize()
            self.cache[:, :, :, start : start + length] = Tensor.stack(k, v)
            k, v = self.cache[0, :, :, : start + length], self.cache[1, :, :, : start + length]
            y = q.scaled_dot_product_attention(k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block:
    """Attention and two linear layers, each behind a normalisation and added to what comes in."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, context)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: Tensor, start: Variable | None) -> Tensor:
        x = x + self.attention(self.norm1(x), start)
        return x + self.down(self.up(self.norm2(x)).gelu())


class GPT:
    """Characters to the scores of the next: (batch, length) to (batch, length, vocabulary)."""

    def __init__(self, vocabulary: int, context: int, width: int = 48, heads: int = 4, layers: int = 2) -> None:
        self.context = context
        self.characters, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = [Block(width, heads, context) for _ in range(layers)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def __call__(self, ids: Tensor, start: Variable | None = None) -> Tensor:
        first = 0 if start is None else start
        x = self.characters(ids) + self.positions.weight[first : first + ids.shape[1]]
        for block in self.blocks:
            x = block(x, start)
        return self.head(self.norm(x))


class Generator:
    """Continues a text with the likeliest character, again and again.

    Args:
      model: what scores characters.
    """

    def __init__(self, model: GPT) -> None:
        self.model = model
        self.position, self.length = Variable("position", 0, model.context - 1), Variable("length", 1, model.context)

    def __call__(self, prompt: list[int], count: int) -> list[int]:
        """``count`` characters after ``prompt``. Each goes through the model once: the cache has what came before."""
        ids = list(prompt)
        for at in range(len(prompt) + count - 1):
            following = self.next_of_one(Tensor([[ids[at]]], dtype=dtypes.int32), self.position.bind(at))
            if at + 1 == len(ids):
                ids.append(int(following.item()))
        return ids[len(prompt) :]

    def without_cache(self, prompt: list[int], count: int) -> list[int]:
        """The same, with all characters going through the model again for each."""
        ids = list(prompt)
        for _ in range(count):
            padded = Tensor([ids + [0] * (self.model.context - len(ids))], dtype=dtypes.int32)
            ids.append(int(self.next_of_all(padded[:, : self.length.bind(len(ids))]).item()))
        return ids[len(prompt) :]

    @TinyJit
    @Tensor.no_grad()
    def next_of_one(self, ids: Tensor, start: Variable) -> Tensor:
        return self.model(ids, start)[:, -1].argmax(-1)

    @TinyJit
    @Tensor.no_grad()
    def next_of_all(self, ids: Tensor) -> Tensor:
        return self.model(ids)[:, -1].argmax(-1)


def train(model: GPT, ids: Tensor, steps: int, batch: int, lr: float) -> list[float]:
    """Makes steps of AdamW on pieces of the text drawn at random; returns the loss of each."""
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=lr)
    schedule = nn.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, steps), warmup=min(10, steps))

    @TinyJit
    @Tensor.train()
    def step() -> Tensor:
        optimizer.zero_grad()
        starts = Tensor.randint(batch, 1, high=len(ids) - model.context)
        rows = ids[starts + Tensor.arange(model.context + 1)]
        loss = model(rows[:, :-1]).flatten(0, 1).cross_entropy(rows[:, 1:].flatten()).backward()
        optimizer.step()
        return loss

    losses: list[float] = []
    began = time.perf_counter()
    for number in range(1, steps + 1):
        losses.append(float(step().item()))
        schedule.step()
        if number % 50 == 0 or number == steps:
            print(f"step {number:4d}/{steps}  loss {losses[-1]:.4f}  {time.perf_counter() - began:.1f} s", flush=True)
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, default=TEXT, help="what to learn (default docs/jit.md)")
    parser.add_argument("--steps", type=int, default=300, help="batches to learn from (default %(default)s)")
    parser.add_argument("--batch", type=int, default=16, help="pieces of text a step (default %(default)s)")
    parser.add_argument("--context", type=int, default=64, help="characters that are looked at (default %(default)s)")
    parser.add_argument("--width", type=int, default=48, help="of the vectors (default %(default)s)")
    parser.add_argument("--lr", type=float, default=0.01, help="highest learning rate (default %(default)s)")
    parser.add_argument("--prompt", default="A record ", help="what to continue (default %(default)r)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default %(default)s)")
    arguments = parser.parse_args()
    text = arguments.text.read_text(encoding="utf-8")
    letters = sorted({*text, *arguments.prompt})
    number = {letter: i for i, letter in enumerate(letters)}
    Tensor.manual_seed(arguments.seed)
    model = GPT(len(letters), arguments.context, arguments.width)
    print(f"{len(text)} characters, {len(letters)} different; device {Device.DEFAULT}", flush=True)
    ids = Tensor([number[c] for c in text], dtype=dtypes.int32)
    losses = train(model, ids, arguments.steps, arguments.batch, arguments.lr)
    tail = losses[-10:]
    generate, prompt = Generator(model), [number[c] for c in arguments.prompt]
    count = arguments.context - len(prompt)
    began = time.perf_counter()
    made = generate(prompt, count)
    seconds = time.perf_counter() - began
    print(f"loss          {losses[0]:.4f} at first, {sum(tail) / len(tail):.4f} at last; "
          f"{math.log(len(letters)):.4f} is a guess")  # fmt: skip
    print(f"speed         {arguments.context / seconds:,.0f} characters/s")
    print(f"continued     {arguments.prompt + ''.join(letters[i] for i in made)!r}")
    print(f"same uncached {made == generate.without_cache(prompt, count)}")


if __name__ == "__main__":
    main()
