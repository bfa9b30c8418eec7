"""The tables of a loop nest: every node and every kind of loop has a row, and what it says holds where it is used."""

from __future__ import annotations

from dataclasses import replace

from tg_codegen.nest import spec
from tg_codegen.nest.nest import Axis, Nest, NodeTable, Root, Store, expressions, with_expressions
from tg_codegen.nest.spec import KINDS, NODES, Kind, NodeArg, NodeOp
from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Variable

ROW, N = Variable("i0", 0, 7), Variable("n", 1, 9)
ARGUMENTS = {
    NodeArg.CONSTANT: 3,
    NodeArg.EXPRESSION: ROW + N,
    NodeArg.ACCESS: (1, ROW * 2, ROW < 4),
    NodeArg.PLACE: (1, N * 2, N),
    NodeArg.REDUCTION: (Ops.ADD, (ROW,)),
}


def test_every_member_has_a_row() -> None:
    assert set(NODES) == set(NodeOp) and set(KINDS) == set(Kind)
    assert all(row.meaning for row in NODES.values()) and all(row.meaning for row in KINDS.values())
    assert {row.arg for row in NODES.values()} == set(NodeArg) == set(ARGUMENTS)


def test_a_loop_is_run_in_one_way() -> None:
    ways = (spec.SERIAL, spec.UNROLLED, spec.LANE, spec.GRID, frozenset({Kind.CONTRACT, Kind.DEPTH}))
    assert all(sum(kind in way for way in ways) == 1 for kind in Kind)
    assert spec.STATED == {Kind.LOOP, Kind.REDUCE} < spec.SERIAL and spec.FRAGMENT < spec.LANE
    assert spec.ITEMS < spec.GRID and spec.REORDERING < spec.REDUCING
    assert spec.SERIAL_OUTPUT == spec.SERIAL - {Kind.REDUCE}


def test_nests_of_the_same_outputs_share_their_nodes() -> None:
    table = NodeTable()
    table.roots = {ROW: Root(ROW, 8, False)}
    one = table.make(NodeOp.LOAD, dtypes.int32, (), (1, ROW, 1))
    total = table.make(Ops.ADD, dtypes.int32, (one, table.make(NodeOp.INDEX, dtypes.int32, (), ROW)))
    stores = (Store(0, ROW, 1, total, (ROW,)),)
    nest = Nest(stores, (), table.roots, (Axis("i0", ROW, 1, 8, Kind.LOOP),))
    assert nest.nodes() == tuple(total.toposort()) and nest.stores == stores
    cut = nest.split(nest.axes[0], 4, Kind.LOOP)
    assert cut.nodes() is nest.nodes(), "found once for all that is made of the loops"
    other = replace(cut, stores=(Store(0, ROW, 1, one, (ROW,)),))
    assert other.nodes() == (one,) and nest.nodes() == tuple(total.toposort())


def test_expressions_are_found_and_replaced_where_a_row_says_that_they_stand() -> None:
    table = NodeTable()
    table.roots = {ROW: Root(ROW, 8, True)}
    one = table.make(NodeOp.CONST, dtypes.int32, (), 1)
    for op, row in NODES.items():
        arg = ARGUMENTS[row.arg]
        node = table.make(op, dtypes.int32, (one,) * bool(row.operands), arg)
        found = expressions(op, arg)
        assert node.expressions == found
        assert len(found) == {NodeArg.EXPRESSION: 1, NodeArg.ACCESS: 2, NodeArg.PLACE: 2}.get(row.arg, 0)
        reads_root = any(not isinstance(e, int) and ROW in e.variables() for e in found)
        assert (ROW in node.free) is reads_root
        assert expressions(op, with_expressions(op, arg, lambda _: 5)) == (5,) * len(found)
