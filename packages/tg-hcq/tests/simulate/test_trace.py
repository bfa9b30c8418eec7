"""Traces: what is told of each instruction, and whose."""

from __future__ import annotations

import pytest

from tg_hcq.simulate.engine import Step, Trace
from tg_hcq.simulate.toy import ToyGpu
from tg_hcq.simulate.toy.gpu import CODE, DATA

pytest.importorskip("llvmlite")
PROGRAM = """
  s_set_exec 0x30
  v_add_i32 v4, v0, 3
  s_mov_i32 s9, 2
  v_shl_i32 v5, v0, s9
  v_add_i32 v5, v5, v1
  v_mov_i32 v6, v2
  global_store_4 v4, v5
  s_call s10 #out
out: s_end
"""


def test_every_instruction_is_told() -> None:
    steps: list[Step] = []
    gpu = ToyGpu(trace=Trace(steps.append))
    executed = gpu.run(PROGRAM)
    assert executed == len(steps) == 9
    assert [step.text.split()[0] for step in steps] == [line.split()[0].removesuffix("out:") or "s_end" for line in
           PROGRAM.strip().replace("out: ", "").splitlines()]  # fmt: skip
    assert steps[0].pc == CODE and steps[0].exec == (1 << 64) - 1 and steps[0].changes == {"exec": 0x30}
    assert steps[1].exec == 0x30 and steps[1].changes == {"v4": {4: 7, 5: 8}}
    assert steps[2].changes == {"s9": 2}
    assert steps[6].addresses == {4: DATA + 16, 5: DATA + 20} and steps[6].changes == {}
    assert steps[7].changes == {"s10": steps[8].pc} and steps[8].changes == {}
    assert str(steps[1]) == (
        f"toy 0.0 {steps[1].pc:#x} v_add_i32 v4, v0, literal #0x3  exec 0x30; v4 = {{4: 0x7, 5: 0x8}}"
    )
    assert "; at {4: 0x7f0000000010, 5: 0x7f0000000014}" in str(steps[6])


def test_only_what_was_asked_for_is_told() -> None:
    steps: list[Step] = []
    for trace, expected in (
        (Trace(steps.append, kernel="another"), set[tuple[int, int]]()),
        (Trace(steps.append, group=2), {(2, 0), (2, 1)}),
        (Trace(steps.append, kernel="toy", group=1, wave=1), {(1, 1)}),
    ):
        steps.clear()
        ToyGpu(trace=trace).run(PROGRAM, groups=3, waves=2)
        assert {(step.group, step.wave) for step in steps} == expected


def test_a_traced_program_does_the_same() -> None:
    found = []
    for trace in (None, Trace(lambda step: None)):
        gpu = ToyGpu(trace=trace)
        found.append((gpu.run(PROGRAM, groups=2), bytes(gpu.data)))
    assert found[0] == found[1]
