"""Texts with one character for every class of Unicode, so that Python's ``re`` can tell letters from numbers.

The patterns of tokenizers speak of classes, such as ``\\p{L}``, that ``re`` does not have. Here every character outside
of ASCII is replaced by one that stands for its class; places stay what they are, and a pattern over the result finds
the words of the text itself.
"""

from __future__ import annotations

import unicodedata

UPPER, LOWER, OTHER, MARK, NUMBER, SPACE, REST = "À", "à", "ª", "\u0300", "²", "\u2003", "¿"
"""What stands for capitals (and title case), small letters, other letters (and modifiers), marks, numbers, white space
and everything else."""

LONG_S = "ſ"
"""Stands for itself: patterns that ignore case take it for an s."""

LETTERS = f"A-Za-z{UPPER}{LOWER}{OTHER}{LONG_S}"
"""``\\p{L}`` between brackets."""
NUMBERS = f"0-9{NUMBER}"
"""``\\p{N}`` between brackets."""
SPACES = f" \t\n\x0b\x0c\r{SPACE}"
"""``\\s`` between brackets: Unicode's white space. Python counts four separators more."""

_KINDS = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": OTHER, "Lo": OTHER}
_WIDE_SPACES = "\x85\u1680\u2028\u2029\u202f\u205f\u3000\xa0"


class _Classes(dict[int, str]):
    """The table that ``str.translate`` asks; what is asked once is remembered."""

    def __missing__(self, code: int) -> str:
        self[code] = out = _class(chr(code))
        return out


def _class(char: str) -> str:
    if char < "\x80" or char == LONG_S:
        return char
    if char in _WIDE_SPACES or "\u2000" <= char <= "\u200a":
        return SPACE
    kind = unicodedata.category(char)
    return _KINDS.get(kind) or {"M": MARK, "N": NUMBER}.get(kind[0], REST)


_CLASSES = _Classes()


def classes(text: str) -> str:
    """The text with a class for each character; as long as the text.

    Example:
      >>> classes("Größe 3½")
      'Grààe 3²'
    """
    return text.translate(_CLASSES)
