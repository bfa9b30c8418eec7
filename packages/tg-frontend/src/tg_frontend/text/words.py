"""Words as tokenizers of byte pairs cut them: no token crosses the border of a word.

A tokenizer's cut is named by ``tokenizer.ggml.pre`` in a GGUF file. The patterns are those of the ``tokenizer.json`` of
the models; names are those that llama.cpp's converter writes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from .characters import LETTERS as L
from .characters import LOWER, MARK, OTHER, UPPER, classes
from .characters import NUMBERS as N
from .characters import SPACES as S

_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{L}]+| ?[{N}]+| ?[^{S}{L}{N}]+|[{S}]+(?![^{S}])|[{S}]+"
_DIGIT = rf"[{N}]|[^{N}]+"
_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BLANKS = rf"[{S}]*[\r\n]+|[{S}]+(?![^{S}])|[{S}]+"
_BIG, _SMALL = f"A-Z{UPPER}{OTHER}{MARK}", f"a-z{LOWER}{OTHER}{MARK}ſ"


def _llama3(digits: str) -> str:
    return rf"{_ENGLISH}|[^\r\n{L}{N}]?[{L}]+|[{N}]{digits}| ?[^{S}{L}{N}]+[\r\n]*|{_BLANKS}"


def _cased(before: str, after: str, digits: str) -> str:
    """Words that end where a capital follows a small letter."""
    lead = rf"{before}[^\r\n{L}{N}]?"
    return (
        rf"{lead}[{_BIG}]*[{_SMALL}]+{after}|{lead}[{_BIG}]+[{_SMALL}]*{after}"
        rf"|[{N}]{digits}| ?[^{S}{L}{N}]+[\r\n/]*|{_BLANKS}"
    )


@dataclass(frozen=True)
class Cut:
    """How a text is cut into words.

    Attributes:
      patterns: each cuts what the one before it left.
      whole: whether a word that is a token is taken as it is, whatever its pairs would merge to.
      composed: whether the text is normalised (NFC) first.
    """

    patterns: tuple[re.Pattern[str], ...]
    whole: bool = False
    composed: bool = False

    def words(self, text: str) -> Iterator[str]:
        """The words in order; together they are the (normalised) text."""
        if self.composed:
            text = unicodedata.normalize("NFC", text)
        known = classes(text)
        for begin, end in self._spans(known, 0, len(known), 0):
            yield text[begin:end]

    def _spans(self, known: str, begin: int, end: int, depth: int) -> Iterator[tuple[int, int]]:
        if depth == len(self.patterns):
            yield begin, end
            return
        # A pattern may look at what follows; it ends where the piece ends.
        for found in self.patterns[depth].finditer(known[begin:end]):
            yield from self._spans(known, begin + found.start(), begin + found.end(), depth + 1)


def _cut(*patterns: str, whole: bool = False, composed: bool = False) -> Cut:
    return Cut(tuple(re.compile(pattern) for pattern in patterns), whole, composed)


_FAMILIES: dict[tuple[str, ...], tuple[tuple[str, ...], bool, bool]] = {
    ("default", "gpt-2", "gpt2", "phi-2", "jina-es", "jina-de", "mpt", "olmo"): ((_GPT2,), False, False),
    ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"): ((_DIGIT, _GPT2), False, False),
    ("llama-bpe", "llama3", "llama-v3", "falcon3"): ((_llama3("{1,3}"),), True, False),
    ("smaug-bpe", "dbrx"): ((_llama3("{1,3}"),), False, False),
    ("qwen2", "deepseek-r1-qwen", "stablelm2"): ((_llama3("{1}"),), False, True),
    ("tekken",): ((_cased("", "", "{1}"),), True, False),
    ("gpt-4o", "llama4"): ((_cased("", _ENGLISH + "?", "{1,3}"),), False, False),
}


def cut(name: str) -> Cut:
    """The cut of a name.

    Raises:
      ValueError: if there is none; the message lists those that are known.
    """
    for names, (patterns, whole, composed) in _FAMILIES.items():
        if name in names:
            return _cut(*patterns, whole=whole, composed=composed)
    known = ", ".join(sorted(known for names in _FAMILIES for known in names))
    raise ValueError(f"tokenizer: tokenizer.ggml.pre is {name!r}, which is not known; known are {known}")
