"""Text to the toy's machine code."""

from __future__ import annotations

import re
import struct

from .encoding import encode
from .instructions import TOY

_REGISTER = re.compile(r"([vsm])(\d+)|(scc|exec)")


def assemble(text: str, base: int) -> bytes:
    """Machine code for an address.

    A line is a label with a colon, or an instruction: its name, operands after commas, ``#`` and an immediate; after a
    ``;`` follows a comment. A number among the operands is a literal, which is the immediate, too; one with ``f`` is a
    float of 32 bits. An immediate that is a label is its address.

    Raises:
      ValueError: if a line is no instruction.

    Example:
      >>> assemble("again: s_branch #again", 0x100)[4:].hex()
      '0001000000000000'
    """
    for final in (False, True):
        labels: dict[str, int] = {} if not final else labels  # noqa: F821
        out = bytearray()
        for line in text.splitlines():
            code = line.partition(";")[0].strip()
            label = re.match(r"(\w+):", code)
            if label:
                labels[label[1]] = base + len(out)
                code = code[label.end() :].strip()
            if code:
                out += _instruction(code, labels if final else None)
    return bytes(out)


def _instruction(code: str, labels: dict[str, int] | None) -> bytes:
    code, _, tail = code.partition("#")
    name, _, rest = code.strip().partition(" ")
    if name not in TOY.handlers:
        raise ValueError(f"there is no instruction {name}")
    immediate = _number(tail.strip(), labels) if tail else None
    operands: list[tuple[str, int]] = []
    for word in (part.strip() for part in rest.split(",") if part.strip()):
        register = _REGISTER.fullmatch(word)
        if register:
            operands.append((register[3], 0) if register[3] else (register[1], int(register[2])))
            continue
        if immediate is not None:
            raise ValueError(f"{code}: an instruction has one immediate")
        immediate = _number(word, labels)
        operands.append(("literal", 0))
    return encode(name, operands, immediate)


def _number(word: str, labels: dict[str, int] | None) -> int:
    if re.fullmatch(r"[A-Za-z_]\w*", word):
        if labels is None:
            return 0
        if word not in labels:
            raise ValueError(f"there is no label {word}")
        return labels[word]
    if word.endswith("f") and not word.startswith("0x"):
        return int.from_bytes(struct.pack("<f", float(word[:-1])), "little")
    return int(word, 0)
