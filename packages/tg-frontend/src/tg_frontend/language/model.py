"""A language model that is loaded from a file and asked for tokens."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from tg_dtype import dtypes
from tg_runtime import Device
from tg_shape import Variable

from ..files.gguf.digits import Digits
from ..files.gguf.reading import Entry, read
from ..jit.tinyjit import TinyJit
from ..tensor import Tensor
from ..text import Tokenizer
from .decoder import Decoder
from .description import describe
from .sampling import Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sampling import Floats

_ROWS = ((1024, 897), (256, 128), (32, 3))
"""How many tokens of a prompt go through the layers at once, besides single ones, and of how many at the least.

Weights are unpacked once for all of them. The more there are, the fewer of them may be there to fill them up.
"""


def _common(first: list[int], second: list[int]) -> int:
    """With how many equal elements two lists begin."""
    count = min(len(first), len(second))
    if first[:count] == second[:count]:  # as for each token of an answer: thousands are compared at once
        return count
    return next(i for i, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)


class LanguageModel:
    """A transformer with its cache of keys and values.

    The cache remembers which tokens it holds: what a new prompt has in common with them from the beginning on is not
    computed again. A step is recorded by ``TinyJit`` for each number of rows (1, 32, 256, 1024), with the position as a
    variable.

    Attributes:
      description: what the metadata say of the transformer.
      context: how many positions the cache holds.
      tokens: those that it holds now.
      vocabulary: how many tokens there are.

    Args:
      metadata: of a GGUF file.
      tensors: of the file.
      context: how many positions the cache gets; if not given what the model was trained for, but at most 4096.
      cache_dtype: of keys and values: ``float16`` or ``float32``.
      device: where it is computed.
      digits: weights, by name, whose products with single rows are computed in integers; see :func:`load`.

    Raises:
      ValueError: if the architecture is not known, metadata or tensors are missing or do not fit together, or the
        context is longer than what the model was trained for.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.language import LanguageModel
      >>> sizes = {"block_count": 1, "embedding_length": 4, "feed_forward_length": 8, "context_length": 16}
      >>> metadata = {f"llama.{name}": size for name, size in sizes.items()}
      >>> metadata |= {"general.architecture": "llama", "llama.attention.head_count": 2}
      >>> shapes = {"attn_q": (4, 4), "attn_k": (4, 4), "attn_v": (4, 4), "attn_output": (4, 4), "attn_norm": (4,),
      ...           "ffn_gate": (8, 4), "ffn_up": (8, 4), "ffn_down": (4, 8), "ffn_norm": (4,)}
      >>> tensors = {f"blk.0.{name}.weight": Tensor.ones(*shape) for name, shape in shapes.items()}
      >>> tensors |= {"token_embd.weight": Tensor.eye(5, 4), "output_norm.weight": Tensor.ones(4)}
      >>> model = LanguageModel(metadata, tensors)
      >>> model.logits([1, 2, 3]).shape, model.tokens
      ((5,), [1, 2, 3])
    """

    def __init__(
        self,
        metadata: Mapping[str, object],
        tensors: Mapping[str, Tensor],
        context: int | None = None,
        cache_dtype: str = "float16",
        device: str | None = None,
        digits: Mapping[str, Digits] = {},
    ) -> None:
        self.description = describe(metadata)
        longest = self.description.context
        self.context = min(longest, 4096) if context is None else context
        if not 1 <= self.context <= longest:
            raise ValueError(f"language model: a context of {context} positions; the model is made for 1 to {longest}")
        if cache_dtype not in ("float16", "float32"):
            raise ValueError(f"language model: cache_dtype is {cache_dtype!r}, neither float16 nor float32")
        self._device = Device.canonicalize(device)
        with Tensor.no_grad():
            self._decoder = Decoder(self.description, tensors, self.context, cache_dtype, self._device, digits)
        self.vocabulary = self._decoder.vocabulary
        self.tokens: list[int] = []
        self._steps: dict[int, TinyJit[..., Tensor]] = {}
        decoder = self._decoder
        self._head = TinyJit(lambda row: decoder.logits(row).realize())

    def logits(self, tokens: Sequence[int]) -> Floats:
        """What the model says of the token after these.

        Args:
          tokens: from the beginning on.

        Returns:
          An array of float32, shape (vocabulary,).

        Raises:
          ValueError: if there are none, more than the context has room for, or one that the vocabulary has not.

        Example:
          >>> from tg_frontend import Tensor
          >>> from tg_frontend.language import LanguageModel
          >>> sizes = {"block_count": 1, "embedding_length": 4, "feed_forward_length": 8, "context_length": 16}
          >>> metadata = {f"llama.{name}": size for name, size in sizes.items()}
          >>> metadata |= {"general.architecture": "llama", "llama.attention.head_count": 1}
          >>> names = ("attn_q", "attn_k", "attn_v", "attn_output")
          >>> shapes = {**dict.fromkeys(names, (4, 4)), "ffn_gate": (8, 4), "ffn_up": (8, 4), "ffn_down": (4, 8)}
          >>> shapes |= {"attn_norm": (4,), "ffn_norm": (4,)}
          >>> tensors = {f"blk.0.{name}.weight": Tensor.ones(*shape) for name, shape in shapes.items()}
          >>> tensors |= {"token_embd.weight": Tensor.eye(5, 4), "output_norm.weight": Tensor.ones(4)}
          >>> model = LanguageModel(metadata, tensors)
          >>> model.logits([1, 2]).shape, model.tokens
          ((5,), [1, 2])
        """
        found = list(tokens)
        if not found:
            raise ValueError("language model: there is no token to go on from")
        if len(found) > self.context:
            raise ValueError(f"language model: {len(found)} tokens; the context has {self.context} positions")
        same = _common(found, self.tokens)
        wrong = next((token for token in found[same:] if not 0 <= token < self.vocabulary), None)
        if wrong is not None:
            raise ValueError(f"language model: token {wrong}; the vocabulary has {self.vocabulary}")
        place = min(same, len(found) - 1)
        del self.tokens[place:]
        out: Tensor | None = None
        rows = 1
        while place < len(found):
            rows, count = self._piece(place, len(found) - place)
            part = found[place : place + count]
            out = self._step(rows, part, place)
            self.tokens += part
            place += count
        assert out is not None
        if rows > 1:
            with Tensor.no_grad():
                out = self._head(out)
        result: Floats = out.numpy()[0]
        return result

    def _piece(self, place: int, left: int) -> tuple[int, int]:
        """How many rows are computed next, and how many of them are tokens: the last piece may be filled up."""
        for rows, least in _ROWS:
            if left >= least and place + rows <= self.context:
                return rows, min(rows, left)
        return 1, 1

    def _step(self, rows: int, part: list[int], place: int) -> Tensor:
        """One token to logits, or several to the last one's row, of which the head makes logits if they are wanted."""
        step = self._steps.get(rows)
        if step is None:
            decoder = self._decoder

            def one(tokens: Tensor, start: Variable) -> Tensor:
                return decoder.logits(decoder(tokens, start, None)).realize()

            def several(tokens: Tensor, start: Variable, last: Variable) -> Tensor:
                return decoder(tokens, start, last).realize()

            step = self._steps[rows] = TinyJit(several if rows > 1 else one)
        start = Variable("start", 0, max(self.context - rows, 1)).bind(place)
        last = () if rows == 1 else (Variable("last", 0, rows - 1).bind(len(part) - 1),)
        filled = Tensor(part + [0] * (rows - len(part)), dtype=dtypes.int32, device=self._device).realize()
        with Tensor.no_grad():
            return step(filled, start, *last)

    def generate(
        self,
        tokens: Sequence[int],
        sampler: Sampler | None = None,
        limit: int | None = None,
        ends: frozenset[int] = frozenset(),
    ) -> Iterator[int]:
        """Tokens that go on from these, one by one, until one ends the answer or the context is full.

        Args:
          tokens: from the beginning on.
          sampler: chooses; the likeliest token if not given.
          limit: how many at most.
          ends: tokens that end the answer, as :attr:`Tokenizer.ends`; they are not given.

        Raises:
          ValueError: as for :meth:`logits`; and as for ``Sampler.choose``.

        Example:
          >>> from tg_frontend import Tensor
          >>> from tg_frontend.language import LanguageModel
          >>> sizes = {"block_count": 1, "embedding_length": 4, "feed_forward_length": 8, "context_length": 16}
          >>> metadata = {f"llama.{name}": size for name, size in sizes.items()}
          >>> metadata |= {"general.architecture": "llama", "llama.attention.head_count": 1}
          >>> names = ("attn_q", "attn_k", "attn_v", "attn_output")
          >>> shapes = {**dict.fromkeys(names, (4, 4)), "ffn_gate": (8, 4), "ffn_up": (8, 4), "ffn_down": (4, 8)}
          >>> shapes |= {"attn_norm": (4,), "ffn_norm": (4,)}
          >>> tensors = {f"blk.0.{name}.weight": Tensor.ones(*shape) for name, shape in shapes.items()}
          >>> tensors |= {"token_embd.weight": Tensor.eye(5, 4), "output_norm.weight": Tensor.ones(4)}
          >>> model = LanguageModel(metadata, tensors)
          >>> len(list(model.generate([1, 2], limit=3)))
          3
        """
        choose = (sampler or Sampler()).choose
        found = list(tokens)
        left = self.context if limit is None else limit
        while left > 0:
            token = choose(self.logits(found), found)
            if token in ends:
                return
            yield token
            found.append(token)
            left -= 1
            if len(found) >= self.context:
                return


class _Tensors(Mapping[str, Tensor]):
    """The tensors of a file, each made when it is asked for."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries

    def __getitem__(self, name: str) -> Tensor:
        return self._entries[name].tensor

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def load(
    source: str | os.PathLike[str], context: int | None = None, cache_dtype: str = "float16",
    device: str | None = None, activations: str = "float32",
) -> tuple[LanguageModel, Tokenizer, dict[str, object]]:  # fmt: skip
    """A model, its tokenizer and the metadata of a GGUF file.

    Args:
      source: the file.
      context: see :class:`LanguageModel`.
      cache_dtype: likewise.
      device: likewise.
      activations: what rows are multiplied with weights as. ``float32``; or ``int16``: rounded to 16 bits in runs of 16
        or 32, each with a scale of its own, the products being summed in integers (of prompts only where the device has
        instructions that multiply integers, else they are float32). Where the processor has AVX-512 VNNI, tokens come
        two to three times as fast, and more slowly elsewhere; the likeliest token is another one for less than one
        token in a hundred. Weights of the quantisations Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K are kept a
        second time for it, in another order; all others are multiplied as float32 is.

    Raises:
      ValueError: if ``activations`` is something else, the file is damaged, or holds no model or tokenizer that is
        known here.
      OSError: if it cannot be read.

    Example:
      >>> import os, tempfile
      >>> from tg_frontend import Tensor, nn
      >>> from tg_frontend.language import load
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "t.gguf")
      ...     nn.state.gguf_save({"t": Tensor([1.0])}, path, {"general.architecture": "bert"}, "F16")
      ...     try:
      ...         load(path)
      ...     except ValueError as error:
      ...         print(str(error)[:54])
      language model: general.architecture is 'bert'; known
    """
    if activations not in ("float32", "int16"):
        raise ValueError(f"language model: activations is {activations!r}, neither float32 nor int16")
    metadata, entries = read(source, device)
    plain: dict[str, object] = dict(metadata)
    describe(plain)  # before the tokenizer: another kind of file is told first
    tokenizer = Tokenizer(plain)
    tensors = _Tensors(entries)
    whole = entries.items() if activations == "int16" else ()
    digits = {name: found for name, entry in whole if (found := entry.digits) is not None}
    model = LanguageModel(plain, tensors, context, cache_dtype, device, digits)
    if len(tokenizer) != model.vocabulary:
        raise ValueError(f"language model: {len(tokenizer)} tokens of the tokenizer, {model.vocabulary} of the model")
    return model, tokenizer, plain
