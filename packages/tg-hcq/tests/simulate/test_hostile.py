"""The hostile GPU finds every wait, barrier and flush that is deleted from programs that are right."""

from __future__ import annotations

import contextlib
import gc
import random
import struct
import weakref
from dataclasses import dataclass

import pytest

from tg_hcq.simulate.engine import (
    Access,
    Dispatch,
    EngineFault,
    FaultKind,
    HostileMachine,
    HungWave,
    Instruction,
    Launch,
    Machine,
    Scope,
    Step,
    Trace,
    Wave,
    state,
)
from tg_hcq.simulate.engine.caches import Cache, lines_of
from tg_hcq.simulate.engine.memory import LINE
from tg_hcq.simulate.toy import ToyGpu
from tg_hcq.simulate.toy.gpu import CODE, CODE_BYTES, DATA, DATA_BYTES

pytest.importorskip("llvmlite")
SEEDS = range(24)


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
    "an atomic after a store and before a load": Program("""
      v_shl_i32 v12, v0, 2
      v_add_i32 v12, v12, v1
      v_mov_i32 v13, v2
      global_load_4 v6, v12 #0x4000
      global_store_4 v0, v12 #0x4000
      v_mov_i32 v4, 2
      global_atomic_add_4 v5, v4, v12 #0x4000
      global_load_4 v7, v12 #0x4000
      s_wait ;!
      v_shl_i32 v5, v5, 8
      v_or_i32 v5, v5, v7
    """ + STORE, tuple(lane << 8 | lane + 2 for lane in range(64))),
    "two loads into one register": Program("""
      v_shl_i32 v12, v0, 2
      v_add_i32 v12, v12, v1
      v_mov_i32 v13, v2
      global_load_4 v5, v1 #0x4200
      global_load_4 v5, v12 #0x4000
      s_wait ;!
    """ + STORE, WORDS),
    "a load before the barrier after which it is overwritten": Program("""
      v_shl_i32 v4, v0, 2
      s_cmp_eq_i32 scc, s1, 0
      s_branch_scc1 scc, #read
      shared_store_4 v0, v4
      s_wait
      s_barrier
      s_barrier
      v_mov_i32 v5, 7
      shared_store_4 v5, v4
      s_wait
      s_end
    read:
      s_barrier
      shared_load_4 v5, v4
      s_wait #0 ;!
      s_barrier
      s_wait
    """ + STORE, tuple(range(64)), waves=2),
    "a mask that is loaded": Program("""
      v_mov_i32 v5, 1
      v_mov_i32 v4, 0xFFFFFFFF
      global_store_4 v4, v1
      global_store_4 v4, v1 #4
      s_wait ;!
      s_drop_cache
      s_load_8 exec, s2
      s_wait ;!
      v_mov_i32 v5, 2
    """ + STORE, (2,) * 64),
    "a load and a store past the caches": Program("""
      v_mov_i32 v7, 0
      s_cmp_eq_i32 scc, s0, 0
      s_branch_scc1 scc, #give
      global_load_4 v20, v1 #0x2000
    again:
      global_load_4_device v20, v1 #0x1000
      s_wait
      v_read_lane s20, v20, 0
      s_cmp_eq_i32 scc, s20, 7
      s_branch_scc0 scc, #again
      global_load_4_device v5, v1 #0x2000
      s_wait ;!
    """ + STORE + """
    give:
      v_mov_i32 v4, 9
      global_store_4 v4, v1 #0x2000
      s_wait ;!
      v_mov_i32 v4, 7
      global_store_4 v4, v1 #0x1000
      s_end
    """, (9,) * 64, groups=2),
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


WRONG = {
    "a wait for all but one of what returns out of order": Program("""
      s_load_4 s20, s2 #0x4000
      s_load_4 s21, s2 #0x4004
      s_wait #0x10000
      v_mov_i32 v5, s20
    """ + STORE, (WORDS[0],) * 64),
    "two loads into one register out of order": Program("""
      s_load_4 s20, s2 #0x4000
      s_load_4 s20, s2 #0x4004
      s_wait
      v_mov_i32 v5, s20
    """ + STORE, (WORDS[1],) * 64),
    "a plain load where another unit stores": Program(
        PROGRAMS["a load and a store past the caches"].text.replace("load_4_device v5", "load_4 v5"), (9,) * 64, 2
    ),
}

_ATOMIC = "an atomic after a store and before a load"
PROGRAMS[f"{_ATOMIC}, where the host may take part"] = Program(
    PROGRAMS[_ATOMIC].text.replace("atomic_add_4", "atomic_add_4_system"), PROGRAMS[_ATOMIC].expected
)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_is_found(name: str) -> None:
    program = WRONG[name]
    assert not all(program.right(seed, program.text) for seed in SEEDS)
    assert program.right(0, program.text, hostile=False, budget=1 << 24)


@pytest.mark.drawn(6)
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


@pytest.mark.parametrize("use", ["v_mov_i32 v5, 1", "global_load_4 v5, v1", "s_branch_exec0 #0x10000"])
def test_a_mask_that_was_not_waited_for_is_named(use: str) -> None:
    gpu = ToyGpu(hostile=True)
    with pytest.raises(EngineFault, match=rf"{use.split()[0]}.*not waited for: exec"):
        gpu.run(f"s_load_8 exec, s2\n {use}\n s_end")


def test_the_host_sees_stores_after_a_flush_and_the_gpu_after_caches_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = ToyGpu(hostile=True)
    machine = gpu.machine
    assert isinstance(machine, HostileMachine)
    gpu.data[:] = bytes(DATA_BYTES)
    flush, drop = machine.caches.flush, machine.caches.drop
    monkeypatch.setattr(machine.caches, "flush", lambda: None)
    monkeypatch.setattr(machine.caches, "drop", lambda scope: None)
    gpu.run("v_mov_i32 v5, 6\n" + STORE)
    assert gpu.words(64) == [0] * 64
    flush()
    assert gpu.words(64) == [6] * 64
    gpu.data[:256] = bytes(256)
    copy = "global_load_4 v5, v1\n s_wait\n v_add_i32 v1, v1, 256\n" + STORE
    gpu.run(copy)
    flush()
    assert gpu.words(1, 256) == [6]  # what was there when the line was filled
    drop(Scope.SYSTEM)
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


def hostile_gpu(seed: int = 0) -> tuple[ToyGpu, HostileMachine]:
    """A GPU whose data is zero, and its machine."""
    gpu = ToyGpu(seed=seed, hostile=True)
    gpu.data[:] = bytes(DATA_BYTES)
    assert isinstance(gpu.machine, HostileMachine)
    return gpu, gpu.machine


def test_a_register_holds_garbage_until_its_load_is_waited_for() -> None:
    """What the host does for an instruction reads registers that nothing checks."""
    early = 0
    for seed in range(60):
        gpu, machine = hostile_gpu(seed)
        found: list[tuple[int, ...]] = []
        machine.hosts["s_drop_cache"] = lambda machine, wave, instruction, found=found: found.append(wave.row(5))  # type: ignore[misc]
        gpu.run("v_mov_i32 v5, 0\n global_load_4 v5, v1\n s_drop_cache\n s_wait\n s_drop_cache\n s_end")
        assert found[1] == (0,) * 64
        early += found[0] == (0,) * 64
    assert 0 < early < 20


@pytest.mark.parametrize("ending", ["s_end", "s_trap"])
def test_nothing_of_a_wave_outlives_its_launch(ending: str) -> None:
    """What is left to do of an access holds no wave: a wave's state is large, and launches come by the thousand."""
    waves = weakref.WeakSet[Wave]()
    seen = 0

    def begin(wave: Wave) -> None:
        nonlocal seen
        waves.add(wave)
        seen += 1

    gpu, machine = hostile_gpu()
    with contextlib.suppress(EngineFault):
        gpu.run(f"global_store_4 v0, v1\n global_load_4 v5, v1\n s_load_4 s4, s2\n {ending}", waves=2, setup=begin)
    gc.collect()
    assert seen == 2 and machine.pc is not None and not waves


def test_waves_and_their_memories_are_moved_and_leave_garbage_behind() -> None:
    """Registers, scratch and shared memory are elsewhere then, with accesses on their way."""
    text = """
      v_mov_i32 v4, 0
      v_shl_i32 v6, v0, 2
      s_mov_i32 s8, 0
      scratch_store_4 v4, v4
      shared_store_4 v4, v6
    again:
      scratch_load_4 v5, v4
      shared_load_4 v7, v6
      s_drop_cache
      s_wait
      v_add_i32 v5, v5, 1
      v_add_i32 v7, v7, 2
      scratch_store_4 v5, v4
      shared_store_4 v7, v6
      s_add_i32 s8, s8, 1
      s_cmp_ult_i32 scc, s8, 100
      s_branch_scc1 scc, #again
      v_add_i32 v5, v5, v7
    """ + STORE
    gpu, machine = hostile_gpu()
    seen: list[tuple[int, ...]] = []
    left: list[memoryview] = []

    def look(machine: Machine, wave: Wave, instruction: Instruction) -> None:
        place = (wave.address, wave.get(state.SHARED, 2), wave.get(state.SCRATCH, 2))
        if place not in seen:
            seen.append(place)
            left.append(wave.view)

    machine.hosts["s_drop_cache"] = look
    gpu.run(text, shared_bytes=256, scratch_bytes=4)
    assert gpu.words(64) == [300] * 64
    assert len(seen) > 3 and all(len(set(places)) > 1 for places in zip(*seen, strict=True))
    # a wave whose memory was left reads as none: the registers that it had are not there
    rows = gpu.machine.engine.layout.vector(0)
    assert all(bytes(view[rows : rows + 256]) != struct.pack("<64I", *range(64)) for view in left[:-1])


def test_two_queues_take_turns_at_any_time() -> None:
    """A dispatch is let go of for another one and resumed; neither notices."""
    for seed in SEEDS:
        gpu, machine = hostile_gpu(seed)
        rng = random.Random(seed)
        program = "v_mov_i32 v4, 0\n" + "v_add_i32 v4, v4, 1\n" * 30 + """
          v_shl_i32 v10, v0, 2
          v_add_i32 v10, v10, v1
          v_mov_i32 v11, v2
          global_atomic_add_4 v5, v4, v10
          s_end"""
        gpu.load(program)

        def setup(wave: Wave) -> None:
            wave.set_row(0, list(range(64)))
            wave.set_row(1, [DATA & 0xFFFFFFFF] * 64)
            wave.set_row(2, [DATA >> 32] * 64)

        queues = [Dispatch(machine, Launch(CODE, groups, 2, setup)) for groups in (3, 2)]
        running = list(queues)
        while running:
            queue = rng.choice(running)
            if not queue.advance():
                running.remove(queue)
        machine.caches.flush()
        assert gpu.words(64) == [30 * 10] * 64
        assert [queue.executed for queue in queues] == [6 * 36, 4 * 36]


def test_atomics_are_done_in_the_cache_that_all_units_share() -> None:
    """The host sees them after a flush, another unit after it dropped what it had."""
    gpu, machine = hostile_gpu()
    add = "s_set_exec 1\n v_mov_i32 v4, 5\n global_atomic_add_4 v5, v4, v1\n s_end"
    gpu.load(add)
    machine.run(Launch(CODE, setup=at_data))
    assert gpu.words(1) == [0]
    machine.caches.flush()
    assert gpu.words(1) == [5]
    gpu.data[:4] = (100).to_bytes(4, "little")  # which the shared cache does not see
    machine.run(Launch(CODE, setup=at_data))
    machine.caches.flush()
    assert gpu.words(1) == [10]
    gpu.load(add.replace("atomic_add_4", "atomic_add_4_system"))
    machine.code.invalidate()
    machine.run(Launch(CODE, setup=at_data))
    assert gpu.words(1) == [15]
    gpu.data[:4] = (100).to_bytes(4, "little")
    machine.run(Launch(CODE, setup=at_data))
    assert gpu.words(1) == [105]


def at_data(wave: Wave) -> None:
    """The address of data where programs expect it."""
    wave.set_row(0, list(range(64)))
    wave.set_row(1, [DATA & 0xFFFFFFFF] * 64)
    wave.set_row(2, [DATA >> 32] * 64)


def test_memory_that_no_cache_keeps() -> None:
    """Through an uncached mapping host and GPU see one another's stores at once."""
    gpu, machine = hostile_gpu()
    gpu.space.unmap(DATA)
    gpu.space.map(DATA, gpu.memory, CODE_BYTES, DATA_BYTES, Access.READ | Access.WRITE | Access.UNCACHED)
    gpu.load("s_set_exec 1\n global_load_4 v5, v1\n s_wait\n v_add_i32 v5, v5, 1\n global_store_4 v5, v1 #4\n"
             "global_atomic_add_4 v6, v5, v1 #8\n s_end")  # fmt: skip
    for number in (1, 5, 9):
        gpu.data[:4] = number.to_bytes(4, "little")
        gpu.data[8:12] = bytes(4)
        machine.run(Launch(CODE, setup=at_data))
        assert gpu.words(3) == [number, number + 1, number + 1]


def test_coherent_memory_shows_at_once_what_the_host_stored_and_keeps_what_the_gpu_did() -> None:
    gpu, machine = hostile_gpu()
    gpu.space.unmap(DATA)
    gpu.space.map(DATA, gpu.memory, CODE_BYTES, DATA_BYTES, Access.READ | Access.WRITE | Access.COHERENT)
    gpu.load("s_set_exec 1\n global_load_4 v5, v1\n s_wait\n v_add_i32 v5, v5, 1\n global_store_4 v5, v1 #64\n s_end")
    for number in (1, 5, 9):
        gpu.data[:4] = number.to_bytes(4, "little")
        before = gpu.words(1, 64)
        machine.run(Launch(CODE, setup=at_data))
        assert gpu.words(1, 64) == before
        machine.caches.flush()
        assert gpu.words(1, 64) == [number + 1]


def test_a_system_store_is_seen_by_the_host_and_no_other() -> None:
    gpu, machine = hostile_gpu()
    gpu.load("s_set_exec 1\n v_mov_i32 v4, 3\n global_store_4 v4, v1 #64\n global_store_4_system v4, v1\n s_end")
    machine.run(Launch(CODE, setup=at_data))
    assert gpu.words(1) == [3] and gpu.words(1, 64) == [0]
    gpu.data[:4] = (8).to_bytes(4, "little")
    gpu.load("s_set_exec 1\n global_load_4 v5, v1\n global_load_4_system v6, v1\n s_wait\n"
             "global_store_4_system v5, v1 #128\n global_store_4_system v6, v1 #192\n s_end")  # fmt: skip
    machine.code.invalidate()
    machine.run(Launch(CODE, setup=at_data))
    assert gpu.words(1, 192) == [8] and gpu.words(1, 128) in ([3], [8])


class Words(dict[int, int]):
    """Memory, a byte an address."""

    def read(self, address: int, nbytes: int) -> bytes:
        return bytes(self.get(address + i, 0) for i in range(nbytes))

    def write(self, address: int, data: bytes) -> None:
        self.update({address + i: byte for i, byte in enumerate(data)})


def test_a_cache_keeps_the_oldest_bytes_and_what_was_stored_in_it() -> None:
    """Random reads, stores, drops and flushes against a dictionary of bytes."""
    rng = random.Random(3)
    for write_back in (False, True):
        memory, expected = Words(), Words()
        seen, dirty = dict[int, int](), set[int]()  # what the cache shows of each byte, and which only it has
        cache = Cache(memory, write_back)
        for _ in range(3000):
            address, nbytes = rng.randrange(4 * LINE), rng.randint(1, 2 * LINE)
            span, data = range(address, address + nbytes), rng.randbytes(nbytes)
            lines = sorted(rng.sample(range(6), 2))
            touched = list(lines_of(address, nbytes))

            def fill(bases: list[int], seen: dict[int, int] = seen, memory: Words = expected) -> None:
                for at in (at for base in bases for at in range(base * LINE, base * LINE + LINE)):
                    seen.setdefault(at, memory.get(at, 0))

            match rng.choice(["read", "read", "write", "behind", "drop", "drop some", "flush", "flush some"]):
                case "read":
                    fill(touched)
                    assert cache.read(address, nbytes) == bytes(seen[at] for at in span)
                case "write":
                    if write_back:
                        fill(touched)
                        dirty.update(span)
                    else:
                        expected.write(address, data)
                    seen.update({at: byte for at, byte in zip(span, data, strict=True) if at in seen})
                    cache.write(address, data)
                case "behind":
                    memory.write(address, data)
                    expected.write(address, data)
                case "drop" | "drop some" as how:
                    chosen = range(8) if how == "drop" else lines
                    held = {base for base in chosen if any(at // LINE == base for at in dirty)}
                    for at in [at for at in seen if at // LINE in chosen and at not in dirty]:
                        del seen[at]
                    fill(sorted(held))
                    cache.drop(None if how == "drop" else lines)
                case "flush" | "flush some" as how:
                    for at in [at for at in dirty if how == "flush" or at // LINE in lines]:
                        expected[at] = seen[at]
                        dirty.remove(at)
                    cache.flush(None if how == "flush" else lines)
            assert memory == expected


def test_a_trace_has_every_instruction_once() -> None:
    steps: list[Step] = []
    for seed in SEEDS:
        steps.clear()
        executed = ToyGpu(seed=seed, hostile=True, trace=Trace(steps.append)).run("v_mov_i32 v5, 3\n" + STORE)
        assert executed == len(steps) == 6


def test_memory_that_is_unmapped_while_accesses_are_on_their_way() -> None:
    """The access that finds nothing is named, though the wave went on."""
    found = set()
    for seed in range(40):
        gpu, machine = hostile_gpu(seed)
        machine.hosts["s_drop_cache"] = lambda machine, wave, instruction: machine.space.unmap(DATA)
        with pytest.raises((EngineFault, HungWave)) as caught:
            gpu.run("global_load_4 v4, v1 #8\n global_store_4 v0, v1\n s_drop_cache\n again: s_branch #again",
                    budget=10_000)  # fmt: skip
        if isinstance(caught.value, HungWave):
            continue  # all had returned before
        assert isinstance(caught.value, EngineFault)
        fault = caught.value.fault
        assert fault.kind is FaultKind.UNMAPPED and fault.lane == 0 and "literal" not in fault.text
        found.add((fault.text.split()[0], fault.pc - CODE, fault.address))
    assert found == {("global_load_4", 0, DATA + 8), ("global_store_4", 16, DATA)}
