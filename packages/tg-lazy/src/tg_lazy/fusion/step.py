"""Steps, and the loops in which the nodes of a kernel are evaluated."""

from __future__ import annotations

from collections.abc import Iterable

from tg_shape import ShapeTracker, prod, sint, upper

from ..ops import Ops
from ..subgraph.node import Edge, Node, seen_shape, update_of
from ..trackers import Shape, max_size

Use = tuple["Space", ShapeTracker | None]
"""Where a node is evaluated: the loops, and how their indices map to the node's elements (None: one by one)."""


def aligned(shape: Shape, order: Iterable[int], st: ShapeTracker, elements: sint) -> bool:
    """Whether ``st`` shows each of ``elements`` to one run of the outer loops over ``shape``, in order."""
    if len(st.views) != 1:
        return False
    view = st.views[0]
    if view.mask is not None or view.offset != 0:
        return False
    expected: sint = 1
    inner = True
    for axis in reversed(tuple(order)):
        dim, stride = shape[axis], view.strides[axis]
        if isinstance(dim, int) and dim == 1:
            continue
        if inner and stride == 0:
            continue
        inner = False
        if stride != expected:
            return False
        expected = expected * dim
    return expected == elements


class Space:
    """A loop nest of a kernel: that of its outputs, that of a reduction, or the outer loops that several nests share.

    Attributes:
      step: the kernel.
      shape: what the loops run over.
      order: the axes of ``shape``, outermost loop first.
      size: greatest number of iterations.
      units: iterations that can run in parallel.
      rows: the outer loops that are known here, by their number of iterations.
      reduction: the node whose operand is evaluated here; None for outputs and rows.
    """

    __slots__ = ("_inner_rows", "order", "reduction", "rows", "shape", "size", "step", "units")

    def __init__(
        self, step: Step, shape: Shape, order: tuple[int, ...], units: int, rows: dict[sint, Space],
        reduction: Node | None = None,
    ) -> None:  # fmt: skip
        self.step, self.shape, self.order, self.rows, self.reduction = step, shape, order, rows, reduction
        self.size = max_size(shape)
        self.units = units
        self._inner_rows: dict[sint, Space] | None = None
        step.spaces.append(self)

    def evaluations(self, st: ShapeTracker | None, beside: int) -> int:
        """How often an expression that depends on the loops through ``st`` is evaluated, hoisted as far as it goes.

        Args:
          st: how the loops' indices map to the expression's elements.
          beside: iterations of short loops, which it does not depend on, that may be side by side.
        """
        if st is None or len(st.views) != 1:
            return self.size
        view = st.views[0]
        count, last = 1, 1
        for axis in self.order:
            dim = self.shape[axis]
            if view.strides[axis] != 0 or (view.mask is not None and view.mask[axis] != (0, dim)):
                last = count = count * upper(dim)
            elif isinstance(dim, int) and dim <= beside:
                beside //= max(dim, 1)
            else:
                count *= upper(dim)
        return last

    def has_rows(self, count: int) -> bool:
        """Whether some of the outer loops make ``count`` iterations."""
        product = 1
        for axis in self.order:
            if product >= count:
                break
            product *= upper(self.shape[axis])
        return product == count

    def row(self, count: sint) -> Space:
        """The outer loops of ``count`` iterations."""
        found = self.rows.get(count)
        if found is None:
            found = self.rows[count] = Space(self.step, (count,), (0,), upper(count), self.rows)
        return found

    def inside(self, node: Node, shape: Shape) -> Space:
        """The loops of a reduction that is evaluated here: what it keeps, then what it reduces."""
        if self.reduction is None:
            rows = self.rows
        else:
            if self._inner_rows is None:
                self._inner_rows = {**self.rows, prod(self.shape): self}
            rows = self._inner_rows
        axes = node.arg[1]
        order = (*(a for a in range(len(shape)) if a not in axes), *axes)
        return Space(self.step, shape, order, self.units, rows, node)


ELSEWHERE = "elsewhere"
"""A place in memory other than the element that the kernel is about to write."""
ROW = "row"
"""The element that belongs to the present row of the outputs' outer loops."""


class Step:
    """What will be a kernel, or a step that is none (COPY, CUSTOM, BUFFER_VIEW, EMPTY).

    Attributes:
      roots: the nodes that it realises.
      space: the loops of the outputs.
      inputs: the realised nodes that it reads.
      places: how it sees each of them from the loops of the outputs (None: one by one), or ROW, or ELSEWHERE.
      spaces: its loop nests.
      nested: nodes that are evaluated inside reductions.
      computed: how many nodes are evaluated inside; one that is seen in several ways counts several times.
      reductions: those of them that are reductions.
      contraction: a reduction among them that uses its operands many times over.
      finished: the reduction of which the outputs are elementwise functions, and how they see it.
      swaps: nodes to be read from another node's memory.
      position: place in the execution order.
    """

    __slots__ = (
        "computed", "contraction", "finished", "inputs", "nested", "places", "position", "reductions", "roots", "space",
        "spaces", "swaps",
    )  # fmt: skip

    def __init__(self, root: Node) -> None:
        self.roots = [root]
        self.inputs: dict[Node, None] = {}
        self.places: dict[Node, set[ShapeTracker | str | None]] = {}
        self.nested: set[Node] = set()
        self.computed = 0
        self.reductions: list[Node] = []
        self.contraction: Node | None = None
        self.finished: Edge | None = None
        self.swaps: dict[Node, Node] = {}
        self.position = root.index
        shape = root.shape
        update = update_of(root)
        if update is not None:
            shape = seen_shape(update.srcs[0])
        elif root.op is Ops.ASSIGN:
            shape = seen_shape(root.srcs[0])
        self.spaces: list[Space] = []
        self.space = Space(self, shape, tuple(range(len(shape))), max_size(shape), {})
        self.space.rows[prod(shape)] = self.space

    @property
    def is_kernel(self) -> bool:
        """Whether this becomes a kernel."""
        return is_kernel(self.roots[0])

    @property
    def rearranged(self) -> Edge | None:
        """What the only output is with its elements in another order, if that is computed here, and how it is seen."""
        (root, *others) = self.roots
        if others or root.op is not Ops.CONTIGUOUS:
            return None
        source, st = root.srcs[0]
        if source.reason or st is None or root.size != source.size or st.invert(source.shape) is None:
            return None
        return source, st

    def release(self) -> None:
        """Breaks the reference cycles between a step and its loop nests."""
        for space in self.spaces:
            space.rows.clear()
            if space._inner_rows is not None:
                space._inner_rows.clear()
        self.spaces.clear()
        del self.space

    def __repr__(self) -> str:
        return f"<Step {self.position} of {', '.join(map(repr, self.roots))}>"


def stored_through(root: Node) -> ShapeTracker | None:
    """How the loops of an output map to its memory; None: one by one."""
    if root.op is not Ops.ASSIGN:
        return None
    target, st = root.srcs[0]
    return None if st is not None and st.contiguous and st.size == prod(target.shape) else st


def is_kernel(node: Node) -> bool:
    """Whether realising ``node`` takes a kernel."""
    return node.size > 0 and node.op not in (Ops.COPY, Ops.CUSTOM, Ops.BUFFER_VIEW, Ops.EMPTY)
