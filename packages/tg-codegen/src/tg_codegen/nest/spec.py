"""The tables of a loop nest: what its nodes hold, and what becomes of its loops; the groups that follow from them.

One member and one frozen row each, as :mod:`tg_codegen.ir.spec` has for UOps. The text form prints and reads an
argument as its row says, and groups (:data:`LANE`, :data:`SERIAL`, :data:`READS`, …) are computed from the rows and
never typed by hand.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import NamedTuple

from tg_dtype import fast_members


@fast_members
class NodeOp(Enum):
    """Nodes that are not elementwise :class:`tg_lazy.Ops`; :data:`NODES` has a row for each."""

    CONST = auto()
    INDEX = auto()
    LOAD = auto()
    GATHER = auto()
    SELECT = auto()
    REDUCE = auto()


class NodeArg(Enum):
    """What the argument of a node is."""

    CONSTANT = "the value"
    EXPRESSION = "a symbolic integer over roots and variables"
    ACCESS = "(slot, index, valid): a buffer, and two symbolic integers over roots and variables"
    PLACE = "(slot, place, size): a buffer, the address of a computed index, and how many indices there are"
    REDUCTION = "(op, roots): what combines values, and the dimensions over which it does"


class NodeSpec(NamedTuple):
    """One row of the table of nodes.

    Attributes:
      operands: their names.
      arg: what the argument is.
      meaning: one line of semantics.
    """

    operands: tuple[str, ...]
    arg: NodeArg
    meaning: str


NODES: dict[NodeOp, NodeSpec] = {
    NodeOp.CONST: NodeSpec((), NodeArg.CONSTANT, "that value"),
    NodeOp.INDEX: NodeSpec((), NodeArg.EXPRESSION, "the integer"),
    NodeOp.LOAD: NodeSpec((), NodeArg.ACCESS, "the element, 0 where not valid"),
    NodeOp.GATHER: NodeSpec(("index", "*valid"), NodeArg.PLACE, "the element, 0 unless 0 <= index < size and valid"),
    NodeOp.SELECT: NodeSpec(("x",), NodeArg.EXPRESSION, "x where the integer is not 0, else 0"),
    NodeOp.REDUCE: NodeSpec(("x",), NodeArg.REDUCTION, "x combined over all values of the roots"),
}

READS = frozenset(op for op, row in NODES.items() if row.arg in (NodeArg.ACCESS, NodeArg.PLACE))
"""What reads memory: the argument begins with the slot, and two symbolic integers follow."""
EXPRESSIONS = frozenset(op for op, row in NODES.items() if row.arg is NodeArg.EXPRESSION)
"""Whose argument is a symbolic integer."""


@fast_members
class Kind(Enum):
    """What becomes of a loop; :data:`KINDS` has a row for each."""

    LOOP = auto()
    THREAD = auto()
    GLOBAL = auto()
    LOCAL = auto()
    UPCAST = auto()
    VECTOR = auto()
    ROWS = auto()
    FRAGMENT_ROWS = auto()
    FRAGMENT_COLUMNS = auto()
    REDUCE = auto()
    UNROLL = auto()
    SPREAD = auto()
    LANES = auto()
    GROUP = auto()
    CONTRACT = auto()
    DEPTH = auto()


class LoopTrait(Flag):
    """Facts about a kind of loop from which groups are computed."""

    NONE = 0
    STATED = auto()  # as lowering makes it: nothing is decided yet
    SERIAL = auto()  # one iteration after the other
    UNROLLED = auto()  # a copy of the code for each iteration
    LANE = auto()  # an iteration each is a lane of a vector
    FRAGMENT = auto()  # spread over the threads of a matrix instruction
    GRID = auto()  # an iteration each is a work-group's or a work-item's
    ITEM = auto()  # of these, a work-item's
    REORDERING = auto()  # terms are not combined in the order in which they are stated
    ONCE = auto()  # a dimension has one such loop: two would be one of both their iterations
    ALONE = auto()  # a reduction has one such loop: its lanes, and what an instruction adds to one of them


class KindSpec(NamedTuple):
    """One row of the table of kinds.

    Attributes:
      reduces: whether the loop is a reduction's; else it is one of the outputs.
      traits: flags from which groups are computed.
      meaning: one line.
    """

    reduces: bool
    traits: LoopTrait
    meaning: str


_T = LoopTrait
KINDS: dict[Kind, KindSpec] = {
    Kind.LOOP: KindSpec(False, _T.STATED | _T.SERIAL, "serial"),
    Kind.THREAD: KindSpec(False, _T.SERIAL, "serial, its range divided among the CPU's threads"),
    Kind.GLOBAL: KindSpec(False, _T.GRID, "across work-groups"),
    Kind.LOCAL: KindSpec(False, _T.GRID | _T.ITEM, "across the work-items of a group"),
    Kind.UPCAST: KindSpec(False, _T.UNROLLED | _T.ONCE, "unrolled: one register each"),
    Kind.VECTOR: KindSpec(False, _T.LANE | _T.ONCE, "one vector lane each"),
    Kind.ROWS: KindSpec(False, _T.LANE, "one lane each; one accumulator each in a reduction that has lanes of its own"),
    Kind.FRAGMENT_ROWS: KindSpec(False, _T.LANE | _T.FRAGMENT, "rows that a matrix instruction has"),
    Kind.FRAGMENT_COLUMNS: KindSpec(
        False, _T.LANE | _T.FRAGMENT, "its columns: the vector lanes of its threads have an element each"),
    Kind.REDUCE: KindSpec(True, _T.STATED | _T.SERIAL, "serial"),
    Kind.UNROLL: KindSpec(True, _T.UNROLLED | _T.ONCE, "unrolled into one accumulator, in order"),
    Kind.SPREAD: KindSpec(True, _T.UNROLLED | _T.ONCE | _T.REORDERING, "unrolled, one accumulator each"),
    Kind.LANES: KindSpec(True, _T.LANE | _T.ONCE | _T.ALONE | _T.REORDERING, "one vector lane each"),
    Kind.GROUP: KindSpec(True, _T.GRID | _T.ITEM | _T.REORDERING, "across the work-items of a group"),
    Kind.CONTRACT: KindSpec(True, _T.ALONE | _T.REORDERING, "by an instruction that multiplies and adds"),
    Kind.DEPTH: KindSpec(
        True, _T.ONCE | _T.ALONE | _T.REORDERING, "by the same instruction: so many times what CONTRACT has"),
}  # fmt: skip


def kinds_with(trait: LoopTrait) -> frozenset[Kind]:
    """The kinds whose row has every flag of ``trait``.

    >>> Kind.ROWS in kinds_with(LoopTrait.LANE), Kind.ROWS in kinds_with(LoopTrait.LANE | LoopTrait.ONCE)
    (True, False)
    """
    return frozenset(kind for kind, row in KINDS.items() if row.traits & trait == trait)


REDUCING = frozenset(kind for kind, row in KINDS.items() if row.reduces)
STATED = kinds_with(LoopTrait.STATED)
SERIAL = kinds_with(LoopTrait.SERIAL)
SERIAL_OUTPUT = SERIAL - REDUCING
"""Serial loops of the outputs, divided among threads or not."""
UNROLLED = kinds_with(LoopTrait.UNROLLED)
LANE = kinds_with(LoopTrait.LANE)
FRAGMENT = kinds_with(LoopTrait.FRAGMENT)
GRID = kinds_with(LoopTrait.GRID)
ITEMS = kinds_with(LoopTrait.ITEM)
REORDERING = kinds_with(LoopTrait.REORDERING)
ONCE = kinds_with(LoopTrait.ONCE)
ALONE = kinds_with(LoopTrait.ALONE)
