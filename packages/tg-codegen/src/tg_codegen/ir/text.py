"""Kernels as text, in both forms, and back.

One node stands on a line, with a name if another one uses it::

    %0 = param[0] float32*8
    %1 = range[i] int32 (0, 8)
      %2 = load float32 (%0, %1)
      %3 = mul float32 (%2, 0.5)
      store (%0, %1, %3)
    endrange (%1)

that is ``name = op[arg] dtype (operands)``, where what is empty is left out. Constants stand in place: ``3`` is an
int32, ``0.5`` a float32, ``true`` a bool, and others carry their dtype: ``3:int64``, ``0.0:float32x4``. The structured
form is the list of its nodes, operands first, and ends in ``sink``; the linear form is indented by its loops. Whatever
follows ``//`` is a comment.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import nan
from typing import Any

from tg_dtype import ConstType, DType, PtrDType, dtypes, from_bits, to_bits
from tg_lazy import ALU
from tg_shape import Expr, Variable, sint, smax, smin, toposort

from .amd_matrix import AMD_INSTRUCTIONS
from .matrix import INSTRUCTIONS, MatrixInstruction
from .spec import CLOSES, LEAVES, OPENS, SPEC, Arg
from .uop import KOp, UOp, UOps

_OPS = {op.name.lower(): op for op in (*UOps, *sorted(ALU, key=lambda op: op.name))}


class ParseError(ValueError):
    """The text is no kernel; the message has the line."""


def print_variable(v: Variable) -> str:
    """A variable with its bounds."""
    return f"{v.name}={v.vmin}..{v.upper.render() if isinstance(v.upper, Expr) else v.upper}"


def with_bounds(variables: Iterable[Variable]) -> list[Variable]:
    """Variables and those that their upper bounds name, by name; a variable comes after those in its bound."""

    def by_name(variables: Iterable[Variable]) -> list[Variable]:
        return sorted(variables, key=lambda v: v.name)

    return toposort(by_name(variables), lambda v: by_name(v.upper.variables()) if isinstance(v.upper, Expr) else ())


def _size(size: sint) -> str:
    """A size; a symbolic one with the bounds of its variables."""
    if isinstance(size, int):
        return str(size)
    return ", ".join([size.render().replace(", ", ","), *map(print_variable, with_bounds(size.variables()))])


def _number(arg: int | tuple[Any, int]) -> str:
    """A number; one of a lane with the lane after a point."""
    return str(arg) if isinstance(arg, int) else f"{_number(arg[0])}.{arg[1]}"


def _named_size(arg: tuple[str, sint]) -> str:
    return f"{arg[0]}, {_size(arg[1])}"


_PRINT: dict[Arg, Callable[[Any], str]] = {
    Arg.SLOT: str,
    Arg.VARIABLE: print_variable,
    Arg.ARRAY: _named_size,
    Arg.SPECIAL: _named_size,
    Arg.NAME: str,
    Arg.NUMBER: _number,
    Arg.LABEL: str,
    Arg.HINT: str,
    Arg.LANES: lambda arg: ", ".join(map(str, arg)),
    Arg.INSTRUCTION: lambda arg: str(arg.name),
}


def _arg(u: UOp) -> str:
    if u.is_const:
        return f"[{print_constant(u)}]"
    return "" if u.arg is None or not isinstance(u.op, UOps) else f"[{_PRINT[SPEC[u.op].arg](u.arg)}]"


def print_constant(u: UOp) -> str:
    """A constant with its dtype, where that is not the usual one."""
    scalar = u.dtype.scalar()
    if isinstance(u.arg, bool):
        text, usual = str(u.arg).lower(), dtypes.bool
    elif isinstance(u.arg, int):
        text, usual = str(u.arg), dtypes.int32
    else:
        text, usual = repr(u.arg), dtypes.float32
        if u.arg != u.arg and to_bits(u.arg, scalar) != to_bits(nan, scalar):
            text = f"nan@{to_bits(u.arg, scalar):#x}"
    return text if u.dtype is usual else f"{text}:{u.dtype.name}"


def print_uops(kernel: UOp | Sequence[UOp]) -> str:
    """A node with all that it depends on (a SINK, as a rule), or a linear kernel, as text.

    >>> from tg_codegen.ir.uop import const
    >>> data = UOp(UOps.PARAM, dtypes.int32.ptr(4), (), 0)
    >>> store = UOp(UOps.STORE, dtypes.void, (data, const(0, dtypes.int32), const(7, dtypes.int32)))
    >>> print(print_uops(UOp(UOps.SINK, dtypes.void, (store,))))
    %0 = param[0] int32*4
    %1 = store (%0, 0, 7)
    sink (%1)
    """
    nodes = kernel.toposort() if isinstance(kernel, UOp) else kernel
    used = {s for u in nodes for s in u.src}
    names: dict[UOp, str] = {}
    lines = []
    depth = 0
    for u in nodes:
        if u.is_const and (u in used or not isinstance(kernel, UOp)):
            continue
        depth -= u.op in CLOSES
        operands = ", ".join(print_constant(s) if s.is_const else names[s] for s in u.src)
        parts = [u.op.name.lower() + _arg(u)]
        if u.dtype is not dtypes.void:
            parts.append(u.dtype.name)
        if u.src:
            parts.append(f"({operands})")
        if u in used and u not in names:
            names[u] = f"%{len(names)}"
            parts[:0] = [names[u], "="]
        lines.append("  " * depth + " ".join(parts))
        depth += u.op in OPENS and not isinstance(kernel, UOp)
    return "\n".join(lines)


_LINE = re.compile(
    r"(?:(?P<name>%\w+) = )?(?P<op>\w+)(?:\[(?P<arg>[^\]]*)\])?(?: (?P<dtype>[a-z][\w*@]*(?:\([\d,]+\))?))?"
    r"(?: \((?P<operands>.*)\))?"
)
_CONSTANT = re.compile(r"(?P<value>[^:]+?)(?::(?P<dtype>\w+))?")


def parse_constant(text: str) -> UOp:
    """A constant.

    Raises:
      ParseError: if it is none.
    """
    found = _CONSTANT.fullmatch(text)
    if found is None:
        raise ParseError(f"{text!r} is no constant")
    value, name = found["value"], found["dtype"]
    arg: ConstType
    if value in ("true", "false"):
        arg, usual = value == "true", dtypes.bool
    elif re.fullmatch(r"-?\d+", value):
        arg, usual = int(value), dtypes.int32
    else:
        arg, usual = nan, dtypes.float32
        if not value.startswith("nan@"):
            try:
                arg = float(value)
            except ValueError:
                raise ParseError(f"{text!r} is neither a name nor a constant") from None
    dtype = dtypes.from_name(name) if name else usual
    if value.startswith("nan@"):
        arg = from_bits(int(value[4:], 16), dtype.scalar())
    return UOp(UOps.CONST, dtype, (), arg)


_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: lambda a, b: a < b,
    ast.Eq: lambda a, b: a.eq(b),
    ast.NotEq: lambda a, b: a.ne(b),
}


def _expression(node: ast.AST, variables: dict[str, Variable]) -> Any:
    """A symbolic integer out of the Python expression that renders it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):  # names of loops have points
        name = ast.unparse(node)
        if name not in variables:
            raise ParseError(f"the bounds of {name} are not stated")
        return variables[name]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_expression(node.operand, variables)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_expression(node.left, variables), _expression(node.right, variables))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        right = _expression(node.comparators[0], variables)
        return _COMPARE[type(node.ops[0])](_expression(node.left, variables), right)
    if isinstance(node, ast.BoolOp):
        first, *rest = [_expression(value, variables) for value in node.values]
        for value in rest:
            first = first & value if isinstance(node.op, ast.And) else first | value
        return first
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
        return (smax if node.func.id == "max" else smin)(*(_expression(a, variables) for a in node.args))
    raise ParseError(f"{ast.unparse(node)!r} is no symbolic integer")


def _parse_size(text: str) -> sint:
    value, *bounds = [part.strip() for part in text.split(", ")]
    variables: dict[str, Variable] = {}
    for bound in bounds:
        variable = parse_variable(bound, variables)
        variables[variable.name] = variable
    return parse_expression(value, variables)


def parse_expression(text: str, variables: dict[str, Variable]) -> sint:
    """A symbolic integer of known variables.

    Raises:
      ParseError: if it is none, or has other variables.
    """
    try:
        body = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ParseError(f"{text!r} is no symbolic integer") from None
    found: sint = _expression(body, variables)
    return found


def parse_variable(text: str, known: dict[str, Variable]) -> Variable:
    """A variable with its bounds, which may have variables that are known.

    Raises:
      ParseError: if its bounds are not stated.
    """
    found = re.fullmatch(r"(\w+)=(-?\d+)\.\.(.+)", text)
    if found is None:
        raise ParseError(f"{text!r} does not state the bounds of a variable")
    return Variable(found[1], int(found[2]), parse_expression(found[3], known))


def _parse_number(text: str) -> int | tuple[Any, int]:
    number, point, lane = text.rpartition(".")
    return (_parse_number(number), int(lane)) if point else int(text)


def _parse_named_size(text: str) -> tuple[str, sint]:
    name, _, size = text.partition(", ")
    return name, _parse_size(size)


def _parse_instruction(text: str) -> MatrixInstruction:
    row = AMD_INSTRUCTIONS.get(text)
    found = INSTRUCTIONS.get(text) if row is None else row.instruction
    if found is None:
        raise ParseError(f"{text!r} is no matrix instruction")
    return found


_READ: dict[Arg, Callable[[str], object]] = {
    Arg.SLOT: int,
    Arg.VARIABLE: lambda text: parse_variable(text, {}),
    Arg.ARRAY: _parse_named_size,
    Arg.SPECIAL: _parse_named_size,
    Arg.NAME: str,
    Arg.NUMBER: _parse_number,
    Arg.LABEL: int,
    Arg.HINT: str,
    Arg.LANES: lambda text: tuple(int(lane) for lane in text.split(", ")),
    Arg.INSTRUCTION: _parse_instruction,
}


def _parse_arg(op: KOp, text: str | None) -> object:
    if text is None:
        return None
    read = _READ.get(SPEC[op].arg) if isinstance(op, UOps) else None
    if read is None:
        raise ParseError(f"{op.name.lower()} takes no argument")
    return read(text)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("//")[0] if "//" in line.partition("[")[0] or "[" not in line else _uncomment(line)
        if content.strip():
            yield number, content.strip()


def _uncomment(line: str) -> str:
    """A line less its comment; a ``//`` inside brackets divides."""
    inside = 0
    for at, character in enumerate(line):
        inside += (character == "[") - (character == "]")
        if not inside and line.startswith("//", at):
            return line[:at]
    return line


def _split(operands: str) -> list[str]:
    return [part.strip() for part in operands.split(",")] if operands.strip() else []


def _parse(text: str) -> list[UOp]:
    names: dict[str, UOp] = {}
    nodes: list[UOp] = []
    for number, line in _statements(text):
        try:
            found = _LINE.fullmatch(line)
            if found is None or found["op"] not in _OPS:
                raise ParseError("not of the form: name = op[arg] dtype (operands)")
            op = _OPS[found["op"]]
            src = []
            for operand in _split(found["operands"] or ""):
                if operand.startswith("%") and operand not in names:
                    raise ParseError(f"{operand} is not defined above")
                src.append(names[operand] if operand.startswith("%") else parse_constant(operand))
            dtype: DType | PtrDType = dtypes.from_name(found["dtype"]) if found["dtype"] else dtypes.void
            if op is UOps.CONST:
                node = parse_constant(found["arg"] or "")
            else:
                node = UOp(op, dtype, tuple(src), _parse_arg(op, found["arg"]))
        except ValueError as error:
            raise ParseError(f"line {number}: {line!r}: {error}") from None
        if found["name"]:
            names[found["name"]] = node
        nodes.append(node)
    return nodes


def parse_sink(text: str) -> UOp:
    """The last node of the text: for the structured form, its SINK.

    Raises:
      ParseError: if a line is not understood, or there is none.
    """
    nodes = _parse(text)
    if not nodes:
        raise ParseError("no node")
    return nodes[-1]


def parse_linear(text: str) -> list[UOp]:
    """A linear kernel; its constants stand after the arguments, in the order of their use.

    Raises:
      ParseError: if a line is not understood.
    """
    nodes = [u for u in _parse(text) if not u.is_const]
    constants = list(dict.fromkeys(s for u in nodes for s in u.src if s.is_const))
    head = next((at for at, u in enumerate(nodes) if u.op not in LEAVES), len(nodes))
    return [*nodes[:head], *constants, *nodes[head:]]


def parse(text: str) -> UOp | list[UOp]:
    """A kernel in either form: structured, if it ends in ``sink``.

    >>> print(print_uops(parse("%0 = param[0] int32*4\\n store (%0, 0, 7)")))
    %0 = param[0] int32*4
    store (%0, 0, 7)

    Raises:
      ParseError: if a line is not understood.
    """
    nodes = _parse(text)
    return nodes[-1] if nodes and nodes[-1].op is UOps.SINK else parse_linear(text)


__all__ = [
    "ParseError", "parse", "parse_constant", "parse_expression", "parse_linear", "parse_sink", "parse_variable",
    "print_constant", "print_uops", "print_variable",
]  # fmt: skip
