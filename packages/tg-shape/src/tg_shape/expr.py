"""Symbolic integers: immutable, interned nodes with bounds.

A symbolic integer is an `Expr`; ``sint`` is ``int | Expr``. An expression whose value is known *is* a Python ``int``:
operators never return a node for a constant. Equal expressions are the same object, so ``is`` (and the default ``==``)
decides structural equality.

The structure is open: every node has ``op`` and ``args`` (a tuple of ``sint``). Operators keep this normal form:

| op | args | meaning and normal form |
| --- | --- | --- |
| `var` | `()` | a `Variable`: `.name`, `.vmin`, `.vmax` and `.upper`, the symbolic upper bound |
| `bind` | `(variable, int)` | a `Bind`: a variable with this run's value; its bounds are the variable's |
| `add` | `(term, ..., int?)` | flat, 2 args or more, like terms collected; the constant last, if it is not 0 |
| `mul` | `(factor, ..., int?)` | flat, 2 args or more, no sum as a factor; the coefficient last, if it is not 1 |
| `floordiv` | `(num, den)` | if `den` is an `int`: `den >= 2`, `num.vmin >= 0`, so truncating division is the same |
| `mod` | `(num, den)` | as `floordiv` |
| `lt` | `(e, int)` | 0/1: `e < int`; `e` has no constant term and coefficients without a common divisor |
| `eq` | `(e, int)` | 0/1: `e == int`; as `lt`, and the first coefficient of `e` is positive |
| `ne` | `(e, int)` | 0/1: `e != int`; as `eq` |
| `and` | `(boolean, ...)` | 0/1: flat, no duplicates, no constants |
| `or` | `(boolean, ...)` | 0/1: as `and` |
| `max` | `(e, ..., int?)` | flat, no duplicates, the constant last |
| `min` | `(e, ..., int?)` | as `max` |

(A product of sums with more than 64 terms stays a product of sums.) Operators are decided by `tg_shape.rules`, which
fills the table `ENGINE` when the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index as _as_index
from typing import Any, TypeVar, Union
from weakref import ref

from ._lock import LOCK
from .interned import Interned
from .toposort import toposort

sint = Union[int, "Expr"]
Node = TypeVar("Node", bound="Expr")
Terms = tuple[tuple["Expr", int], ...]
Order = tuple[Any, ...]

_RANK = {
    op: i
    for i, op in enumerate(
        ("var", "bind", "mul", "floordiv", "mod", "max", "min", "add", "lt", "eq", "ne", "and", "or"), start=1
    )
}
_DEEP = 64  # deeper nodes are ordered by digest, as comparing nested orders would recurse
_DEEP_RANK = len(_RANK) + 1

_nodes: Interned[Expr] = Interned()


class Engine:
    """What operators and methods call; `tg_shape.rules`, `walk` and `render` fill it, so this module imports none."""

    __slots__ = (
        "add",
        "mul",
        "floordiv",
        "mod",
        "lt",
        "eq",
        "ne",
        "conj",
        "disj",
        "invert",
        "maximum",
        "minimum",
        "rebuild",
        "substitute",
        "evaluate",
        "variables",
        "render",
        "key",
    )
    add: Callable[[sint, sint], sint]
    mul: Callable[[sint, sint], sint]
    floordiv: Callable[[sint, sint], sint]
    mod: Callable[[sint, sint], sint]
    lt: Callable[[sint, sint], sint]
    eq: Callable[[sint, sint], sint]
    ne: Callable[[sint, sint], sint]
    conj: Callable[[tuple[sint, ...]], sint]
    disj: Callable[[tuple[sint, ...]], sint]
    invert: Callable[[sint], sint]
    maximum: Callable[[tuple[sint, ...]], sint]
    minimum: Callable[[tuple[sint, ...]], sint]
    rebuild: dict[str, Callable[[Sequence[sint]], sint]]
    substitute: Callable[[sint, Mapping[Any, sint]], sint]
    evaluate: Callable[[sint, Mapping[Any, int]], int]
    variables: Callable[[Expr], frozenset[Variable]]
    render: Callable[[sint], str]
    key: Callable[[Expr], str]


ENGINE = Engine()
ENGINE.rebuild = {}


def as_sint(x: object) -> sint:
    """``x`` as an ``int`` or an `Expr`.

    Raises:
      TypeError: if ``x`` is neither an expression nor an integer (a float, a string, None).
    """
    if isinstance(x, Expr) or type(x) is int:
        return x
    try:
        return int(_as_index(x))  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"expected an integer or a symbolic integer, got {x!r} of type {type(x).__name__}") from None


def takes_over(x: object) -> bool:
    """Whether ``x`` handles operators itself: its class has ``__array_ufunc__`` and is not numpy's."""
    kind = type(x)
    return hasattr(kind, "__array_ufunc__") and kind.__module__ != "numpy"


class Expr:
    """A symbolic integer. Built by operators on a `Variable`, never called by hand.

    ``vmin`` and ``vmax`` are sound integer bounds: for every assignment of the variables within their bounds,
    ``vmin <= value <= vmax``.

    Example:
      >>> i, j = Variable("i", 0, 3), Variable("j", 0, 15)
      >>> (i * 16 + j) // 16 is i, (i * 16 + j) % 16 is j
      (True, True)
      >>> (i * 16 + j).vmax, i // 4
      (63, 0)
    """

    __slots__ = (
        "op",
        "args",
        "vmin",
        "vmax",
        "order",
        "depth",
        "lin",
        "symbolic_bounds",
        "_vars",
        "_key",
        "__weakref__",
    )
    op: str
    args: tuple[sint, ...]
    vmin: int
    vmax: int
    order: Order
    depth: int
    lin: tuple[Terms, int] | None
    symbolic_bounds: bool
    _vars: frozenset[Variable] | None
    _key: str | None

    def __reduce__(self) -> tuple[Callable[..., sint], tuple[object, ...]]:
        return _unpickle, (_pickle(self),)

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def __add__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.add(self, other if type(other) is int else as_sint(other))

    def __radd__(self, other: sint) -> sint:
        return ENGINE.add(self, other if type(other) is int else as_sint(other))

    def __neg__(self) -> sint:
        return ENGINE.mul(self, -1)

    def __sub__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.add(self, -as_sint(other))

    def __rsub__(self, other: sint) -> sint:
        return ENGINE.add(ENGINE.mul(self, -1), as_sint(other))

    def __mul__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.mul(self, other if type(other) is int else as_sint(other))

    def __rmul__(self, other: sint) -> sint:
        return ENGINE.mul(self, other if type(other) is int else as_sint(other))

    def __floordiv__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.floordiv(self, other if type(other) is int else as_sint(other))

    def __rfloordiv__(self, other: sint) -> sint:
        return ENGINE.floordiv(as_sint(other), self)

    def __mod__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.mod(self, other if type(other) is int else as_sint(other))

    def __rmod__(self, other: sint) -> sint:
        return ENGINE.mod(as_sint(other), self)

    # -- comparisons: 0/1 valued. == and != stay identity, which interning makes structural equality ------------------
    def __lt__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.lt(self, as_sint(other))

    def __gt__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.lt(as_sint(other), self)

    def __le__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.lt(self, as_sint(other) + 1)

    def __ge__(self, other: sint) -> sint:
        if type(other) is not int and takes_over(other):
            return NotImplemented
        return ENGINE.lt(as_sint(other) - 1, self)

    def lt(self, other: sint) -> sint:
        """``self < other`` as a 0/1 expression."""
        return ENGINE.lt(self, as_sint(other))

    def ge(self, other: sint) -> sint:
        """``self >= other`` as a 0/1 expression."""
        return ENGINE.lt(as_sint(other) - 1, self)

    def eq(self, other: sint) -> sint:
        """Whether the values are equal, as a 0/1 expression (``==`` compares structure and gives a ``bool``)."""
        return ENGINE.eq(self, as_sint(other))

    def ne(self, other: sint) -> sint:
        """Whether the values differ, as a 0/1 expression."""
        return ENGINE.ne(self, as_sint(other))

    # -- booleans ------------------------------------------------------------------------------------------------------
    def __and__(self, other: sint) -> sint:
        return ENGINE.conj((self, as_sint(other)))

    def __rand__(self, other: sint) -> sint:
        return ENGINE.conj((self, as_sint(other)))

    def __or__(self, other: sint) -> sint:
        return ENGINE.disj((self, as_sint(other)))

    def __ror__(self, other: sint) -> sint:
        return ENGINE.disj((self, as_sint(other)))

    def __invert__(self) -> sint:
        return ENGINE.invert(self)

    def __bool__(self) -> bool:
        if self.vmin > 0 or self.vmax < 0:
            return True
        raise TypeError(
            f"the truth of {self.render()} (between {self.vmin} and {self.vmax}) depends on its variables; "
            "use tg_shape.resolve(condition, default) to decide, or keep the expression"
        )

    def __int__(self) -> int:
        raise TypeError(
            f"{self.render()} (between {self.vmin} and {self.vmax}) has no single value; use .evaluate({{...}})"
        )

    # -- queries -------------------------------------------------------------------------------------------------------
    def substitute(self, mapping: Mapping[Node, sint]) -> sint:
        """The expression with nodes replaced, simplified again.

        Every node that is a key is replaced by its value (all at once; a value is not searched again). A key that is a
        sum matches that whole sum only. The replacement of a variable must stay within the variable's bounds, on which
        earlier simplification may have relied; tighter bounds simplify further.

        Args:
          mapping: nodes (usually variables) to expressions or integers.
        """
        return ENGINE.substitute(self, mapping)

    def variables(self) -> frozenset[Variable]:
        """The variables that occur, those under a `Bind` included."""
        return ENGINE.variables(self) if self._vars is None else self._vars

    def evaluate(self, values: Mapping[Any, int]) -> int:
        """The value for given variables.

        Args:
          values: variables, or their names, to integers. A bound variable needs no entry.

        Raises:
          KeyError: if a variable has no value; the message names it.
        """
        return ENGINE.evaluate(self, values)

    def render(self) -> str:
        """Text in Python's syntax; it evaluates to the same value."""
        return ENGINE.render(self)

    @property
    def key(self) -> str:
        """A digest of the structure, names and bounds; the same in every process."""
        return ENGINE.key(self)

    def unbind(self) -> tuple[Variable, int]:
        """The variable and the value of a bound variable.

        Raises:
          TypeError: if this is not a `Bind`.
        """
        raise TypeError(f"{self.render()} is not a bound variable")

    def __repr__(self) -> str:
        return self.render()


class Variable(Expr):
    """A named integer between two bounds, both inclusive.

    Args:
      name: identifies the variable (with the bounds) and names it in generated code.
      vmin: smallest value.
      vmax: largest value. It may be an expression: ``Variable("i", 0, n - 1)`` runs over a symbolic dimension, and
          ``i < n`` is decided.

    Raises:
      ValueError: if ``vmin > vmax``.
    """

    __slots__ = ("name", "upper")
    name: str
    upper: sint

    def __new__(cls, name: str, vmin: int, vmax: sint) -> Variable:
        upper = as_sint(vmax)
        low = as_sint(vmin)
        if not isinstance(low, int):
            raise TypeError(f"variable {name!r}: the lower bound must be an int, got {low!r}")
        high = upper if isinstance(upper, int) else upper.vmax
        if low > high:
            raise ValueError(f"variable {name!r}: lower bound {low} is above upper bound {upper!r}")
        key = ("var", name, low, upper)
        weak = _nodes.find(key)
        found = None if weak is None else weak()
        if found is None:
            with LOCK:
                weak = _nodes.find(key)
                found = None if weak is None else weak()
                if found is None:
                    node = object.__new__(cls)
                    node.op, node.args, node.vmin, node.vmax, node.lin = "var", (), low, high, None
                    node.name, node.upper = name, upper
                    node.order = (_RANK["var"], name, low, high, *(() if isinstance(upper, int) else (upper.order,)))
                    node.depth = 0
                    node.symbolic_bounds = not isinstance(upper, int)
                    node._vars, node._key = None, None
                    _nodes.add(key, ref(node))
                    found = node
        assert isinstance(found, Variable)
        return found

    def bind(self, value: int) -> Bind:
        """The variable with a value for this run.

        Raises:
          ValueError: if the value is outside the bounds.
        """
        value = _as_index(value)
        if not self.vmin <= value <= self.vmax:
            raise ValueError(
                f"bind: {value} is outside the bounds of variable {self.name!r}: {self.vmin} to {self.vmax}"
            )
        node = intern("bind", (self, value), self.vmin, self.vmax)
        assert isinstance(node, Bind)
        return node


class Bind(Expr):
    """A variable with the value of this run. Its bounds are the variable's, so nothing is simplified by the value."""

    __slots__ = ()

    @property
    def var(self) -> Variable:
        """The variable."""
        var = self.args[0]
        assert isinstance(var, Variable)
        return var

    @property
    def value(self) -> int:
        """The value."""
        value = self.args[1]
        assert isinstance(value, int)
        return value

    def unbind(self) -> tuple[Variable, int]:
        """The variable and the value."""
        return self.var, self.value

    def __repr__(self) -> str:
        return f"{self.var.render()}={self.value}"


def order_of(x: sint) -> Order:
    """A sort key that does not depend on the process."""
    return (0, x) if isinstance(x, int) else x.order


def intern(op: str, args: tuple[sint, ...], vmin: int, vmax: int, lin: tuple[Terms, int] | None = None) -> Expr:
    """The node for ``op`` and ``args``, which must be in normal form already."""
    key = (op, args)
    weak = _nodes.find(key)
    if weak is not None:
        found = weak()
        if found is not None:
            return found
    with LOCK:
        weak = _nodes.find(key)
        if weak is not None:
            found = weak()
            if found is not None:
                return found
        node: Expr = object.__new__(Bind if op == "bind" else Expr)
        depth, symbolic = 0, False
        for a in args:
            if isinstance(a, Expr):
                depth = max(depth, a.depth)
                symbolic = symbolic or a.symbolic_bounds
        node.op, node.args, node.vmin, node.vmax, node.lin = op, args, vmin, vmax, lin
        node.depth, node.symbolic_bounds, node._vars, node._key = depth + 1, symbolic, None, None
        node.order = (_RANK[op], *map(order_of, args)) if depth < _DEEP else (_RANK[op], (_DEEP_RANK, node.key))
        _nodes.add(key, ref(node))
    return node


def topological(root: Expr, finished: Callable[[Expr], bool] | None = None) -> list[Expr]:
    """Every node under ``root``, each once, arguments before users (:func:`tg_shape.toposort`), last arguments first.

    Args:
      root: where to begin.
      finished: nodes for which it is true are left out, with what only they reach.
    """

    def operands(node: Expr) -> list[Expr]:
        found = [a for a in reversed(node.args) if isinstance(a, Expr)]
        return found if finished is None else [a for a in found if not finished(a)]

    return toposort(() if finished is not None and finished(root) else (root,), operands)


def _pickle(root: Expr) -> list[tuple[object, ...]]:
    flat: list[tuple[object, ...]] = []
    number: dict[Expr, int] = {}
    for node in topological(root):
        number[node] = len(flat)
        if isinstance(node, Variable):
            flat.append(("var", node.name, node.vmin, node.upper))
        else:
            flat.append((node.op, *((a,) if isinstance(a, int) else number[a] for a in node.args)))
    return flat


def _unpickle(flat: list[tuple[Any, ...]]) -> sint:
    built: list[sint] = []
    for op, *args in flat:
        if op == "var":
            built.append(Variable(*args))
            continue
        values = [a[0] if isinstance(a, tuple) else built[a] for a in args]
        built.append(values[0].bind(values[1]) if op == "bind" else ENGINE.rebuild[op](values))
    return built[-1]
