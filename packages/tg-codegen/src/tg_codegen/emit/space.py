"""The iteration space of a nest: which values of its dimensions lie inside, and where an access is valid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tg_shape import Variable, sint

from ..ir.errors import EmitError
from ..nest.env import Env
from ..nest.nest import Axis, Nest
from ..nest.trim import conditions
from .index import below


class IterationSpace:
    """The iteration space of one nest.

    Attributes:
      by_root: the loops of each dimension, outermost first.
      by_name: the loops by their names.
      implied: conditions that need no test where their counters are open.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.by_root = {root: nest.of_root(root) for root in nest.roots}
        self.by_name = {axis.name: axis for axis in nest.axes}
        self.implied: set[sint] = set()

    def divides(self, root: Variable) -> bool:
        """Whether the loops of a dimension run over exactly its extent."""
        axes = self.by_root[root]
        if not axes:
            return True
        if len(axes) == 1 and axes[0].stride == 1:
            return True
        whole = axes[0].extent * axes[0].stride
        return isinstance(whole, int) and whole == self.nest.roots[root].extent

    def start(self) -> Env:
        """The environment outside of all loops."""
        roots = self.nest.roots
        return Env(dict.fromkeys(roots, 0), {}, frozenset(root for root in roots if self.divides(root)))

    def guard(self, env: Env, roots: Iterable[Variable]) -> sint:
        """Whether the values of ``roots`` lie inside their extents."""
        result: sint = 1
        for root in roots:
            if root not in env.exact:
                result = result & below(env.root[root], self.nest.roots[root].extent)
        return result

    def beyond(self, env: Env, root: Variable) -> bool:
        """Whether a dimension's value is certainly outside its extent."""
        guard = self.guard(env, (root,))
        return isinstance(guard, int) and not guard

    def access(self, index: sint, valid: sint, roots: Sequence[Variable], env: Env) -> tuple[sint, sint]:
        """An index over ``roots``, and whether it is valid and they are inside of their extents, at ``env``."""
        holds: sint = 1
        for condition in conditions(valid):
            here = env.of(condition)
            if here not in self.implied:
                holds = holds & here
        return env.of(index), holds & self.guard(env, roots)


def fixed(axis: Axis) -> int:
    """The extent of a loop that is unrolled, which is a number.

    Raises:
      EmitError: if it is symbolic.
    """
    if not isinstance(axis.extent, int):
        raise EmitError(f"the loop {axis.name} of symbolic extent {axis.extent} cannot be unrolled")
    return axis.extent
