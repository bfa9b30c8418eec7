"""The hostile GPU finds every wait, barrier and flush that is deleted from programs that are right."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tg_hcq.simulate.engine import EngineFault, FaultKind, HostileMachine, HungWave
from tg_hcq.simulate.toy import ToyGpu
from tg_hcq.simulate.toy.gpu import DATA_BYTES

pytest.importorskip("llvmlite")
SEEDS = range(12)


@dataclass(frozen=True)
class Program:
    """A program whose lines with ``;!`` are all needed, and the words that it leaves behind."""

    text: str
    expected: tuple[int, ...]
    groups: int = 1
    waves: int = 1

    def right(self, seed: int, text: str, hostile: bool = True, budget: int = 4000) -> bool:
        """Whether a GPU of this seed computes what is expected."""
        gpu = ToyGpu(seed=seed, hostile=hostile)
        gpu.data[:] = bytes(DATA_BYTES)
        gpu.data[0x4000:0x4400].cast("I")[:] = memoryview(bytes(range(256)) * 4).cast("I")
        try:
            gpu.run(text, self.groups, self.waves, shared_bytes=1024, scratch_bytes=16, budget=budget)
        except (EngineFault, HungWave):
            return False
        return gpu.words(len(self.expected)) == list(self.expected)

    def deletions(self) -> list[tuple[str, str]]:
        """Each line that is needed, and the program without it."""
        lines = self.text.splitlines()
        return [
            (line.strip(), "\n".join(lines[:i] + lines[i + 1 :])) for i, line in enumerate(lines) if line.endswith(";!")
        ]


STORE = """
  v_shl_i32 v10, v0, 2
  v_add_i32 v10, v10, v1
  v_mov_i32 v11, v2
  global_store_4 v5, v10
  s_end
"""
WORDS = tuple(int.from_bytes(bytes([4 * i % 256 + k for k in range(4)]), "little") for i in range(64))
PROGRAMS = {
    "a load": Program("""
      v_shl_i32 v12, v0, 2
      v_add_i32 v12, v12, v1
      v_mov_i32 v13, v2
      global_load_4 v5, v12 #0x4000
      s_wait ;!
      v_add_i32 v5, v5, 1
    """ + STORE, tuple(word + 1 for word in WORDS)),
    "a scalar load": Program("""
      s_load_8 s20, s2 #0x4004
      s_wait ;!
      v_mov_i32 v5, s21
    """ + STORE, (WORDS[2],) * 64),
    "the older of two loads": Program("""
      v_shl_i32 v12, v0, 2
      v_add_i32 v12, v12, v1
      v_mov_i32 v13, v2
      global_load_4 v5, v12 #0x4000
      global_load_4 v6, v12 #0x4000
      s_wait #1 ;!
      v_mov_i32 v7, v5
      s_wait ;!
      v_add_i32 v5, v7, v6
    """ + STORE, tuple(2 * word % (1 << 32) for word in WORDS)),
    "shared memory between waves": Program("""
      v_shl_i32 v4, v0, 2
      s_shl_i32 s4, s1, 8
      v_add_i32 v4, v4, s4
      v_add_i32 v5, v0, s1
      shared_store_4 v5, v4
      s_wait ;!
      s_barrier ;!
      v_xor_i32 v4, v4, 256
      shared_load_4 v5, v4
      s_wait ;!
      v_add_i32 v10, v4, v1
      v_mov_i32 v11, v2
      global_store_4 v5, v10
      s_end
    """, tuple(lane + wave for wave in (0, 1) for lane in range(64)), waves=2),
    "a flag between workgroups": Program("""
      v_mov_i32 v7, 0
      s_cmp_eq_i32 scc, s0, 0
      s_branch_scc1 scc, #give
      s_load_4 s20, s2 #0x2000
    again:
      s_drop_cache ;!
      s_load_4 s20, s2 #0x1000
      s_wait
      s_cmp_eq_i32 scc, s20, 7
      s_branch_scc0 scc, #again
      s_load_4 s20, s2 #0x2000
      s_wait ;!
      v_mov_i32 v5, s20
    """ + STORE + """
    give:
      v_mov_i32 v4, 9
      global_store_4 v4, v1 #0x2000
      s_wait ;!
      v_mov_i32 v4, 7
      global_store_4 v4, v1 #0x1000
      s_end
    """, (9,) * 64, groups=2),
    "an atomic's old value": Program("""
      v_mov_i32 v4, 2
      v_shl_i32 v12, v0, 2
      v_add_i32 v12, v12, v1
      v_mov_i32 v13, v2
      global_atomic_add_4 v5, v4, v12 #0x4000
      s_wait ;!
    """ + STORE, WORDS),
    "registers at the beginning": Program("""
      v_mov_i32 v5, 3 ;!
    """ + STORE, (3,) * 64),
    "scratch at the beginning": Program("""
      v_mov_i32 v4, 0
      scratch_store_4 v4, v4 ;!
      scratch_load_4 v5, v4
      s_wait
    """ + STORE, (0,) * 64),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_right_program_is_right_whatever_the_hardware_does(name: str) -> None:
    program = PROGRAMS[name]
    for seed in SEEDS:
        assert program.right(seed, program.text), f"seed {seed}"
    for seed in range(2):
        assert program.right(seed, program.text, hostile=False, budget=1 << 24)


@pytest.mark.parametrize(("name", "index"), [
    (name, index) for name, program in PROGRAMS.items() for index in range(len(program.deletions()))
])  # fmt: skip
def test_a_deletion_is_found(name: str, index: int) -> None:
    line, text = PROGRAMS[name].deletions()[index]
    assert not all(PROGRAMS[name].right(seed, text) for seed in SEEDS), f"without `{line}` all is well"


def test_a_register_that_was_not_waited_for_is_named() -> None:
    gpu = ToyGpu(hostile=True)
    with pytest.raises(EngineFault, match=r"v_add_i64 v6, v4, v4.*not waited for: v5") as caught:
        gpu.run("global_load_4 v5, v1\n v_add_i32 v4, v0, v0\n v_add_i64 v6, v4, v4\n s_end")
    assert caught.value.fault.kind is FaultKind.PENDING


def test_the_host_sees_stores_after_a_flush_and_the_gpu_after_caches_are_dropped() -> None:
    gpu = ToyGpu(hostile=True)
    machine = gpu.machine
    assert isinstance(machine, HostileMachine)
    gpu.data[:] = bytes(DATA_BYTES)
    flush, drop = machine.flush, machine.drop_all
    machine.flush = machine.drop_all = lambda: None  # type: ignore[method-assign]
    gpu.run("v_mov_i32 v5, 6\n" + STORE)
    assert gpu.words(64) == [0] * 64
    flush()
    assert gpu.words(64) == [6] * 64
    gpu.data[:256] = bytes(256)
    copy = "global_load_4 v5, v1\n s_wait\n v_add_i32 v1, v1, 256\n" + STORE
    gpu.run(copy)
    flush()
    assert gpu.words(1, 256) == [6]  # what was there when the line was filled
    drop()
    gpu.run(copy)
    flush()
    assert gpu.words(1, 256) == [0]


def test_everything_is_drawn_from_the_seed() -> None:
    program = PROGRAMS["shared memory between waves"].text + "\n"
    found = []
    for seed in (5, 5, 6):
        gpu = ToyGpu(seed=seed, hostile=True)
        garbage: list[int] = []
        gpu.run(program, waves=2, shared_bytes=1024, setup=lambda wave, garbage=garbage: garbage.append(  # type: ignore[misc]
            wave.scalar("s", 40)))  # fmt: skip
        found.append((garbage, gpu.memory.view[0x8000:0x8010].tobytes(), gpu.machine.rng.random()))
    assert found[0] == found[1] != found[2]


def test_random_programs_agree_with_the_plain_machine() -> None:
    """Loads, stores and arithmetic in any order, with a wait before each use: hostile and plain do the same."""
    rng = random.Random(7)
    for seed in range(12):
        lines = ["v_mov_i32 v5, 0", "v_shl_i32 v12, v0, 2", "v_add_i32 v12, v12, v1", "v_mov_i32 v13, v2"]
        for _ in range(30):
            offset = 4 * rng.randrange(16)
            lines.append(rng.choice([
                f"global_store_4 v5, v12 #{offset}", f"global_load_4 v6, v12 #{offset}\n s_wait\n v_add_i32 v5, v5, v6",
                "v_mul_i32 v5, v5, 3", "v_add_i32 v5, v5, v0", f"shared_store_4 v5, v14 #{offset}",
                f"shared_load_4 v6, v14 #{offset}\n s_wait\n v_xor_i32 v5, v5, v6",
            ]))  # fmt: skip
        text = "v_shl_i32 v14, v0, 2\n" + "\n".join(lines) + STORE
        text = "\n".join(f"v_shl_i32 v15, v0, 2\n shared_store_4 v0, v15 #{4 * i}" for i in range(16)) + "\n" + text
        found = []
        for hostile in (False, True):
            gpu = ToyGpu(seed=seed, hostile=hostile)
            gpu.data[:] = bytes(DATA_BYTES)
            gpu.run(text, shared_bytes=1024)
            found.append(bytes(gpu.data))
        assert found[0] == found[1], f"seed {seed}"
