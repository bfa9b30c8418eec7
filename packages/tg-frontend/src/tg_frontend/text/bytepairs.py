"""Byte-level byte-pair encoding, as GPT-2, Llama 3, Qwen and SmolLM have it.

Every byte is written as a printable character; a vocabulary of such texts has a token for every byte, so that any text
can be encoded. Source: Sennrich et al. 2016, "Neural machine translation of rare words with subword units", and Radford
et al. 2019, "Language models are unsupervised multitask learners".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .merging import merged
from .words import cut

_MOST_WORDS = 1 << 15


def _alphabet() -> list[str]:
    """For each byte its character: itself where it is printable, else the next one from U+0100 on."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in shown else next(others)) for byte in range(256)]


ALPHABET = _alphabet()
_WRITTEN = dict(enumerate(ALPHABET))
_READ = {char: byte for byte, char in enumerate(ALPHABET)}


class BytePairs:
    """Tokens of texts without special tokens.

    Args:
      ids: the number of each token's text.
      merges: pairs, each two texts with a space between, in the order in which they are merged.
      pre: the name of the cut into words.
      unknown: the token of a byte that has none.

    Raises:
      ValueError: if the cut is not known, or the vocabulary has a token for no byte at all.
    """

    def __init__(self, ids: Mapping[str, int], merges: Sequence[str], pre: str, unknown: int | None = None) -> None:
        self.ids, self.cut, self.unknown = ids, cut(pre), unknown
        if not any(char in ids for char in ALPHABET):
            raise ValueError("tokenizer: the vocabulary has no token for any byte")
        self.ranks = dict(zip(merges, range(len(merges)), strict=True))
        self._seen: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Numbers of the tokens.

        Raises:
          ValueError: if a byte has no token, and there is none for what is unknown.
        """
        out: list[int] = []
        for word in self.cut.words(text):
            found = self._seen.get(word)
            if found is None:
                found = self._word(word)
                if len(self._seen) < _MOST_WORDS:
                    self._seen[word] = found
            out += found
        return out

    def _word(self, word: str) -> list[int]:
        written = word.encode("utf-8", "replace").decode("latin-1").translate(_WRITTEN)
        if self.cut.whole and written in self.ids:
            return [self.ids[written]]
        out = []
        for piece in merged(list(written), lambda left, right: self.ranks.get(f"{left} {right}")):
            # a merge whose result is no token leaves its bytes
            out += [self.ids[piece]] if piece in self.ids else [self._byte(char) for char in piece]
        return out

    def _byte(self, char: str) -> int:
        found = self.ids.get(char, self.unknown)
        if found is None:
            raise ValueError(f"tokenizer: there is no token for the byte {_READ[char]}, nor for what is unknown")
        return found

    @staticmethod
    def data(token: str) -> bytes:
        """The bytes that a token stands for."""
        out = bytearray()
        for char in token:
            byte = _READ.get(char)
            out += char.encode("utf-8") if byte is None else bytes([byte])
        return bytes(out)
