"""What is open at a point of the code that is being emitted: blocks, and the values of loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from tg_shape import Expr, Variable, sint

from .uop import UOp


class Block:
    """A loop's body (or the kernel's) while it is being filled.

    Attributes:
      parent: the block around it.
      effects: its effects so far, in order.
      depth: how many blocks are around it.
      known: how many values were known when it was begun.
    """

    __slots__ = ("depth", "effects", "known", "parent")

    def __init__(self, parent: Block | None = None, known: int = 0) -> None:
        self.parent = parent
        self.known = known
        self.effects: list[UOp] = []
        self.depth: int = 0 if parent is None else parent.depth + 1


@dataclass(frozen=True, slots=True)
class Env:
    """Values of roots and of axes at a point.

    Attributes:
      root: what is known of each root: the sum over its open axes.
      axis: the counter of each open axis.
      exact: roots of which every remaining iteration is inside the extent.
    """

    root: dict[Expr, sint] = field(default_factory=dict)
    axis: dict[str, sint] = field(default_factory=dict)
    exact: frozenset[Variable] = frozenset()

    def open(self, name: str, root: Variable, stride: int, value: sint, exact: bool | None = None) -> Env:
        """The environment with one more axis open. ``exact`` None leaves what is known of the root as it is."""
        known = self.exact if exact is None else (self.exact | {root} if exact else self.exact - {root})
        return Env({**self.root, root: self.root.get(root, 0) + value * stride}, {**self.axis, name: value}, known)


    def at(self, variable: Variable, value: int) -> Env:
        """The environment with a value in the place of a variable."""
        def put(expr: sint) -> sint:
            return expr if isinstance(expr, int) else expr.substitute({variable: value})

        root = {name: put(expr) for name, expr in self.root.items()}
        return Env(root, {name: put(expr) for name, expr in self.axis.items()}, self.exact)


@dataclass(frozen=True, slots=True)
class Context:
    """A place in the code: the block being filled and what is open around it.

    Attributes:
      block: where effects go.
      env: values of what is open.
      opened: name of the axis that this context opened (None for the kernel).
      parent: the context around it.
    """

    block: Block
    env: Env
    opened: str | None = None
    parent: Context | None = None

    def at(self, axis: str | None) -> Context:
        """The enclosing context that opened ``axis`` (None: the kernel's)."""
        here: Context = self
        while here.parent is not None and (axis is None or here.opened != axis):
            here = here.parent
        return here
