"""A parser of PTX text: the subset that compilers emit. It knows no instruction; that is for those who read its output.

Source: NVIDIA, *Parallel Thread Execution ISA*, chapters "Syntax" and "State Spaces, Types, and Variables".

Example:
  >>> module = parse(".version 7.0 .target sm_80 .address_size 64 .visible .entry k(.param .u64 p) { ret; }")
  >>> module.functions["k"].params[0].nbytes
  8
"""

from __future__ import annotations

import re
import struct

from .syntax import (
    Address,
    Function,
    Group,
    Immediate,
    Instruction,
    Label,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"[^"]*")
    |(?P<float>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
    |(?P<dot>\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)
    |(?P<name>[%$A-Za-z_][A-Za-z0-9_$]*)
    |(?P<mark>[][(){}<>,;:@!|+=*-])""",
    re.VERBOSE | re.DOTALL,
)
_SPACES = frozenset({"param", "global", "const", "shared", "local"})
_LINKAGE = frozenset({"visible", "extern", "weak", "common"})
_BY_AXIS = frozenset({"maxntid", "reqntid", "minnctapersm", "maxnctapersm", "maxnreg", "reqnctapercluster"})


class PTXSyntaxError(ValueError):
    """The text is not PTX that this parser knows; the message says where."""


def type_bytes(name: str) -> int:
    """The size of a fundamental type, ``u8`` or ``f16x2``.

    >>> type_bytes("u8"), type_bytes("f16x2"), type_bytes("b64")
    (1, 4, 8)
    """
    if name == "pred":
        return 1
    number, _, lanes = name.lstrip("subfe").partition("x")
    digits = re.match(r"\d+", number)
    if digits is None:
        raise PTXSyntaxError(f"PTX: .{name} is no type")
    return int(digits[0]) * int(lanes or 1) // 8


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise PTXSyntaxError(f"PTX line {line}: {text[at : at + 20]!r} is not understood")
            if match.lastgroup != "skip":
                self.tokens.append((match.lastgroup, match[0], line))
            line += match[0].count("\n")
            at = match.end()
        self.tokens.append(("end", "", line))
        self.at = 0
        self.module = Module()
        self.scopes: list[dict[str, str]] = []
        self.blocks = 0
        self.registers: dict[str, str] = {}  # of the function that is being read

    # tokens

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def text(self) -> str:
        return self.tokens[self.at][1]

    @property
    def line(self) -> int:
        return self.tokens[self.at][2]

    def take(self) -> str:
        found = self.text
        self.at += 1
        return found

    def accept(self, text: str) -> bool:
        if self.text != text or self.kind == "string":
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise PTXSyntaxError(f"PTX line {self.line}: {self.text!r} where {text!r} is expected")

    def name(self) -> str:
        if self.kind != "name":
            raise PTXSyntaxError(f"PTX line {self.line}: {self.text!r} where a name is expected")
        return self.take()

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if self.kind != "int":
            raise PTXSyntaxError(f"PTX line {self.line}: {self.text!r} where an integer is expected")
        return sign * _int(self.take())

    def skip_statement(self) -> None:
        """Past the next semicolon, or past a block in braces."""
        depth = 0
        while self.kind != "end":
            text = self.take()
            depth += (text == "{") - (text == "}")
            if depth == 0 and text in (";", "}"):
                return

    # modules

    def parse(self) -> Module:
        while self.kind != "end":
            self.top()
        return self.module

    def top(self) -> None:
        word = self.take()[1:] if self.kind == "dot" else ""
        while word in _LINKAGE:
            word = self.take()[1:]
        if word == "version":
            self.module.version = self.take()
        elif word == "target":
            names = [self.name()]
            while self.accept(","):
                names.append(self.name())
            self.module.target = names[0]
        elif word == "address_size":
            if self.integer() != 64:
                raise PTXSyntaxError(f"PTX line {self.line}: only addresses of 64 bits are known")
        elif word in ("entry", "func"):
            self.function(word == "entry")
        elif word in _SPACES:
            variable = self.variable(word)
            self.module.variables[variable.name] = variable
            self.expect(";")
        elif word in ("file", "loc"):
            line = self.line
            while self.line == line and self.kind != "end":
                self.at += 1
        elif word in ("pragma", "alias"):
            self.skip_statement()
        elif word == "section":
            self.name() if self.kind == "name" else self.take()
            self.skip_statement()
        else:
            raise PTXSyntaxError(f"PTX line {self.line}: {(word or self.text)!r} is not known here")

    def variable(self, space: str) -> Variable:
        """A declaration after the name of its space."""
        align, kind, lanes, pointee = 0, "", 1, False
        while self.kind == "dot":
            word = self.take()[1:]
            if word == "align":
                number = self.integer()
                align = align if pointee else number
            elif word in ("v2", "v4"):
                lanes = int(word[1:])
            elif word in ("ptr", *_SPACES):
                pointee = True  # an alignment after it is that of what the parameter points to
            else:
                kind = word
        name = self.name()
        size = type_bytes(kind) * lanes
        count = 1
        while self.accept("["):
            count *= 0 if self.text == "]" else self.integer()
            self.expect("]")
        initial = self.initial(size) if self.accept("=") else None
        if initial is not None and count == 0:
            count = len(initial) // size
        return Variable(name, space, kind, size * count, align or size, initial)

    def initial(self, size: int) -> bytes:
        if self.accept("{"):
            found = b""
            while not self.accept("}"):
                found += self.initial(size)
                self.accept(",")
            return found
        operand = self.operand()
        if not isinstance(operand, Immediate):
            raise PTXSyntaxError(f"PTX line {self.line}: only numbers can initialise a variable")
        return (operand.value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def parameters(self) -> list[Variable]:
        found: list[Variable] = []
        self.expect("(")
        while not self.accept(")"):
            word = self.take()
            if word == ".reg":
                raise PTXSyntaxError(f"PTX line {self.line}: parameters in registers are not known")
            found.append(self.variable(word[1:]))
            self.accept(",")
        return found

    def function(self, entry: bool) -> None:
        returns = self.parameters() if not entry and self.text == "(" else []
        function = Function(self.name(), entry, [], returns)
        if self.text == "(":
            function.params = self.parameters()
        while self.kind == "dot":
            word = self.take()[1:]
            numbers = []
            if word in _BY_AXIS:
                numbers = [self.integer()]
                while self.accept(","):
                    numbers.append(self.integer())
            if word in ("maxntid", "reqntid"):
                x, y, z = (*numbers, 1, 1)[:3]
                function.max_threads = (x, y, z)
        if not self.accept(";"):
            function.body = []
            self.registers = function.registers
            self.expect("{")
            self.block(function)
        known = self.module.functions.get(function.name)
        if known is None or known.body is None:
            self.module.functions[function.name] = function

    # bodies

    def block(self, function: Function) -> None:
        assert function.body is not None
        self.scopes.append({})
        self.blocks += 1
        self.find_labels()
        while not self.accept("}"):
            if self.accept("{"):
                self.block(function)
            elif self.kind == "dot":
                self.declaration(function)
            elif self.kind == "end":
                raise PTXSyntaxError(f"PTX: the body of {function.name} has no end")
            elif self.kind == "name" and self.tokens[self.at + 1][1] == ":":
                function.body.append(Label(self.resolve(self.name())))
                self.expect(":")
            else:
                function.body.append(self.instruction())
        self.scopes.pop()

    def find_labels(self) -> None:
        """Labels of this block, which may be used before they stand."""
        depth, at = 0, self.at
        while depth >= 0 and self.tokens[at][0] != "end":
            kind, text, _ = self.tokens[at]
            depth += (text == "{") - (text == "}")
            if depth == 0 and kind == "name" and self.tokens[at + 1][1] == ":":
                self.declare(text)
            at += 1

    def declare(self, name: str) -> str:
        unique = name if len(self.scopes) == 1 else f"{name}@{self.blocks}"
        self.scopes[-1][name] = unique
        return unique

    def resolve(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def declaration(self, function: Function) -> None:
        word = self.take()[1:]
        if word == "reg":
            kind = self.take()[1:]
            if self.kind == "dot":
                raise PTXSyntaxError(f"PTX line {self.line}: vector registers are not known")
            while True:
                name = self.name()
                if self.accept("<"):
                    count = self.integer()
                    self.expect(">")
                    for number in range(count):
                        function.registers[self.declare(f"{name}{number}")] = kind
                else:
                    function.registers[self.declare(name)] = kind
                if not self.accept(","):
                    break
            self.expect(";")
        elif word in _SPACES:
            found = self.variable(word)
            name = self.declare(found.name)
            function.variables.append(
                Variable(name, found.space, found.type, found.nbytes, found.align, found.initial)
            )
            self.expect(";")
        elif word == "loc":
            line = self.line
            while self.line == line and self.text not in ("}", ";"):
                self.at += 1
        elif word == "pragma":
            self.skip_statement()
        else:
            raise PTXSyntaxError(f"PTX line {self.line}: .{word} is not known here")

    def instruction(self) -> Instruction:
        line, guard = self.line, None
        if self.accept("@"):
            negated = self.accept("!")
            guard = Register(self.resolve(self.name()), negated)
        opcode, modifiers, operands = self.name(), [], []
        while self.kind == "dot":
            modifiers.append(self.take()[1:])
        while not self.accept(";"):
            operands.append(self.operand())
            if not (self.accept(",") or self.accept("|")) and self.text != ";":
                raise PTXSyntaxError(f"PTX line {self.line}: {self.text!r} in the operands of {opcode}")
        return Instruction(opcode, tuple(modifiers), tuple(operands), guard, line)

    def operand(self) -> Operand:
        if self.accept("!"):
            return Register(self.resolve(self.name()), True)
        if self.accept("{"):
            return Vector(self.listed("}"))
        if self.accept("("):
            return Group(self.listed(")"))
        if self.accept("["):
            return self.address()
        if self.accept("-"):
            found = self.operand()
            if not isinstance(found, Immediate):
                raise PTXSyntaxError(f"PTX line {self.line}: a sign before {found}")
            sign = 1 << (found.float_bits - 1) if found.float_bits else 0
            return Immediate(found.value ^ sign, found.float_bits) if sign else Immediate(-found.value)
        if self.kind == "int":
            return Immediate(_int(self.take()))
        if self.kind == "float":
            return _float(self.take())
        name = self.name()
        resolved = self.resolve(name)
        if resolved == name and name.startswith("%") and self.kind == "dot":
            return Register(name + self.take())
        return Register(resolved) if name.startswith("%") or resolved in self.registers else Symbol(resolved)

    def listed(self, end: str) -> tuple[Operand, ...]:
        found = []
        while not self.accept(end):
            found.append(self.operand())
            self.accept(",")
        return tuple(found)

    def address(self) -> Address:
        base: Register | Symbol | None = None
        if self.kind == "name":
            operand = self.operand()
            assert isinstance(operand, Register | Symbol)
            base = operand
        offset = 0
        while not self.accept("]"):
            self.accept("+")
            offset += self.integer()
        return Address(base, offset)


def _int(text: str) -> int:
    text = text.rstrip("U")
    if text[:2].lower() in ("0x", "0b"):
        return int(text, 0)
    return int(text, 8) if len(text) > 1 and text[0] == "0" else int(text)


def _float(text: str) -> Immediate:
    if text[:2] in ("0f", "0F"):
        return Immediate(int(text[2:], 16), 32)
    if text[:2] in ("0d", "0D"):
        return Immediate(int(text[2:], 16), 64)
    return Immediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], 64)


def parse(text: str) -> Module:
    """The module that a text describes.

    Raises:
      PTXSyntaxError: if it is damaged, or has what this parser does not know.
    """
    return _Parser(text).parse()
