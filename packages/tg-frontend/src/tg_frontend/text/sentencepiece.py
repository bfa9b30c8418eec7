"""SentencePiece's byte-pair encoding by scores, as Llama 2, Mistral and Gemma have it.

Source: Kudo and Richardson 2018, "SentencePiece: a simple and language independent subword tokenizer".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .merging import merged

SPACE = "\u2581"
"""How a space is written."""


class SentencePiece:
    """Tokens of texts without special tokens.

    Args:
      ids: the number of each token's text.
      scores: of each number: of two merges the one with the higher score is done first.
      byte_ids: the tokens of bytes, of which characters consist that are no token; may be empty.
      unknown: the token of what cannot be written otherwise.
    """

    def __init__(
        self, ids: Mapping[str, int], scores: Sequence[float], byte_ids: Sequence[int], unknown: int | None
    ) -> None:
        self.ids, self.scores, self.byte_ids, self.unknown = ids, scores, byte_ids, unknown

    def encode(self, text: str) -> list[int]:
        """Numbers of the tokens.

        Raises:
          ValueError: if a character is no token, and there are neither tokens of bytes nor an unknown one.
        """
        out: list[int] = []
        for piece in merged(list(text.replace(" ", SPACE)), self._order):
            if piece in self.ids:
                out.append(self.ids[piece])
            elif self.byte_ids:
                out += [self.byte_ids[byte] for byte in piece.encode("utf-8", "replace")]
            elif self.unknown is not None:
                out.append(self.unknown)
            else:
                raise ValueError(f"tokenizer: {piece!r} is no token, and there is no token for what is unknown")
        return out

    def _order(self, left: str, right: str) -> float | None:
        found = self.ids.get(left + right)
        return None if found is None else -self.scores[found]

    @staticmethod
    def data(token: str) -> bytes:
        """The bytes that a token stands for."""
        return token.replace(SPACE, " ").encode("utf-8", "replace")
