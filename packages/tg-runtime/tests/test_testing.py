"""The conformance class itself: groups that cover it, and tests that fail when they should."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from itertools import accumulate, permutations
from typing import Any

import numpy as np
import pytest

from tg_dtype import DType, dtypes, truncate
from tg_lazy import ALU, Context, Ops
from tg_runtime import Device
from tg_runtime.backends.numpy import ops as numpy_ops
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.base import Absent, Group
from tg_runtime.testing.conformance import groups
from tg_runtime.testing.launches import _MOST_GROWTH
from tg_runtime.testing.report import ABSENT, FAILED, PASSED, claimed, outcomes
from tg_runtime.testing.shapes import Views


def test_every_test_is_in_one_group() -> None:
    found = [name for names in groups().values() for name in names]
    assert sorted(found) == sorted(name for name in dir(DeviceConformance) if name.startswith("test_"))
    assert len(found) == len(set(found))


def test_no_group_hides_a_helper_of_another() -> None:
    parts = [vars(part) for part in DeviceConformance.__mro__ if issubclass(part, Group)]
    names = [n for part in parts for n in part if not n.startswith("__") and n != "group" and not n.startswith("_abc")]
    assert len(names) == len(set(names)), sorted(n for n in set(names) if names.count(n) > 1)


def test_outcomes() -> None:
    found = {outcome.group: outcome for outcome in outcomes("NUMPY", lambda group: group in ("views", "graph replay"))}
    assert found["views"].status == PASSED
    assert found["views"].tests == len(groups()["views"])
    assert found["graph replay"].status == ABSENT
    assert found["graph replay"].detail == "NUMPY has no graphs"


def test_a_failure_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Views, "test_iota", lambda self: self.check("iota", [1, 2], [1, 3]))
    (found,) = outcomes("NUMPY", lambda group: group == "views")
    assert found.status == FAILED
    assert found.detail == "test_iota: NUMPY iota: element 1 is 2, 3 was expected"


def subject() -> DeviceConformance:
    made = DeviceConformance()
    made.launches = 500
    made.setup_method()
    return made


def test_what_a_launch_leaves_behind_is_seen() -> None:
    one, left = subject(), []
    try:
        with pytest.raises(AssertionError, match="left .* behind"):
            one._grows_not(lambda: left.append([bytearray(8192)]))
        one._grows_not(lambda: bytearray(8192))
    finally:
        one.teardown_method()


@pytest.mark.parametrize(
    ("grown", "leaks"),
    [
        ([(_MOST_GROWTH - 1, 99)], False), ([(_MOST_GROWTH, 0)] * 3, True), ([(0, 100)] * 3, True),
        ([(_MOST_GROWTH, 100)] * 2 + [(0, 0)], False),  # made once, though not at the first step
    ],
)  # fmt: skip
def test_what_is_held_must_stop_growing(
    grown: list[tuple[int, int]], leaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = accumulate(grown, lambda held, more: (held[0] + more[0], held[1] + more[1]), initial=(1 << 30, 1000))
    monkeypatch.setattr(DeviceConformance, "_held", lambda self: next(readings))
    one = subject()
    try:
        with pytest.raises(AssertionError, match="left .* behind") if leaks else nullcontext():
            one._grows_not(lambda: None, 1)
    finally:
        one.teardown_method()
    assert not list(readings), "it looks again while something grows"


def test_a_device_that_executes_nothing_compares_nothing() -> None:
    one = DeviceConformance()
    one.device = "NULL"
    with Context(DEV="NULL"):
        one.check("nothing", [1], [2])
        with pytest.raises(Absent, match="NULL has no memory"):
            one.test_copies()


def test_claimed_dtypes() -> None:
    with Context(DEV="NULL:WGSL"):
        assert "float64" not in [d.name for d in claimed(Device["NULL"])]
        assert "bfloat16" in [d.name for d in claimed(Device["NULL"])]


def test_the_program() -> None:
    command = [sys.executable, "-m", "tg_runtime.testing", "--json", "--group", "views", "NUMPY"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == PASSED
    done = subprocess.run([*command, "NOSUCH"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert "NOSUCH" in done.stderr


# a device that computes something else is found out


def notices(test: Callable[[DeviceConformance], None], *kinds: DType) -> bool:
    """Whether a test of the class fails on the device as it is now, where it tests these dtypes."""
    one = subject()
    one.dtypes = kinds or dtypes.all
    try:
        test(one)
    except AssertionError:
        return True
    finally:
        one.teardown_method()
    return False


def other(x: Any) -> Any:
    """An array of which one element is another one: by so much that no tolerance is meant for it."""
    found = np.array(x)
    place = tuple(np.argwhere(np.isfinite(found))[-1])
    found[place] = not found[place] if found.dtype == np.bool_ else 1 if found[place] == 0 else found[place] / 2
    return found


@pytest.mark.parametrize("op", [op for op in Ops if op in ALU and op not in (Ops.CAST, Ops.BITCAST)])
def test_one_wrong_element_of_an_op_is_noticed(op: Ops, monkeypatch: pytest.MonkeyPatch) -> None:
    right = numpy_ops.fxn_for_op[op]
    kinds = [d for d in (dtypes.int16, dtypes.float32) if DeviceConformance()._takes(op, d)]
    assert kinds and not notices(DeviceConformance.test_elementwise, *kinds)
    monkeypatch.setitem(numpy_ops.fxn_for_op, op, lambda *operands: other(right(*operands)))
    for kind in kinds:
        assert notices(DeviceConformance.test_elementwise, kind), kind


@pytest.mark.parametrize("kind", [d for d in dtypes.all if dtypes.is_int(d)], ids=lambda d: d.name)
def test_a_shift_that_is_wrong_for_one_amount_is_noticed(kind: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = random.randrange(kind.bits)
    for op in (Ops.SHL, Ops.SHR):
        right = numpy_ops.fxn_for_op[op]
        for amount in {0, 1, kind.bits // 2, kind.bits - 1, drawn}:

            def shifted(x: Any, by: Any, right: Any = right, amount: int = amount) -> Any:
                return np.where(by == amount, right(x, by) ^ 1, right(x, by))

            with monkeypatch.context() as patch:
                patch.setitem(numpy_ops.fxn_for_op, op, shifted)
                assert notices(DeviceConformance.test_elementwise, kind), (op, amount)


def test_a_product_may_be_rounded_before_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices may round once or twice: where product and sum cancel, the results have nothing in common."""

    def above(a: Any, b: Any, c: Any) -> Any:
        return np.nextafter(a * b, np.array(np.inf, a.dtype)) + c

    for kind in (dtypes.float16, dtypes.float32, dtypes.float64):
        factors = [0.0, *(truncate(random.uniform(1, 2), kind) for _ in range(kind.bits))]
        operands = iter([factors, factors, [truncate(-x * x, kind) for x in factors]])
        with monkeypatch.context() as patch:
            patch.setattr(DeviceConformance, "values", lambda *_, operands=operands, **__: next(operands))
            patch.setitem(numpy_ops.fxn_for_op, Ops.MULACC, above)
            assert not notices(DeviceConformance.test_elementwise, kind), kind


SIZES = sorted({d.itemsize for d in dtypes.all})


@pytest.mark.parametrize("op", [Ops.CAST, Ops.BITCAST])
@pytest.mark.parametrize("nbytes", SIZES)
def test_one_wrong_conversion_is_noticed(op: Ops, nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right, kinds = numpy_ops.fxn_for_op[op], [d for d in dtypes.all if d.itemsize == nbytes]
    test = DeviceConformance.test_casts if op is Ops.CAST else DeviceConformance.test_bitcasts
    for pair in permutations(kinds, 2):
        if op is Ops.BITCAST and dtypes.bool in pair:
            continue

        def wrong(x: Any, src: DType, dst: DType, pair: tuple[DType, ...] = pair) -> Any:
            return other(right(x, src, dst)) if (src, dst) == pair else right(x, src, dst)

        monkeypatch.setitem(numpy_ops.fxn_for_op, op, wrong)
        assert notices(test, *pair), pair
    monkeypatch.setitem(numpy_ops.fxn_for_op, op, right)
    assert not notices(test, *kinds)


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX])
def test_a_reduction_that_leaves_out_its_last_term_is_noticed(op: Ops, monkeypatch: pytest.MonkeyPatch) -> None:
    right = numpy_ops._REDUCE[op]

    def shorter(x: Any, axes: tuple[int, ...], start: Any) -> Any:
        return right(np.delete(x, -1, axes[-1]), axes, start)

    for kind in (dtypes.int32, dtypes.float32):
        assert not notices(DeviceConformance.test_reductions, kind)
        with monkeypatch.context() as patch:
            patch.setitem(numpy_ops._REDUCE, op, shorter)
            assert notices(DeviceConformance.test_reductions, kind), kind


@pytest.mark.parametrize("name", groups()["sub-buffers"])
def test_what_a_device_says_that_it_lacks_is_not_tried(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(Device["NUMPY"].allocator), "supports_offset", False)
    one = subject()
    try:
        with pytest.raises(Absent, match="has no sub-buffers"):
            getattr(one, name)()
    finally:
        one.teardown_method()
