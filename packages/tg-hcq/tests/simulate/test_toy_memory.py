"""Loads, stores and atomics of every size and space against bytes in Python."""

from __future__ import annotations

import mmap
import os
import random
import threading
import time
from collections.abc import Callable
from fractions import Fraction

import pytest

from tg_hcq.simulate.engine import Access, EngineFault, FaultKind, Memory, Wave
from tg_hcq.simulate.engine.testing import DOUBLE, SINGLE, Format
from tg_hcq.simulate.toy import ToyGpu
from tg_hcq.simulate.toy.gpu import CODE, DATA, DATA_BYTES
from tg_hcq.simulate.toy.instructions import ATOMICS

pytest.importorskip("llvmlite")
SIZES = (1, 2, 4, 8, 12, 16)
MEMORY_BYTES = 2048


@pytest.fixture(params=[False, True], ids=["plain", "hostile"])
def hostile(request: pytest.FixtureRequest) -> bool:
    """Whether the GPU is a hostile one."""
    return bool(request.param)


class Lanes:
    """Random addresses, data and mask for one access, as a program's setup gives them to it."""

    def __init__(self, gpu: ToyGpu, nbytes: int, align: int, rng: random.Random, limit: int = MEMORY_BYTES) -> None:
        self.lanes = gpu.lanes
        how = rng.choice(["any", "adjacent", "same"])
        places = (limit - nbytes) // align + 1
        if how == "adjacent" and self.lanes * nbytes <= limit:
            start = rng.randrange((limit - self.lanes * nbytes) // align + 1) * align
            self.offsets = [start + lane * nbytes for lane in range(self.lanes)]
        elif how == "same":
            self.offsets = [rng.randrange(places) * align] * self.lanes
        else:
            self.offsets = [rng.randrange(places) * align for _ in range(self.lanes)]
        self.mask = rng.choice([(1 << self.lanes) - 1, rng.getrandbits(self.lanes)])
        self.data = [[rng.getrandbits(32) for _ in range(self.lanes)] for _ in range(8)]

    @property
    def active(self) -> list[int]:
        return [lane for lane in range(self.lanes) if self.mask >> lane & 1]

    def setup(self, base: int) -> Callable[[Wave], None]:
        def begin(wave: Wave) -> None:
            wave.set_row(10, [base + at & 0xFFFFFFFF for at in self.offsets])
            wave.set_row(11, [base + at >> 32 for at in self.offsets])
            for register, row in enumerate(self.data):
                wave.set_row(20 + register, row)
            wave.exec = self.mask

        return begin


def run(gpu: ToyGpu, instruction: str, lanes: Lanes, base: int) -> dict[int, tuple[int, ...]]:
    """Executes one instruction; returns the registers 20 to 27."""
    found: list[Wave] = []

    def setup(wave: Wave) -> None:
        lanes.setup(base)(wave)
        found.append(wave)

    # the mapping that was used last is remembered: what comes after a first access is checked against it
    program = f"s_load_4 s30, s2\n s_wait\n {instruction}\n s_wait\n s_end"
    gpu.run(program, setup=setup, shared_bytes=MEMORY_BYTES, scratch_bytes=MEMORY_BYTES)
    return {register: found[0].row(register) for register in range(20, 28)}


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("how", ["", "_unaligned"])
def test_global_loads_and_stores(nbytes: int, lanes: int, how: str, hostile: bool) -> None:
    rng, gpu = random.Random(nbytes), ToyGpu(lanes, hostile=hostile)
    for _ in range(6):
        gpu.data[:MEMORY_BYTES] = before = rng.randbytes(MEMORY_BYTES)
        drawn = Lanes(gpu, nbytes, 1 if how else min(nbytes, 4), rng)
        after = run(gpu, f"global_load_{nbytes}{how} v20, v10", drawn, DATA)
        words = max(nbytes // 4, 1)
        for word in range(8):
            for lane in range(lanes):
                expected = drawn.data[word][lane]
                if word < words and drawn.mask >> lane & 1:
                    at = drawn.offsets[lane] + 4 * word
                    expected = int.from_bytes(before[at : at + min(nbytes, 4)], "little")
                assert after[20 + word][lane] == expected
        run(gpu, f"global_store_{nbytes}{how} v20, v10", drawn, DATA)
        model = bytearray(before)
        for lane in drawn.active:
            data = b"".join(drawn.data[word][lane].to_bytes(4, "little") for word in range(words))
            model[drawn.offsets[lane] : drawn.offsets[lane] + nbytes] = data[:nbytes]
        assert bytes(gpu.data[:MEMORY_BYTES]) == model, "the highest lane wins"


@pytest.mark.parametrize("nbytes", [1, 2])
@pytest.mark.parametrize("space", ["global", "shared", "scratch"])
def test_signed_loads(space: str, nbytes: int, hostile: bool) -> None:
    rng, gpu = random.Random(nbytes), ToyGpu(hostile=hostile)
    for _ in range(4):
        drawn = Lanes(gpu, nbytes, nbytes, rng)
        drawn.mask = (1 << 64) - 1
        after = run(gpu, f"{space}_store_{nbytes} v20, v10\n s_wait\n {space}_load_{nbytes}_signed v21, v10", drawn,
                    DATA if space == "global" else 0)  # fmt: skip
        last = {(lane if space == "scratch" else 0, at): lane for lane, at in enumerate(drawn.offsets)}
        for lane, at in enumerate(drawn.offsets):
            wrote = last[lane if space == "scratch" else 0, at]
            value = drawn.data[0][wrote] & ((1 << 8 * nbytes) - 1)
            assert after[21][lane] == (value - (value >> (8 * nbytes - 1) << (8 * nbytes))) % (1 << 32)


@pytest.mark.parametrize("space", ["shared", "scratch"])
@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("how", ["", "_unaligned"])
def test_shared_and_scratch(space: str, nbytes: int, how: str, hostile: bool) -> None:
    """What is stored comes back, byte by byte; lanes overwrite one another in shared memory alone."""
    rng, gpu = random.Random(nbytes), ToyGpu(hostile=hostile)
    words = max(nbytes // 4, 1)
    for _ in range(6):
        drawn = Lanes(gpu, nbytes, 1 if how else min(nbytes, 4), rng)
        after = run(
            gpu, f"{space}_store_{nbytes}{how} v20, v10\n s_wait\n {space}_load_{nbytes}{how} v24, v10", drawn, 0
        )
        memory: dict[tuple[int, int], int] = {}
        for lane in drawn.active:
            data = b"".join(drawn.data[word][lane].to_bytes(4, "little") for word in range(words))
            for i, byte in enumerate(data[:nbytes]):
                memory[lane if space == "scratch" else 0, drawn.offsets[lane] + i] = byte
        for lane in drawn.active:
            at = drawn.offsets[lane]
            found = bytes(memory[lane if space == "scratch" else 0, at + i] for i in range(nbytes))
            for word in range(words):
                assert after[24 + word][lane] == int.from_bytes(found[4 * word : 4 * word + 4], "little")


def atomic(op: str, bits: int, old: int, data: int, expected: int) -> int:
    """What is in memory afterwards."""

    def signed(x: int) -> int:
        return x - (x >> (bits - 1) << bits)

    return {
        "add": old + data, "sub": old - data, "and": old & data, "or": old | data, "xor": old ^ data, "xchg": data,
        "umax": max(old, data), "umin": min(old, data), "max": max(old, data, key=signed),
        "min": min(old, data, key=signed), "cmpxchg": data if old == expected else old,
        "uinc_wrap": 0 if old >= data else old + 1, "udec_wrap": data if old == 0 or old > data else old - 1,
    }[op] % (1 << bits)  # fmt: skip


def float_atomic(form: Format, op: str, old: int, data: int) -> int:
    """What is in memory afterwards, of floats; a NaN is no maximum and no minimum."""
    if op in ("fadd", "fsub"):
        return (form.add if op == "fadd" else form.sub)(old, data)
    if form.is_nan(old) or form.is_nan(data):
        return data if form.is_nan(old) else old
    least, most = sorted((old, data), key=lambda x: (x & ~form.sign) * (-1 if x & form.sign else 1))
    return most if op == "fmax" else least


def float_numbers(form: Format) -> list[int]:
    """Numbers of every kind, the least and the greatest; one zero, as a maximum of two may be either."""
    one, infinity = form.round(Fraction(1)), form.infinity
    return [0, one, one + 1, form.sign | one + 3, infinity, form.sign | infinity, form.nan, 1, infinity - 1]


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("nbytes", [4, 8])
@pytest.mark.parametrize("op", ATOMICS)
def test_atomics(op: str, nbytes: int, space: str, hostile: bool) -> None:
    rng, gpu = random.Random(op), ToyGpu(hostile=hostile)
    words = nbytes // 4
    base = DATA if space == "global" else 0
    for _ in range(3):
        drawn = Lanes(gpu, nbytes, nbytes, rng, limit=128)
        form = SINGLE if nbytes == 4 else DOUBLE
        for register in range(0, 8, words):
            numbers = [rng.choice(float_numbers(form)) if op[0] == "f" else rng.getrandbits(2) for _ in range(64)]
            for word in range(words):
                drawn.data[register + word] = [number >> 32 * word & 0xFFFFFFFF for number in numbers]
        # fill memory with what is in v24, lane after lane, then do the operation with v20 (and v22 or v21)
        program = [f"{space}_store_{nbytes} v24, v10", f"{space}_atomic_{op}_{nbytes} v26, v20, v10",
                   f"{space}_load_{nbytes} v24, v10"]  # fmt: skip
        after = run(gpu, "\n s_wait\n".join(program), drawn, base)

        def row(register: int, lane: int, of: list[list[int]]) -> int:
            return sum(of[register - 20 + word][lane] << 32 * word for word in range(words))

        memory: dict[int, int] = {}
        for lane in drawn.active:
            memory[drawn.offsets[lane]] = row(24, lane, drawn.data)
        for lane in drawn.active:
            at = drawn.offsets[lane]
            was = sum(after[26 + word][lane] << 32 * word for word in range(words))
            assert was == memory[at] or (op[0] == "f" and form.is_nan(was) and form.is_nan(memory[at]))
            data, expected = (row(register, lane, drawn.data) for register in (20, 20 + words))
            if op[0] == "f":
                memory[at] = float_atomic(form, op, memory[at], data)
            else:
                memory[at] = atomic(op, 8 * nbytes, memory[at], data, expected)
        for lane in drawn.active:
            now, at = sum(after[24 + word][lane] << 32 * word for word in range(words)), drawn.offsets[lane]
            assert now == memory[at] or (op[0] == "f" and form.is_nan(now) and form.is_nan(memory[at]))


@pytest.mark.parametrize("nbytes", [4, 8, 16, 32, 64])
def test_scalar_loads(nbytes: int, hostile: bool) -> None:
    gpu, found = ToyGpu(hostile=hostile), list[Wave]()
    gpu.data[:128] = random.Random(1).randbytes(128)
    gpu.run(f"s_load_{nbytes} s8, s2 #12\n s_wait\n s_end", setup=found.append)
    assert found[0].view[(at := found[0].layout.scalar("s", 8)) : at + nbytes] == gpu.data[12 : 12 + nbytes]


def test_lanes_in_different_mappings(hostile: bool) -> None:
    """Lanes may go to different memories; one that goes to a hole is named."""
    gpu, other = ToyGpu(hostile=hostile), Memory(8192, seed=1)
    gpu.space.map(DATA + DATA_BYTES + 4096, other, 4096, 4096, Access.READ)
    drawn = Lanes(gpu, 4, 4, random.Random(2))
    drawn.offsets = [(DATA_BYTES + 4096 if lane % 3 else 0) + 4 * lane for lane in range(64)]
    after = run(gpu, "global_load_4 v20, v10", drawn, DATA)
    for lane in drawn.active:
        source = other.view[4096 + 4 * lane :] if lane % 3 else gpu.data[4 * lane :]
        assert after[20][lane] == int.from_bytes(source[:4], "little")
    drawn.offsets[40], drawn.mask = DATA_BYTES + 2048, (1 << 64) - 1
    with pytest.raises(EngineFault) as caught:
        run(gpu, "global_load_4 v20, v10", drawn, DATA)
    assert (caught.value.fault.lane, caught.value.fault.kind) == (40, FaultKind.UNMAPPED)
    with pytest.raises(EngineFault) as caught:
        run(gpu, "global_store_4 v20, v10", drawn, DATA)
    assert (caught.value.fault.lane, caught.value.fault.kind) == (1, FaultKind.PROTECTED)
    gpu.space.unmap(DATA + DATA_BYTES + 4096)
    with pytest.raises(EngineFault) as caught:
        run(gpu, "global_load_4 v20, v10", drawn, DATA)
    assert (caught.value.fault.lane, caught.value.fault.kind) == (1, FaultKind.UNMAPPED)


def test_an_access_goes_from_one_mapping_into_the_next_that_continues_it(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    memory = Memory(3 * 4096, seed=3)
    for page in (2, 0, 1):
        gpu.space.map(0x4000_0000 + 4096 * page, memory, 4096 * page, 4096, Access.READ)
    found: list[Wave] = []
    program = "v_mov_i32 v1, 0x40000000\n v_mov_i32 v2, 0\n global_load_16 v4, v1 #0xFF8\n s_wait\n s_end"
    gpu.run(program, setup=found.append)
    words = memory.view[0xFF8:0x1008].cast("I")
    assert [found[0].row(4 + word)[7] for word in range(4)] == list(words)
    gpu.space.unmap(0x4000_1000)
    with pytest.raises(EngineFault, match="crosses"):
        gpu.run(program)


def test_memory_is_a_file_that_goes_with_its_owner() -> None:
    memory = Memory(100)
    number = memory.fd
    assert memory.nbytes == 4096 == os.fstat(number).st_size
    with mmap.mmap(number, 4096) as elsewhere:
        elsewhere[:2] = b"ok"
        assert bytes(memory.view[:2]) == b"ok"
    memory.close()
    memory.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)


@pytest.mark.parametrize("nbytes", [2, 4, 8, 16])
def test_the_end_of_the_mapping_that_was_used_last(nbytes: int, hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    drawn = Lanes(gpu, nbytes, 4, random.Random(1))
    drawn.mask, drawn.offsets = (1 << 64) - 1, [DATA_BYTES - nbytes * (64 - lane) for lane in range(64)]
    run(gpu, f"global_store_{nbytes} v20, v10", drawn, DATA)
    drawn.offsets[63] = DATA_BYTES - nbytes // 2
    for verb in ("load", "store"):
        with pytest.raises(EngineFault) as caught:
            run(gpu, f"global_{verb}_{nbytes} v20, v10", drawn, DATA)
        assert caught.value.fault.lane == 63


def test_mappings_are_refused() -> None:
    gpu = ToyGpu()
    with pytest.raises(ValueError, match="is mapped already"):
        gpu.space.map(DATA + 64, gpu.memory, 0, 4096, Access.READ)
    with pytest.raises(ValueError, match="no lines of 64 bytes"):
        gpu.space.map(DATA + DATA_BYTES + 8, gpu.memory, 0, 4096, Access.READ)
    with pytest.raises(ValueError, match="no lines of 64 bytes"):
        gpu.space.map((1 << 64) - 4096, gpu.memory, 0, 4096, Access.READ)
    with pytest.raises(ValueError, match="of a memory of"):
        gpu.space.map(0, gpu.memory, 0x1F000, 0x2000, Access.READ)
    with pytest.raises(KeyError, match="no mapping begins"):
        gpu.space.unmap(DATA + 8)
    with pytest.raises(KeyError, match="is not mapped"):
        gpu.space.read(DATA + DATA_BYTES - 4, 8)


@pytest.mark.parametrize("space", ["global", "shared", "scratch"])
def test_the_lowest_lane_that_is_refused_is_named(space: str, hostile: bool) -> None:
    """Random addresses, in memory, beyond it, across its end, misaligned, against a model; and nothing was done."""
    rng, gpu = random.Random(space), ToyGpu(hostile=hostile)
    end = DATA + DATA_BYTES if space == "global" else MEMORY_BYTES
    wrong = FaultKind.UNMAPPED if space == "global" else FaultKind[space.upper()]
    kinds = set()
    for _ in range(60):
        nbytes = rng.choice(SIZES)
        align = rng.choice([min(nbytes, 4), 1])
        drawn = Lanes(gpu, nbytes, align, rng)
        drawn.offsets = [end - MEMORY_BYTES + at for at in drawn.offsets]
        for lane in rng.sample(range(64), rng.randint(1, 3)):
            drawn.offsets[lane] = end + rng.choice([0, 4, 4096, -nbytes + 1, -1, -64 + 1])
        across = FaultKind.CROSSING if space == "global" else wrong
        bad = [
            (lane, FaultKind.MISALIGNED if at % align else across if at < end else wrong)
            for lane in drawn.active if (at := drawn.offsets[lane]) % align or at + nbytes > end
        ]  # fmt: skip
        verb, before = rng.choice(["load", "store"]), bytes(gpu.data)
        text = f"{space}_{verb}_{nbytes}{'_unaligned' if align == 1 and nbytes > 1 else ''} v20, v10"
        if not bad:
            run(gpu, text, drawn, 0)
            continue
        with pytest.raises(EngineFault) as caught:
            run(gpu, text, drawn, 0)
        fault = caught.value.fault
        assert (fault.lane, fault.kind) == bad[0], text
        assert (fault.address, fault.nbytes) == (drawn.offsets[bad[0][0]], nbytes) and fault.text == text
        assert fault.access is (Access.READ if verb == "load" else Access.WRITE)
        assert fault.pc == CODE + 8 + 4 and bytes(gpu.data) == before
        kinds.add(fault.kind)
    assert kinds == {wrong, FaultKind.MISALIGNED, *([FaultKind.CROSSING] if space == "global" else [])}


def test_a_scalar_load_has_no_lane(hostile: bool) -> None:
    gpu = ToyGpu(hostile=hostile)
    with pytest.raises(EngineFault, match="misaligned|not aligned") as caught:
        gpu.run("s_load_4 s20, s2 #2\n s_end")
    assert caught.value.fault.lane is None and caught.value.fault.address == DATA + 2


def test_memory_is_unmapped_while_a_wave_runs(hostile: bool) -> None:
    """From another thread: it returns when no wave is in that memory, and the next access is a fault."""
    gpu = ToyGpu(hostile=hostile)
    other = Memory(4096)
    gpu.space.map(DATA + DATA_BYTES, other, 0, 4096, Access.READ | Access.WRITE)
    left: list[bytes] = []

    def unmap() -> None:
        time.sleep(0.1)
        gpu.space.unmap(DATA + DATA_BYTES)
        left.append(bytes(other.view[:256]))
        time.sleep(0.05)
        left.append(bytes(other.view[:256]))

    thread = threading.Thread(target=unmap)
    thread.start()
    with pytest.raises(EngineFault) as caught:
        gpu.run(f"""
          v_shl_i32 v4, v0, 2
          v_add_i32 v10, v4, v1
          v_mov_i32 v11, v2
        again:
          v_add_i32 v5, v5, 1
          global_store_4 v5, v10 #{DATA_BYTES}
          s_wait
          s_branch #again
        """, budget=1 << 32)
    thread.join()
    fault = caught.value.fault
    assert fault.kind is FaultKind.UNMAPPED and fault.lane is not None
    assert fault.address == DATA + DATA_BYTES + 4 * fault.lane
    assert hostile or fault.lane == 0  # accesses that are on their way are done lane after lane
    assert fault.text.startswith("global_store_4 v5, v10") and left[0] == left[1]
