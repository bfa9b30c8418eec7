"""Instructions of lanes as their assembly says them: operands and modifiers read apart from the decoder's user."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

_REGISTER = re.compile(r"([vsa]|ttmp)\[?(\d+)(?::\d+\])?(?:\.([lh]))?")
_SUFFIX = re.compile(r"_(e32|e64|dpp|sdwa|e64_dpp)$")
_NAMED = {"vcc": ("s", 106), "vcc_lo": ("s", 106), "vcc_hi": ("s", 107), "exec": ("exec", 0), "exec_lo": ("exec", 0),
          "exec_hi": ("exec", 1), "m0": ("m0", 0), "null": ("null", 0)}  # fmt: skip
_FLOAT = {16: "<e", 32: "<f", 64: "<d"}


@dataclass(frozen=True)
class Operand:
    """An operand.

    Attributes:
      bank: ``v``, ``a``, ``s``, ``exec``, ``m0``, ``null``, or ``constant``.
      number: of the register.
      text: of a constant.
      high: whether the high half of a register is meant.
      negated: its sign is changed.
      absolute: its sign is taken away first.
      extended: its sign is extended.
    """

    bank: str
    number: int = 0
    text: str = ""
    high: bool = False
    negated: bool = False
    absolute: bool = False
    extended: bool = False

    def constant(self, bits: int, is_float: bool) -> int:
        """The bits of a constant as an operand of so many bits."""
        ones = (1 << bits) - 1
        literal = self.text.startswith(("0x", "lit("))
        if literal:
            value = int(self.text.removeprefix("lit(").removesuffix(")"), 16)
            return value << 32 if bits == 64 and is_float else value & ones if bits >= 32 else value
        if re.fullmatch(r"-?\d+", self.text):
            return int(self.text) & ones
        return int.from_bytes(struct.pack(_FLOAT[bits], float(self.text)), "little")


@dataclass
class Assembly:
    """One instruction.

    Attributes:
      name: the mnemonic without a suffix for the encoding.
      operands: in order.
      modifiers: by name; a list of numbers, or the text behind the colon.
    """

    name: str
    operands: list[Operand]
    modifiers: dict[str, str] = field(default_factory=dict)

    def bits(self, name: str, index: int, default: int = 0) -> int:
        """One of a list of bits, as of ``op_sel``."""
        if name not in self.modifiers:
            return default
        numbers = self.modifiers[name].strip("[]").split(",")
        return int(numbers[index]) if index < len(numbers) else default

    def part(self, name: str) -> str:
        """What of SDWA is selected."""
        return self.modifiers.get(name, "DWORD")


def parse(text: str) -> Assembly:
    """Reads an instruction.

    >>> parse("v_add_f16_e64 v5.h, |v3.l|, -v4.h clamp").operands[1]
    Operand(bank='v', number=3, text='', high=False, negated=False, absolute=True, extended=False)
    >>> parse("v_add_f32_e64 v5, -lit(0x10), v4").operands[1]
    Operand(bank='constant', number=0, text='lit(0x10)', high=False, negated=True, absolute=False, extended=False)
    """
    name, _, rest = text.partition(" ")
    parts = rest.split(", ")
    last, *words = parts[-1].split(" ")
    parts[-1] = last
    modifiers = {}
    for word in words:
        key, _, value = word.partition(":")
        modifiers[key] = value
    while match := _SUFFIX.search(name):
        name = name[: match.start()]
    return Assembly(name, [_operand(part) for part in parts if part], modifiers)


def _operand(text: str) -> Operand:
    negated = absolute = extended = False
    if text.startswith("sext("):
        text, extended = text[5:-1], True
    if text.startswith("neg("):
        text, negated = text[4:-1], True
    if re.match(r"-[|vsanem]", text) or text.startswith(("-ttmp", "-lit(")):
        text, negated = text[1:], True
    if text.startswith("|"):
        text, absolute = text[1:-1], True
    if match := _REGISTER.fullmatch(text):
        bank, number = match[1], int(match[2])
        if bank == "ttmp":
            bank, number = "s", number + 108
        return Operand(bank, number, "", match[3] == "h", negated, absolute, extended)
    if text in _NAMED:
        bank, number = _NAMED[text]
        return Operand(bank, number, "", False, negated, absolute, extended)
    return Operand("constant", 0, text, False, negated, absolute, extended)
