"""Tokenizers as GGUF files describe them: texts to numbers of tokens and back, whole or as they come."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence

from .bytepairs import BytePairs
from .sentencepiece import SentencePiece

_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = range(1, 7)
_KEY = "tokenizer.ggml."
_MODELS = {"gpt2": "byte-level byte pairs", "llama": "SentencePiece"}
_ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<end_of_turn>", "<eos>",
    "</s>", "<|eot|>", "<EOT>",
)  # fmt: skip
"""Texts of control tokens that end an answer, whether or not the metadata say so; llama.cpp treats them alike."""


def _field(metadata: Mapping[str, object], name: str, kind: type, required: bool = False) -> object:
    value = metadata.get(_KEY + name)
    if value is None:
        if required:
            raise ValueError(f"tokenizer: the metadata lack {_KEY}{name}")
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"tokenizer: {_KEY}{name} is {value!r:.60}, not of type {kind.__name__}")
    return value


def _listed(metadata: Mapping[str, object], name: str, kind: type, count: int | None) -> list[object] | None:
    """A list whose elements, and their number, are looked at."""
    found = _field(metadata, name, list)
    if found is None:
        return None
    assert isinstance(found, list)
    if count is not None and len(found) != count:
        raise ValueError(f"tokenizer: {_KEY}{name} has {len(found)} elements for {count} tokens")
    if not set(map(type, found)) <= {kind}:
        raise ValueError(f"tokenizer: {_KEY}{name} holds something else than {kind.__name__}")
    return found


class Tokenizer:
    """A tokenizer: byte-level byte pairs (GPT-2, Llama 3, Qwen, SmolLM) or SentencePiece (Llama 2, Mistral, Gemma).

    Attributes:
      tokens: the text of each token, as the file writes it.
      bos: the number of the token that begins a text, or None.
      eos: the number of the token that ends one, or None.
      ends: the numbers of all tokens that end an answer.
      special: numbers of control tokens and those that a model's authors added, by their text.

    Args:
      metadata: those of a GGUF file, the entries ``tokenizer.ggml.*``.

    Raises:
      ValueError: if there is no tokenizer, one of an unknown kind, or one whose parts do not fit together.

    Example:
      >>> from tg_frontend.text import Tokenizer
      >>> tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab", "\\u2581"]
      >>> tokenizer = Tokenizer({
      ...     "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens,
      ...     "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -3.0, -4.0, -1.0, -2.0],
      ...     "tokenizer.ggml.token_type": [2, 3, 3, 1, 1, 1, 1],
      ...     "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
      ... })
      >>> tokenizer.encode("ab b"), tokenizer.decode([1, 6, 5, 6, 4])
      ([1, 6, 5, 6, 4], 'ab b')
    """

    def __init__(self, metadata: Mapping[str, object]) -> None:
        model = _field(metadata, "model", str, required=True)
        if model not in _MODELS:
            known = ", ".join(f"{name!r} ({what})" for name, what in _MODELS.items())
            raise ValueError(f"tokenizer: {_KEY}model is {model!r}; known are {known}")
        _field(metadata, "tokens", list, required=True)
        found = _listed(metadata, "tokens", str, None) or []
        self.tokens = [str(token) for token in found]
        count = len(self.tokens)
        types = _listed(metadata, "token_type", int, count)
        kinds = [_NORMAL] * count if types is None else [int(str(kind)) for kind in types]
        self._kinds = kinds
        ids = {token: i for i, token in zip(range(count - 1, -1, -1), reversed(self.tokens), strict=True)}
        self.special = {
            token: i for i, (token, kind) in enumerate(zip(self.tokens, kinds, strict=True))
            if kind in (_CONTROL, _USER) and token
        }  # fmt: skip
        self.bos, self.eos = self._named(metadata, "bos"), self._named(metadata, "eos")
        unknown = self._named(metadata, "unknown")
        self._byte_ids = self._bytes(ids)
        self._spaced = False
        if model == "gpt2":
            merges = _listed(metadata, "merges", str, None)
            if merges is None:
                raise ValueError(f"tokenizer: the metadata lack {_KEY}merges")
            pre = _field(metadata, "pre", str) or "default"
            self._model: BytePairs | SentencePiece = BytePairs(ids, [str(merge) for merge in merges], str(pre), unknown)
        else:
            scores = _listed(metadata, "scores", float, count)
            if scores is None:
                raise ValueError(f"tokenizer: the metadata lack {_KEY}scores")
            usable = {token: i for token, i in ids.items() if kinds[i] in (_NORMAL, _USER)}
            byte_ids = [self._byte_ids[byte] for byte in range(256)] if len(self._byte_ids) == 256 else []
            self._model = SentencePiece(usable, [float(str(score)) for score in scores], byte_ids, unknown)
            self._spaced = _field(metadata, "add_space_prefix", bool) is not False
        begins = _field(metadata, "add_bos_token", bool)
        self._add_bos = self.bos is not None and (model == "llama" if begins is None else bool(begins))
        self._add_eos = self.eos is not None and bool(_field(metadata, "add_eos_token", bool))
        names = [self._named(metadata, name) for name in ("eos", "eot", "eom")]
        texts = [self.special.get(text) for text in _ENDS]
        self.ends = frozenset(i for i in (*names, *texts) if i is not None)
        self._data = [b""] * 0
        longest = sorted(self.special, key=len, reverse=True)
        self._any = re.compile("|".join(map(re.escape, longest)) or "(?!)")
        added = [token for token in longest if kinds[self.special[token]] == _USER]
        self._added = re.compile("|".join(map(re.escape, added)) or "(?!)")

    def __len__(self) -> int:
        return len(self.tokens)

    def _named(self, metadata: Mapping[str, object], name: str) -> int | None:
        found = _field(metadata, f"{name}_token_id", int)
        if found is None:
            return None
        assert isinstance(found, int)
        if not 0 <= found < len(self.tokens):
            raise ValueError(f"tokenizer: {_KEY}{name}_token_id is {found}; there are {len(self.tokens)} tokens")
        return found

    def _bytes(self, ids: Mapping[str, int]) -> dict[int, int]:
        """The tokens that stand for a byte."""
        found = {byte: ids.get(f"<0x{byte:02X}>") for byte in range(256)}
        return {byte: i for byte, i in found.items() if i is not None and self._kinds[i] == _BYTE}

    def encode(self, text: str, special: bool = False, ends: bool = True) -> list[int]:
        """Numbers of a text's tokens.

        Args:
          text: any text.
          special: whether control tokens that the text spells out are those tokens. A template's text wants that;
            what a stranger typed does not.
          ends: whether the tokens of beginning and end are added, where the tokenizer has them.

        Example:
          >>> from tg_frontend.text import Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> len(tokenizer.encode("a<|end|>")), len(tokenizer.encode("a<|end|>", special=True))
          (8, 2)
        """
        out = [self.bos] if ends and self._add_bos and self.bos is not None else []
        first = True
        place = 0
        for found in (self._any if special else self._added).finditer(text):
            out += self._plain(text[place : found.start()], first)
            out.append(self.special[found.group()])
            place, first = found.end(), True
        out += self._plain(text[place:], first)
        if ends and special and out[:2] == [self.bos, self.bos] and self._add_bos:
            del out[0]  # the template has written it
        if ends and self._add_eos and self.eos is not None:
            out.append(self.eos)
        return out

    def _plain(self, text: str, first: bool) -> list[int]:
        if not text:
            return []
        return self._model.encode(" " + text if first and self._spaced else text)

    def data(self, token: int) -> bytes:
        """The bytes that a token stands for; of a control token its text.

        Raises:
          IndexError: if there is no token of this number.

        Example:
          >>> from tg_frontend.text import Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> tokenizer.data(tokenizer.encode("é")[0])
          b'\\xc3'
        """
        if not 0 <= token < len(self.tokens):
            raise IndexError(f"tokenizer: token {token} of {len(self.tokens)}")
        kind, text = self._kinds[token], self.tokens[token]
        if kind == _BYTE:
            return bytes([int(text[3:5], 16)])
        if kind in (_CONTROL, _USER):
            return text.encode("utf-8", "replace")
        return self._model.data(text)

    def decode(self, tokens: Iterable[int], special: bool = False) -> str:
        """The text of tokens; bytes that are no UTF-8 become U+FFFD.

        Args:
          tokens: their numbers.
          special: whether control tokens are written out; they are left out else.

        Raises:
          IndexError: if there is no token of a number.

        Example:
          >>> from tg_frontend.text import Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> tokenizer.decode(tokenizer.encode("déjà vu"))
          'déjà vu'
        """
        stream = self.stream(special)
        return "".join([*map(stream.add, tokens), stream.end()])

    def stream(self, special: bool = False) -> TextStream:
        """What decodes an answer token by token.

        Args:
          special: whether control tokens are written out.

        Example:
          >>> from tg_frontend.text import Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> stream = tokenizer.stream(special=True)
          >>> stream.add(256)
          '<|end|>'
        """
        return TextStream(self, special)

    def is_control(self, token: int) -> bool:
        """Whether a token is no text.

        Example:
          >>> from tg_frontend.text import Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> tokenizer.is_control(256), tokenizer.is_control(65)
          (True, False)
        """
        return self._kinds[token] in (_CONTROL, _UNUSED) or (self._kinds[token] == _UNKNOWN and self._spaced)


class TextStream:
    """Text as its tokens come: a character whose bytes are in several tokens is given when it is whole.

    Args:
      tokenizer: whose tokens they are.
      special: whether control tokens are written out.

    Example:
      >>> from tg_frontend.text.bytepairs import ALPHABET
      >>> from tg_frontend.text import TextStream, Tokenizer
      >>> tokenizer = Tokenizer({
      ...     "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ALPHABET, "tokenizer.ggml.merges": [],
      ... })
      >>> stream = TextStream(tokenizer)
      >>> [stream.add(token) for token in tokenizer.encode("é!")]
      ['', 'é', '!']
    """

    def __init__(self, tokenizer: Tokenizer, special: bool = False) -> None:
        self._tokenizer, self._special = tokenizer, special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._first = tokenizer._spaced

    def add(self, token: int) -> str:
        """What can be said after a token.

        Raises:
          IndexError: if there is no token of this number.

        Example:
          >>> from tg_frontend.text import Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> stream = tokenizer.stream()
          >>> [stream.add(token) for token in tokenizer.encode("ü")]
          ['', 'ü']
        """
        data = self._tokenizer.data(token)
        if self._tokenizer.is_control(token) and not self._special:
            return ""
        text = self._decoder.decode(data)
        if self._first and text:
            self._first = False
            return text.removeprefix(" ")  # the one that encoding put before the text
        return text

    def end(self) -> str:
        """What is left when no token follows: U+FFFD if a character is not whole.

        Example:
          >>> from tg_frontend.text import Tokenizer
          >>> from tg_frontend.text.bytepairs import ALPHABET
          >>> fields = {"model": "gpt2", "tokens": [*ALPHABET, "<|end|>"], "token_type": [1] * 256 + [3], "merges": []}
          >>> tokenizer = Tokenizer({f"tokenizer.ggml.{name}": value for name, value in fields.items()})
          >>> stream = tokenizer.stream()
          >>> stream.add(tokenizer.encode("ü")[0]) + stream.end()
          '�'
        """
        return self._decoder.decode(b"", True)


def special_texts(tokenizer: Tokenizer, numbers: Sequence[int | None]) -> list[str]:
    """Texts of tokens, empty where there is none."""
    return ["" if number is None else tokenizer.tokens[number] for number in numbers]
