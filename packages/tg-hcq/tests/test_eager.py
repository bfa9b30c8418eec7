"""Launches are recorded once and replayed: what differs arrives, refusals say the same, nothing is kept alive."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable

import pytest

from tg_dtype import dtypes
from tg_hcq.core import native as code
from tg_hcq.core import replay as replays
from tg_hcq.hostq import HostQueueDevice, HostQueueProgram
from tg_runtime import BufferOptions, DeviceError
from tg_runtime.device.launch import Launch

VISIBLE = BufferOptions(device_visible=True)
SCALARS = (dtypes.int8, dtypes.uint32, dtypes.int64, dtypes.uint64, dtypes.bool)
LIMITS = ((-128, 127), (0, 2**32 - 1), (-(2**63), 2**63 - 1), (0, 2**64 - 1))


@pytest.fixture(params=[True, False], ids=["native", "python"])
def one(
    request: pytest.FixtureRequest, make_device: Callable[..., HostQueueDevice], monkeypatch: pytest.MonkeyPatch
) -> HostQueueDevice:
    if not request.param:
        monkeypatch.setattr(replays, "native_replay", lambda: None)
    elif code.native_replay() is None:
        pytest.skip("no LLVM")
    return make_device(ring_words=1024)


def test_what_differs_arrives_while_earlier_launches_are_held(one: HostQueueDevice) -> None:
    seen: list[tuple[int, ...]] = []
    program = HostQueueProgram.from_callable(
        one, "note", lambda *values: seen.append(values), 2, SCALARS[:4], core_id=True
    )
    rng, expected = random.Random(1), []
    bufs = [one.allocator.alloc(64, VISIBLE) for _ in range(5)]
    for _ in range(20):
        gate = one.new_signal()
        with one.submission() as queue:
            queue.wait(gate, 1)
        for _ in range(10):
            pair = rng.choice(bufs), rng.choice(bufs)
            values = tuple(rng.choice([low, high, rng.randint(low, high)]) for low, high in LIMITS)
            groups = rng.randint(1, 3)
            program(*pair, global_size=(groups, 1, 1), vals=values)
            expected += [(pair[0].address, pair[1].address, *values, core) for core in range(groups)]
        gate.value = 1
    one.synchronize()
    assert seen == expected
    assert len(program._recorded) == 1


def test_blocks_of_arguments_come_round_again(one: HostQueueDevice) -> None:
    seen: list[int] = []
    program = HostQueueProgram.from_callable(one, "note", seen.append, 0, (dtypes.int32,))
    one.kernargs._segment_nbytes = 128  # two launches
    for i in range(100):
        program(vals=(i,))
    one.synchronize()
    assert seen == list(range(100))


def test_refusals_say_what_a_single_launch_says(one: HostQueueDevice) -> None:
    program = HostQueueProgram.from_callable(one, "note", lambda *_: None, 1, (dtypes.int32,))
    memory = one.allocator.alloc(64, VISIBLE)
    program(memory, vals=(1,))
    for bufs, vals, said in (
        ((memory,), (2**31,), "kernel scalar 0: 2147483648 does not fit int32"),
        ((memory,), (), "1 buffers and 0 scalars given, 1 and 1 taken"),
        ((memory, memory), (1,), "2 buffers and 1 scalars given"),
    ):
        with pytest.raises(ValueError, match=f"note on HOSTQ: .*{said}"):
            program(*bufs, vals=vals)
    with pytest.raises(DeviceError, match="which is no size"):
        program(memory, global_size=(-1, 1, 1), vals=(1,))
    before = one.timeline.value
    assert program(memory, global_size=(0, 1, 1), vals=(1,)) is None
    assert one.timeline.value == before


def test_scalars_with_a_fraction(one: HostQueueDevice) -> None:
    seen: list[float] = []
    program = HostQueueProgram.from_callable(one, "note", seen.append, 0, (dtypes.float32,))
    for value in (0.5, -2.0, 3):
        program(vals=(value,))  # type: ignore[arg-type]
    one.synchronize()
    assert seen == [0.5, -2.0, 3.0] and not program._recorded


def test_few_sizes_of_groups_are_remembered(one: HostQueueDevice) -> None:
    program = HostQueueProgram.from_callable(one, "note", lambda: None, 0)
    for i in range(1, 40):
        program.launch((), Launch(items=(i, 1, 1)))
        assert len(program._recorded) <= 16
    one.synchronize()


def test_a_recorded_launch_keeps_no_program_alive(one: HostQueueDevice) -> None:
    program = HostQueueProgram.from_callable(one, "note", lambda: None, 0)
    program()
    assert program._recorded
    dropped = weakref.ref(program)
    del program
    assert dropped() is None
    one.synchronize()
