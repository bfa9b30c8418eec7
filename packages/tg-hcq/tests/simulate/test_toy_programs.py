"""Programs of the toy: divergence, calls, barriers, shared memory, atomics, scratch; and what they can do wrong."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tg_hcq.simulate.engine import (
    Access,
    Engine,
    EngineFault,
    Fault,
    FaultKind,
    HungWave,
    InstructionSet,
    Memory,
    scalar,
)
from tg_hcq.simulate.toy import TOY, ToyGpu, assemble
from tg_hcq.simulate.toy.gpu import CODE, CODE_BYTES, DATA, DATA_BYTES
from tg_lazy import Context
from tg_runtime import DeviceError
from tg_runtime.compilers import llvm

pytest.importorskip("llvmlite")


@pytest.fixture(params=[False, True], ids=["plain", "hostile"])
def hostile(request: pytest.FixtureRequest) -> bool:
    """Whether the GPU is a hostile one."""
    return bool(request.param)


STORE = """
  v_lshl: v_shl_i32 v10, v0, 2
  v_add_carry_i32 v10, m3, v1, v10
  v_mov_i32 v11, v2
  global_store_4 v5, v10
  s_end
"""


@pytest.mark.parametrize("lanes", [32, 64])
def test_divergence(lanes: int, hostile: bool) -> None:
    """Collatz: each lane leaves the loop when it has come to one."""
    gpu = ToyGpu(lanes, hostile=hostile)
    gpu.run("""
      v_add_i32 v4, v0, 1
      v_mov_i32 v5, 0
      v_cmp_ne_i32 m0, v4, 1
      s_and_exec m1, m0
    again:
      s_branch_exec0 #out
      v_and_i32 v6, v4, 1
      v_mul_i32 v7, v4, 3
      v_add_i32 v7, v7, 1
      v_lshr_i32 v8, v4, 1
      v_cmp_ne_i32 m0, v6, 0
      v_select_i32 v4, m0, v7, v8
      v_add_i32 v5, v5, 1
      v_cmp_ne_i32 m0, v4, 1
      s_and_exec m2, m0
      s_branch #again
    out:
      s_set_exec m1
    """ + STORE)

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(3 * n + 1 if n & 1 else n // 2)

    assert gpu.words(lanes) == [steps(lane + 1) for lane in range(lanes)]


def test_calls_and_computed_jumps(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    gpu.run("""
      v_mov_i32 v5, v0
      s_call s10 #twice
      s_call s10 #twice
      s_branch #store
    twice:
      s_mov_i64 s12, s10
      s_call s10 #double
      s_jump s12
    double:
      v_add_i32 v5, v5, v5
      s_jump s10
    store:
    """ + STORE)
    assert gpu.words(64) == [4 * lane for lane in range(64)]


def test_code_in_two_mappings(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    gpu.space.map(0x5000_0000, gpu.memory, 0x8000, 0x1000, Access.EXECUTE)
    gpu.load("v_add_i32 v5, v5, 7\n s_jump s10", 0x5000_0000, 0x8000)
    gpu.run("v_mov_i32 v5, v0\n s_call s10 #0x50000000\n s_call s10 #0x50000000\n" + STORE)
    assert gpu.words(64) == [lane + 14 for lane in range(64)]


@pytest.mark.parametrize("seed", range(3))
def test_barriers_and_shared_memory(seed: int, hostile: bool) -> None:
    """Each wave writes a row of shared memory and reads its neighbour's; an ended wave is not waited for."""
    gpu = ToyGpu(seed=seed, hostile=hostile)
    gpu.run("""
      s_cmp_eq_i32 scc, s1, 3
      s_branch_scc1 scc, #out
      v_shl_i32 v4, v0, 2
      s_shl_i32 s4, s1, 8
      v_add_i32 v4, v4, s4
      v_mul_i32 v5, v0, v0
      v_add_i32 v5, v5, s1
      shared_store_4 v5, v4
      s_wait
      s_barrier
      s_add_i32 s5, s1, 1
      s_cmp_eq_i32 scc, s5, 3
      s_branch_scc0 scc, #inside
      s_mov_i32 s5, 0
    inside:
      v_shl_i32 v4, v0, 2
      s_shl_i32 s4, s5, 8
      v_add_i32 v4, v4, s4
      shared_load_4 v5, v4
      s_shl_i32 s4, s1, 8
      v_shl_i32 v10, v0, 2
      v_add_i32 v10, v10, s4
      s_shl_i32 s6, s0, 10
      v_add_i32 v10, v10, s6
      v_add_i32 v10, v10, v1
      v_mov_i32 v11, v2
      s_wait
      global_store_4 v5, v10
    out:
      s_end
    """, groups=5, waves=4, shared_bytes=1024)
    for group in range(5):
        for wave in range(3):
            expected = [lane * lane + (wave + 1) % 3 for lane in range(64)]
            assert gpu.words(64, 1024 * group + 256 * wave) == expected


BARRIER = "s_cmp_eq_i32 scc, s1, 1\n s_branch_scc1 scc, #out\n s_barrier\n out: s_end"


def test_a_barrier_that_a_wave_skips(hostile: bool) -> None:
    """It is no error to hardware; where it is asked for, the waves and the instruction are named."""
    for seed in range(4):
        ToyGpu(seed=seed, hostile=hostile).run(BARRIER, waves=3)
        fault = fault_of(lambda seed=seed: ToyGpu(seed=seed, hostile=hostile).run(  # type: ignore[misc]
            BARRIER, waves=3, whole_barriers=True))  # fmt: skip
        assert fault.kind is FaultKind.BARRIER and fault.text in ("s_barrier", "s_end")
        assert "not all waves of the workgroup come to it: ended: [1], waiting: [" in str(fault)
    gpu = ToyGpu(hostile=hostile)
    gpu.run("s_barrier\n s_barrier\n s_end", waves=3, groups=2, whole_barriers=True)


def test_atomics_between_waves_and_workgroups(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    gpu.data[:] = bytes(DATA_BYTES)
    gpu.run("""
      v_mov_i32 v5, 1
      global_atomic_add_4 v6, v5, v1
      s_wait
      v_mul_i32 v10, v6, 4
      v_add_i32 v10, v10, v1
      v_mov_i32 v11, v2
      global_atomic_add_4 v7, v5, v10 #64     ; every ticket is drawn once
      s_end
    """, groups=3, waves=2)
    assert gpu.words(1) == [384]
    assert gpu.words(384, 64) == [1] * 384


def test_scratch_is_each_lanes_own(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    gpu.run("""
      v_mov_i32 v4, 0
      v_mul_i32 v5, v0, 3
      scratch_store_4 v5, v4 #8
      v_mov_i32 v5, 0
      v_and_i32 v6, v0, 1
      v_cmp_eq_i32 m0, v6, 0
      s_and_exec m1, m0
      scratch_load_4 v5, v4 #8
      s_wait
      s_set_exec m1
    """ + STORE, scratch_bytes=16)
    assert gpu.words(64) == [0 if lane & 1 else 3 * lane for lane in range(64)]


def test_lanes_read_one_another(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    gpu.run("v_xor_i32 v4, v0, 5\n v_mul_i32 v5, v0, v0\n v_permute v5, v5, v4\n v_read_lane s9, v5, 3\n"
            "v_add_i32 v5, v5, s9\n" + STORE)
    assert gpu.words(64) == [(lane ^ 5) ** 2 + 36 for lane in range(64)]


def fault_of(run: Callable[[], object]) -> Fault:
    with pytest.raises(EngineFault) as caught:
        run()
    return caught.value.fault


def test_a_fault_in_mid_vector(hostile: bool) -> None:
    """The lowest lane that is refused is named, and no lane has stored anything."""
    gpu = ToyGpu(hostile=hostile)
    before = bytes(gpu.data)
    fault = fault_of(lambda: gpu.run("""
      v_shl_i32 v4, v0, 11
      v_add_carry_i32 v10, m3, v1, v4
      v_mov_i32 v11, v2
      s_set_exec 0xFFFFFFFFFFFFFFF0
      global_store_4 v0, v10
      s_end
    """, groups=3, waves=2))
    assert fault.kind is FaultKind.UNMAPPED and fault.lane == 32 and fault.address == DATA + DATA_BYTES
    assert fault.access is Access.WRITE and fault.nbytes == 4
    assert fault.text.startswith("global_store_4 v0, v10") and gpu.machine.code.text(fault.pc) == fault.text
    assert fault.pc == CODE + 20 + 12 + 8 + 16
    assert bytes(gpu.data) == before
    assert f"wave {fault.wave}, pc {fault.pc:#x} (global_store_4 v0, v10" in str(fault)
    assert "lane 32: 4 bytes at 0x7f0000010000 to write: nothing is mapped there" in str(fault)


@pytest.mark.parametrize(("program", "kind", "words"), [
    ("v_mov_i32 v1, 0x10000\n v_mov_i32 v2, 0\n global_store_4 v0, v1\n s_end", FaultKind.PROTECTED, "does not allow"),
    ("global_atomic_add_4 v5, v0, v1 #2\n s_end", FaultKind.MISALIGNED, "not aligned"),
    ("global_load_4 v5, v1 #0x10000\n s_end", FaultKind.UNMAPPED, "nothing is mapped"),
    ("global_load_16 v5, v1 #0xFFF4\n s_end", FaultKind.CROSSING, "crosses"),
    ("v_mov_i32 v9, 0\n shared_store_4 v0, v9 #64\n s_end", FaultKind.SHARED, "shared memory"),
    ("v_mov_i32 v9, 0\n shared_store_8 v0, v9 #60\n s_end", FaultKind.SHARED, "shared memory"),
    ("v_mov_i32 v9, 0\n scratch_load_1 v0, v9 #16\n s_end", FaultKind.SCRATCH, "scratch memory"),
    ("s_load_4 s20, s2 #-4\n s_end", FaultKind.UNMAPPED, "4 bytes at 0x7efffffffffc to read"),
    ("s_load_8 s20, s2 #0xFFFC\n s_end", FaultKind.CROSSING, "crosses"),
    ("s_trap", FaultKind.TRAP, "trapped"),
    ("s_jump s2", FaultKind.PROTECTED, "to execute"),
    ("s_branch #0x123456780", FaultKind.UNMAPPED, "4 bytes at 0x123456780 to execute"),
    ("s_branch #0x10002", FaultKind.MISALIGNED, "not aligned"),
    ("s_barrier", FaultKind.UNDECODABLE, "is no instruction"),
])  # fmt: skip
def test_what_a_program_can_do_wrong(program: str, kind: FaultKind, words: str, hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    fault = fault_of(lambda: gpu.run(program, shared_bytes=64, scratch_bytes=16))
    assert fault.kind is kind and words in str(fault), str(fault)


def test_nothing_is_checked_where_no_lane_is_active(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    gpu.run("s_set_exec 0\n global_load_4 v5, v0\n global_store_16 v5, v0\n shared_store_4 v5, v1\n s_end")


def test_code_lies_in_mappings_beside_one_another(hostile: bool) -> None:
    """An instruction goes from one page into the next, whose memory is elsewhere; after the last one is a fault."""
    gpu, memory = ToyGpu(hostile=hostile), Memory(1 << 14)
    base, page, pages = 0x5000_0000, 4096, (2, 0, 1)
    code = assemble("v_mov_i32 v5, v0\n" + "v_add_i32 v5, v5, 1\n" * 500 + STORE, base)
    assert len(code) > 2 * page and page % 20 != 8  # the pages end within instructions
    for number, place in enumerate(pages):
        memory.view[place * page : (place + 1) * page] = code[number * page : (number + 1) * page].ljust(page, b"\0")
        gpu.space.map(base + number * page, memory, place * page, page, Access.READ | Access.EXECUTE)
    gpu.run(f"s_branch #{base}")
    assert gpu.words(64) == [lane + 500 for lane in range(64)]
    gpu.space.unmap(base + 2 * page)
    gpu.machine.code.invalidate()
    fault = fault_of(gpu.launch)
    assert fault.kind is FaultKind.UNDECODABLE and fault.pc == base + 8 + (2 * page - 8) // 20 * 20
    assert "reaches out of the mapping" in str(fault)


def test_the_end_of_code(hostile: bool) -> None:
    """A program without an end goes on into what is behind it, which is a fault there."""
    gpu = ToyGpu(hostile=hostile)
    code = assemble("v_add_i32 v5, v5, 1\n" * 4, CODE)
    gpu.memory.view[CODE_BYTES - len(code) : CODE_BYTES] = code
    fault = fault_of(lambda: gpu.run(f"s_branch #{CODE + CODE_BYTES - len(code)}"))
    assert (fault.kind, fault.pc, fault.access) == (FaultKind.UNMAPPED, CODE + CODE_BYTES, Access.EXECUTE)


def test_code_that_changed(hostile: bool) -> None:
    """The instruction cache keeps what it decoded until it is told."""
    gpu = ToyGpu(hostile=hostile)
    gpu.run("v_mov_i32 v5, 1\n" + STORE)
    assert gpu.words(1) == [1]
    gpu.load("v_mov_i32 v5, 2\n" + STORE)
    gpu.launch()
    assert gpu.words(1) == [1]
    gpu.machine.code.invalidate()
    gpu.launch()
    assert gpu.words(1) == [2]


def test_launches_of_nothing(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    assert gpu.run("s_end", groups=0) == 0
    for numbers in ({"waves": 0}, {"groups": -1}, {"shared_bytes": -4}):
        with pytest.raises(ValueError, match="less than nothing"):
            gpu.run("s_end", **numbers)  # type: ignore[arg-type]


def test_a_hung_wave_is_reported(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    with pytest.raises(HungWave, match=r"wave 0 is at 0x100\d\d \(.*\) after 5000 instructions") as caught:
        gpu.run("again: v_add_i32 v4, v4, 1\n s_branch #again", budget=5000)
    assert CODE <= caught.value.pc < CODE + 0x30


def test_waves_that_wait_for_one_another_in_a_loop_come_to_an_end(hostile: bool) -> None:
    """A spinning wave does not keep the one that it waits for from running."""
    gpu = ToyGpu(hostile=hostile)
    gpu.data[:4] = bytes(4)
    gpu.run("""
      s_cmp_eq_i32 scc, s1, 0
      s_branch_scc0 scc, #give
    again:
      s_drop_cache
      s_load_4 s20, s2
      s_wait
      s_cmp_eq_i32 scc, s20, 7
      s_branch_scc0 scc, #again
      s_end
    give:
      v_mov_i32 v4, 7
      global_store_4 v4, v1
      s_end
    """, waves=2, budget=1 << 30)


def test_the_seed_orders_workgroups(hostile: bool) -> None:
    program = """
      s_set_exec 1
      v_mov_i32 v5, 1
      global_atomic_add_4 v6, v5, v1
      s_wait
      v_shl_i32 v10, v6, 2
      v_add_i32 v10, v10, v1
      v_mov_i32 v11, v2
      v_mov_i32 v5, s0
      global_store_4 v5, v10 #64
      s_end
    """
    found = []
    for seed in (1, 1, 2):
        gpu = ToyGpu(seed=seed, hostile=hostile)
        gpu.data[:4] = bytes(4)
        gpu.run(program, groups=20)
        found.append(gpu.words(20, 64))
    assert found[0] == found[1] != found[2] and all(sorted(order) == list(range(20)) for order in found)


def test_ctrl_c_ends_a_long_run(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        gpu.run("again: s_branch #again")
    timer.join()


def test_without_llvm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "available", lambda: False)
    with pytest.raises(DeviceError, match=r"LLVM: llvmlite is not installed \(pip install"):
        Engine(TOY, 64)


def test_handlers_are_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The object file comes from the cache on disk, unless the processor or LLVM is another."""
    compiled = []
    compile_really = llvm.LLVMCompiler.compile

    def counted(self: llvm.LLVMCompiler, src: str) -> bytes:
        compiled.append(self.cachekey)
        return compile_really(self, src)

    monkeypatch.setattr(llvm.LLVMCompiler, "compile", counted)
    few = InstructionSet("few", {"s": 4}, 4)
    few.scalar("s_mov", lambda b, x: x, [scalar()], [scalar()])
    with Context(CCACHE=1, CACHEDIR=str(tmp_path / "cache")):
        for expected in (1, 1):
            Engine(few, 32)
            assert len(compiled) == expected
        with monkeypatch.context() as other:
            other.setattr(llvm, "cpu_identity", lambda: "another processor with other features")
            Engine(few, 32)
        with monkeypatch.context() as other:
            other.setattr(llvm, "version", lambda distribution: "another version")
            Engine(few, 32)
    assert len(compiled) == len(set(compiled)) == 3
