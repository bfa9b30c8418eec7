"""What variables of the environment ask of a software AMD GPU, and its trace."""

from __future__ import annotations

import pytest

from tg_hcq.simulate.amd.settings import asked
from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING
from tg_hcq.simulate.amd.testing.program import CODE, DATA, Bed
from tg_hcq.simulate.engine import AddressSpace, HostileMachine, Step, Trace
from tg_lazy import Context


def test_traces_and_hostility_are_asked_for() -> None:
    space = AddressSpace()
    assert asked("gfx1100", 32, space).trace is None
    assert not isinstance(asked("gfx1100", 32, space), HostileMachine)
    with Context(AMD_TRACE=1, AMD_TRACE_GROUP=3, AMD_TRACE_KERNEL="at 0x1000", AMD_HOSTILE=7):
        first, second = (asked("gfx1100", 32, space) for _ in range(2))
    assert isinstance(first, HostileMachine) and isinstance(second, HostileMachine)
    assert first.caches is second.caches and first.rng.random() != second.rng.random()
    found = first.trace
    assert found is not None and (found.kernel, found.group, found.wave) == ("at 0x1000", 3, None)


@pytest.mark.skipif(LLVM_MC is None, reason=MISSING)
def test_a_trace_prints_what_each_instruction_did(capsys: pytest.CaptureFixture[str]) -> None:
    steps: list[Step] = []
    bed = Bed("gfx1100", trace=Trace(steps.append, group=1, wave=0))
    bed.run("""
        v_lshlrev_b32 v1, 2, v0
        s_mov_b32 exec_lo, 3
        s_add_u32 s4, s2, s2
        global_store_b32 v1, v0, s[0:1] offset:4
        s_endpgm
    """, groups=2, waves=2)
    assert [(step.group, step.wave) for step in steps] == [(1, 0)] * 5
    assert [step.pc for step in steps] == [CODE, CODE + 4, CODE + 8, CODE + 12, CODE + 20]
    (row,) = steps[0].changes.values()
    assert row == {lane: 4 * lane for lane in range(1, 32)}
    assert steps[1].changes == {"exec": 3} and steps[2].changes["s4"] == 2 and steps[2].exec == 3
    assert steps[3].addresses == {lane: DATA + 4 + 4 * lane for lane in range(2)}
    with Context(AMD_TRACE=1):
        made = asked("gfx1100", 32, AddressSpace())
    assert made.trace is not None
    made.trace.tell(steps[3])
    assert f"test 1.0 {CODE + 12:#x} global_store_b32 v1, v0, s[0:1] offset:4  exec 0x3; at" in capsys.readouterr().err
