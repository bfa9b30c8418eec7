"""What is known of each node before any decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from tg_lazy import Ops
from tg_lazy.fusion.node_facts import NodeFacts
from tg_lazy.subgraph.graph import Graph


def test_what_is_read_is_the_sum_of_the_operands(machine: Any) -> None:
    a, b = (machine.buffer(np.ones(6, np.float32)) for _ in range(2))
    both = a.alu(Ops.ADD, b)
    out = both.alu(Ops.MUL, both.alu(Ops.MAX, a))
    graph = Graph()
    graph.reach([out], "output")
    facts = NodeFacts(graph)
    reads = {node.op: facts.reads[node.index] for node in graph.nodes}
    graph.release()
    assert reads[Ops.ADD] == 48 and reads[Ops.MAX] == 72 and reads[Ops.MUL] == 24, "an output is read as memory"
