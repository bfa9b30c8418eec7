"""The transformer itself: rows of tokens in, the logits of one row out, and keys and values into a cache."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tg_dtype import DType, dtypes
from tg_lazy.cost import limits_of
from tg_shape import Variable, sint

from ..files.gguf.digits import Digits
from ..tensor import Tensor
from .description import Description
from .integers import OUTPUTS, IntegerWeight, rounded
from .rotary import rotate, tables

BLOCK = 256
"""Rows whose attention is computed together: scores are computed as far as the last one sees, for all of them."""


class Weights:
    """The tensors of a file, each asked for by its name and the shape that it must have.

    Raises:
      ValueError: if a tensor is missing or has another shape.
    """

    def __init__(self, tensors: Mapping[str, Tensor], digits: Mapping[str, Digits] = {}) -> None:
        self.tensors, self.digits = tensors, digits
        self._rooms: dict[tuple[DType, tuple[int, ...]], Tensor] = {}

    def room(self, shape: tuple[int, ...], dtype: DType, device: str) -> Tensor:
        """Memory for an unpacked weight, one for all of a shape and a dtype."""
        if (dtype, shape) not in self._rooms:
            self._rooms[dtype, shape] = Tensor.empty(*shape, dtype=dtype, device=device)
        return self._rooms[dtype, shape]

    def __call__(self, name: str, *shape: int) -> Tensor:
        found = self.maybe(name, *shape)
        if found is None:
            raise ValueError(f"language model: the file has no tensor {name!r}")
        return found

    def maybe(self, name: str, *shape: int) -> Tensor | None:
        """The tensor, or None if the file has none of this name."""
        found = self.tensors.get(name)
        if found is None:
            return None
        _require_shape(name, found._ints(), shape)
        return found.float()  # fuses into what uses it

    def whole(self, name: str, outputs: int, inputs: int) -> Digits | None:
        """The whole numbers of a matrix, or None if it is not multiplied in such."""
        found = self.digits.get(name)
        if found is not None:
            rows, runs, run = found.values._ints()
            _require_shape(name, (rows, runs * run), (outputs, inputs))
        return found


def _require_shape(name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if found != wanted:
        raise ValueError(f"language model: tensor {name!r} has the shape {found}, not {wanted}")


class Product:
    """x @ weight.T + bias: weights stay in the blocks of their file.

    One row's product unpacks them as it reads them. Many rows would unpack them many times, so there they are unpacked
    once for each product, to a room that all weights of that shape share.
    """

    def __init__(self, weights: Weights, name: str, outputs: int, inputs: int) -> None:
        self.outputs, self._inputs, self._weights, self._name = outputs, inputs, weights, f"{name}.weight"
        self.bias = weights.maybe(f"{name}.bias", outputs)
        self.digits = weights.whole(self._name, outputs, inputs)
        self.device = self.weight.device if self.digits is None else self.digits.values.device
        self.room = weights.room((outputs, inputs), dtypes.float32, self.device)

    @cached_property
    def weight(self) -> Tensor:
        """Of shape (outputs, inputs); where products are in integers it may never be wanted."""
        return self._weights(self._name, self.outputs, self._inputs)

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[0] == 1:
            out = x @ self.weight.T
        else:
            self.room.assign(self.weight).realize()
            out = (x @ self.room.T).realize()  # before the room is another weight's
        return self.biased(out)

    def biased(self, out: Tensor) -> Tensor:
        return out if self.bias is None else out + self.bias


class Products:
    """Products of the same rows: in integers those whose weights are given so, the like of them together."""

    def __init__(self, weights: Weights, *products: Product) -> None:
        self.products = products
        like: dict[tuple[int, ...], list[int]] = {}
        for i, product in enumerate(products):
            if product.digits is not None and product.outputs % OUTPUTS == 0:
                like.setdefault(product.digits.sort, []).append(i)
        self.together = [(members, IntegerWeight([_digits(products[i]) for i in members])) for members in like.values()]
        device = products[0].device
        self.rooms = [weights.room(weight.room_shape, dtypes.uint8, device) for _, weight in self.together]

    def __call__(self, x: Tensor) -> list[Tensor]:
        """The product with each of the weights, shape (rows, outputs)."""
        out: dict[int, Tensor] = {}
        for (members, _), whole in zip(self.together, self._in_integers(x), strict=False):
            every = whole.split([self.products[i].outputs for i in members], dim=1)
            out |= {i: self.products[i].biased(part) for i, part in zip(members, every, strict=True)}
        if len(self.products) - len(out) > 1:
            x = x.contiguous()  # a norm, which each would compute anew
        return [out[i] if i in out else product(x) for i, product in enumerate(self.products)]

    def _in_integers(self, x: Tensor) -> list[Tensor]:
        """Products with the weights that are together; of many rows none where a device has no instructions for it."""
        many = x.shape[0] != 1
        if many and not limits_of(x.device).block_sums:
            return []
        rows = {run: rounded(x, run) for run in {weight.run for _, weight in self.together}}
        return [
            weight(rows[weight.run], room if many else None)
            for (_, weight), room in zip(self.together, self.rooms, strict=True)
        ]


def _digits(product: Product) -> Digits:
    assert product.digits is not None
    return product.digits


def normed(x: Tensor, weight: Tensor | None, epsilon: float) -> Tensor:
    """x over its root mean square, by a weight; x itself where there is no weight."""
    if weight is None:
        return x
    return x * ((x * x).mean(-1, keepdim=True) + epsilon).rsqrt() * weight


def added(x: Tensor, y: Tensor) -> Tensor:
    """x + y; of many rows in memory, where each norm would else add up anew what all layers before it gave."""
    return (x + y).contiguous() if x.shape[0] > 1 else x + y


def capped(x: Tensor, bound: float) -> Tensor:
    """x, bent so that it stays within a bound; 0 is no bound."""
    return (x / bound).tanh() * bound if bound else x


@dataclass(frozen=True)
class Place:
    """Where rows stand.

    Attributes:
      start: the position of the first.
      rows: how many.
      tables: cosines and sines of the rows, each of shape (rows, width / 2), for each kind of rotation.
    """

    start: sint
    rows: int
    tables: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]

    def only(self, row: Variable) -> Place:
        """Where one of the rows stands."""
        cut = [(cos[row : row + 1], sin[row : row + 1]) for cos, sin in self.tables]
        return Place(self.start + row, 1, (cut[0], cut[1]))


class Attention:
    """Attention of several heads to what is in the cache, which the rows' keys and values join first.

    Where one row alone is wanted, that of ``last``, the others give their keys and values only.
    """

    def __init__(self, weights: Weights, shape: Description, layer: int) -> None:
        name = f"blk.{layer}.attn_"
        self.shape, self.windowed = shape, shape.sees_window(layer)
        self.qkv = Products(
            weights,
            Product(weights, f"{name}q", shape.heads * shape.head, shape.width),
            Product(weights, f"{name}k", shape.groups * shape.head, shape.width),
            Product(weights, f"{name}v", shape.groups * shape.value, shape.width),
        )
        self.out = Products(weights, Product(weights, f"{name}output", shape.width, shape.heads * shape.value))
        self.q_norm = weights.maybe(f"{name}q_norm.weight", shape.head)
        self.k_norm = weights.maybe(f"{name}k_norm.weight", shape.head)

    def __call__(self, x: Tensor, keys: Tensor, values: Tensor, place: Place, last: Variable | None = None) -> Tensor:
        q, k, v = self._projected(x, last)
        self._remember(k, v, keys, values, place)
        shape, wanted = self.shape, place if last is None else place.only(last)
        q = normed(q.reshape(wanted.rows, shape.heads, shape.head), self.q_norm, shape.epsilon)
        q = rotate(q, *wanted.tables[self.windowed], shape.family.interleaved)
        held = wanted.start + wanted.rows
        keys, values = keys[:, :held].float(), values[:, :held].float()
        if wanted.rows > 1:  # each of which would convert them anew
            keys.realize(values)
        if wanted.rows <= BLOCK:
            return self.out(self._attended(q, keys, values, wanted.start))[0]
        mixed = Tensor.empty(wanted.rows, shape.heads * shape.value, device=x.device)
        for first in range(0, wanted.rows, BLOCK):
            start, end = wanted.start + first, wanted.start + first + BLOCK
            block = self._attended(q[first : first + BLOCK], keys[:, :end], values[:, :end], start)
            mixed[first : first + BLOCK].assign(block).realize()
        return self.out(mixed)[0]

    def _attended(self, q: Tensor, keys: Tensor, values: Tensor, start: sint) -> Tensor:
        """What rows find among keys and values, shape (rows, heads * value).

        Args:
          q: queries, shape (rows, heads, head).
          keys: shape (groups, positions, head), up to that of the last row.
          values: shape (groups, positions, value).
          start: position of the first row.
        """
        shape, rows = self.shape, int(q.shape[0])
        # (groups, heads of a group * rows, head): each group's keys are read once for all of its heads
        each = shape.heads // shape.groups
        q = q.reshape(rows, shape.groups, each, shape.head).permute(1, 2, 0, 3).reshape(shape.groups, -1, shape.head)
        scores = capped(q @ keys.transpose(1, 2) * shape.attention_scale, shape.attention_cap)
        weights = self._masked(scores, start, rows).softmax(-1)
        mixed = (weights @ values).reshape(shape.groups, each, rows, shape.value)
        return mixed.permute(2, 0, 1, 3).reshape(rows, -1)

    def _projected(self, x: Tensor, last: Variable | None) -> list[Tensor]:
        """Queries, keys and values of the rows, or the queries of one alone."""
        q, k, v = self.qkv(x)
        return [q if last is None else q[last : last + 1], k, v]

    def _remember(self, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, place: Place) -> None:
        """Writes the rows' keys and values into the cache."""
        shape, start, end = self.shape, place.start, place.start + place.rows
        k = normed(k.reshape(place.rows, shape.groups, shape.head), self.k_norm, shape.epsilon)
        k = rotate(k, *place.tables[self.windowed], shape.family.interleaved)
        v = v.reshape(place.rows, shape.groups, shape.value)
        keys[:, start:end].assign(k.transpose(0, 1).cast(keys.dtype)).realize()
        values[:, start:end].assign(v.transpose(0, 1).cast(values.dtype)).realize()

    def _masked(self, scores: Tensor, start: sint, count: int) -> Tensor:
        """Scores without those of positions that a row may not see: later ones, and those before its window.

        Args:
          scores: shape (groups, heads of a group * rows, positions).
          start: position of the first row.
          count: of rows.
        """
        if count == 1 and not self.windowed:
            return scores
        device, end = scores.device, start + count
        rows = Tensor.arange(count, device=device).repeat(int(scores.shape[1]) // count)
        row = rows.unsqueeze(1) + start
        column = Tensor.arange(end, device=device).unsqueeze(0)
        seen = column <= row
        if self.windowed:
            seen = seen & (column > row - self.shape.window)
        return seen.where(scores, -math.inf)


class Layer:
    """Attention, then a gated feed-forward part; each with a norm before it, in some families behind it too."""

    def __init__(self, weights: Weights, shape: Description, layer: int) -> None:
        name, width = f"blk.{layer}.", shape.width
        self.shape = shape
        self.attention = Attention(weights, shape, layer)
        self.attention_norm = weights(f"{name}attn_norm.weight", width)
        self.norm = weights(f"{name}ffn_norm.weight", width)
        self.after_attention = weights.maybe(f"{name}post_attention_norm.weight", width)
        self.after = weights.maybe(f"{name}post_ffw_norm.weight", width)
        gate_up = (Product(weights, f"{name}ffn_{part}", shape.inner, width) for part in ("gate", "up"))
        self.gate_up = Products(weights, *gate_up)
        self.down = Products(weights, Product(weights, f"{name}ffn_down", width, shape.inner))

    def __call__(self, x: Tensor, keys: Tensor, values: Tensor, place: Place, last: Variable | None = None) -> Tensor:
        """The rows, or the one of ``last`` alone."""
        epsilon = self.shape.epsilon
        mixed = self.attention(normed(x, self.attention_norm, epsilon), keys, values, place, last)
        x = x if last is None else x[last : last + 1]
        x = added(x, normed(mixed, self.after_attention, epsilon))
        y = normed(x, self.norm, epsilon)
        gate, up = self.gate_up(y)
        gated = gate.gelu(approximate="tanh") if self.shape.family.gelu else gate.silu()
        return added(x, normed(self.down(gated * up)[0], self.after, epsilon))


class Decoder:
    """A transformer and its cache.

    Args:
      shape: what it is like.
      tensors: of the file.
      positions: how many the cache holds.
      cache_dtype: of keys and values.
      device: where the tensors are.
      digits: weights, by name, whose products with one row are computed in integers.

    Raises:
      ValueError: if a tensor is missing or has another shape than the description wants.
    """

    def __init__(
        self, shape: Description, tensors: Mapping[str, Tensor], positions: int, cache_dtype: str, device: str,
        digits: Mapping[str, Digits] = {},
    ) -> None:  # fmt: skip
        weights = Weights(tensors, digits)
        self.shape, self.positions = shape, positions
        embedding = tensors.get("token_embd.weight")
        self.vocabulary = int(embedding.shape[0]) if embedding is not None and embedding.ndim == 2 else 0
        self.embedding = weights("token_embd.weight", self.vocabulary, shape.width)
        self.layers = [Layer(weights, shape, layer) for layer in range(shape.layers)]
        self.norm = weights("output_norm.weight", shape.width)
        name = "output" if "output.weight" in tensors else "token_embd"
        self.head = Products(weights, Product(weights, name, self.vocabulary, shape.width))
        slower = weights.maybe("rope_freqs.weight", shape.rotation.width // 2)
        by = None if slower is None else [float(str(value)) for value in slower.tolist()]
        whole = tables(shape.rotation, positions, by, device)
        self.tables = (whole, tables(shape.local_rotation, positions, None, device) if shape.window else whole)

        def cache(width: int) -> list[Tensor]:
            size = (shape.groups, positions, width)
            return [Tensor.empty(*size, dtype=cache_dtype, device=device) for _ in self.layers]  # read where written

        self.keys, self.values = cache(shape.head), cache(shape.value)

    def __call__(self, tokens: Tensor, start: Variable, last: Variable | None) -> Tensor:
        """Rows of tokens through all layers.

        Args:
          tokens: shape (rows,), whole numbers.
          start: the position of the first, bound.
          last: which row is wanted, bound; None if there is one.

        Returns:
          shape (1, width), of which :meth:`logits` makes the next token's.
        """
        rows = int(tokens.shape[0])
        parts = [(cos[start : start + rows], sin[start : start + rows]) for cos, sin in self.tables]
        place = Place(start, rows, (parts[0], parts[1]))
        x = self.embedding[tokens]
        if self.shape.family.scaled:
            x = x * self.shape.width**0.5
        for layer, keys, values in zip(self.layers[:-1], self.keys, self.values, strict=False):
            x = layer(x, keys, values, place)
        return self.layers[-1](x, self.keys[-1], self.values[-1], place, last)

    def logits(self, x: Tensor) -> Tensor:
        """Of what the layers made of a row: shape (1, width) to (1, vocabulary)."""
        return capped(self.head(normed(x, self.norm, self.shape.epsilon))[0], self.shape.logit_cap)
