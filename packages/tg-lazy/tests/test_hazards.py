"""Who still refers to values that an assignment makes stale."""

from __future__ import annotations

from typing import Any

import numpy as np

from tg_lazy import Ops
from tg_lazy.subgraph.hazards import _references, outside


def test_a_view_refers_to_its_base_once(machine: Any) -> None:
    a = machine.buffer(np.ones(6, np.float32))
    turned = a.reshape((2, 3)).permute((1, 0))
    one, two = turned.alu(Ops.NEG), turned.alu(Ops.ADD, turned)
    known = _references([one, two], 1)
    assert known[one] == known[two] == 1
    assert known[turned] == 3 and known[a] == 1


def test_what_is_realised_reads_no_more(machine: Any) -> None:
    a = machine.buffer(np.arange(6, dtype=np.float32))
    done, waiting = a.alu(Ops.SIN), a.alu(Ops.SQRT)
    assert set(outside(a, (), {})) == {done, waiting}
    machine.run(done)
    assert list(outside(a, (), {})) == [waiting] and list(outside(a, (waiting,), {})) == []
