"""Updates side by side: in parts, and in segments of sorted positions, they are what a loop over the values does."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tg_codegen import compile_ast
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_frontend import Tensor
from tg_frontend.autograd.functions import parallel_updates
from tg_frontend.ops.updating import update
from tg_lazy import Context, Ops
from tg_lazy.cost import LIMITS, Limits
from tg_runtime import Device

COMBINE: dict[str, Any] = {"add": np.add.at, "multiply": np.multiply.at, "maximum": np.maximum.at}
SHAPES = [
    ((5,), 3001, 0), ((3001,), 5003, 0), ((1,), 2000, 0), ((997, 7), 4001, 0), ((3, 211), 2111, 1),
    ((2, 97, 3), 1999, 1), ((10007,), 10007, 0), ((2, 1, 5), 1031, 1),
]  # fmt: skip


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways that were gone."""
    gone: list[str] = []
    for name in ("_in_parts", "_in_segments", "updated_in_order"):
        function = getattr(parallel_updates, name)

        def noted(*args: Any, name: str = name, function: Any = function) -> Any:
            gone.append(name)
            return function(*args)

        monkeypatch.setattr(parallel_updates, name, noted)
    return gone


def many(monkeypatch: pytest.MonkeyPatch, units: int) -> None:
    """The CPU counts as a device with so many work-items."""
    Tensor([0], device="CPU").realize()
    monkeypatch.setitem(LIMITS, "CPU", Limits(units=units))


def loop(table: Any, index: Any, value: Any, op: str, axis: int) -> Any:
    """What an update does."""
    out = table.copy()
    inside = (index >= 0) & (index < table.shape[axis])
    at = [grid[inside] for grid in np.indices(index.shape)]
    at[axis] = index[inside]
    if op == "write":
        for place, new in zip(zip(*at, strict=True), value[inside], strict=True):
            out[place] = new
    else:
        COMBINE[op](out, tuple(at), value[inside])
    return out


@pytest.mark.drawn(4)
@pytest.mark.parametrize("shape, values, axis", SHAPES)
@pytest.mark.parametrize("op, units", [
    ("add", 300), ("add", 1 << 16), ("multiply", 1 << 16), ("maximum", 1 << 16), ("write", 300), ("write", 1 << 16),
])  # fmt: skip
def test_any_way_is_that_of_a_loop(
    monkeypatch: pytest.MonkeyPatch, ways: list[str], units: int, shape: tuple[int, ...], values: int, axis: int,
    op: str,
) -> None:  # fmt: skip
    many(monkeypatch, units)
    rng = np.random.default_rng(values + units)
    n = shape[axis]
    full = tuple(values if i == axis else dim for i, dim in enumerate(shape))
    single = tuple(values if i == axis else 1 for i in range(len(shape)))
    table = rng.integers(-3, 4, shape).astype(np.int32)
    with Context(DEV="CPU"):
        for kind in ("few", "any", "one for all"):
            index = rng.integers(-2, n + 2, values if kind == "one for all" else full)
            index = np.where(rng.random(index.shape) < 0.02, -(1 << 20), index)
            if kind == "few":
                index = np.where(rng.random(full) < 0.9, n // 2, index)
            wide = np.broadcast_to(index.reshape(single), full) if kind == "one for all" else index
            value = rng.integers(-2, 3, full).astype(np.int32)
            got = update(Tensor(table), Tensor(index.astype(np.int32)), Tensor(value), op, axis)
            np.testing.assert_array_equal(got.numpy(), loop(table, wide, value, op, axis))
    if units > 300:
        assert {"_in_parts", "_in_segments"} & set(ways)


def test_each_way_is_gone_where_it_suits(monkeypatch: pytest.MonkeyPatch, ways: list[str]) -> None:
    many(monkeypatch, 1 << 16)
    with Context(DEV="CPU"):
        for size, values, way in ((16, 100_000, "_in_parts"), (100_000, 100_000, "_in_segments"),
                                  (16, 20, "updated_in_order")):
            ways.clear()
            update(Tensor.zeros(size), Tensor.zeros(values, dtype="int32"), Tensor.ones(values))
            assert ways[0] == way
        ways.clear()
        update(Tensor.zeros(16), Tensor.zeros(100_000, dtype="int32"), Tensor.ones(100_000), "write")
        assert ways[0] == "_in_segments"
        with Context(STRICT=1):
            ways.clear()
            update(Tensor.zeros(16), Tensor.zeros(100_000, dtype="int32"), Tensor.ones(100_000))
            assert ways == ["updated_in_order"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("op", ["add", "write"])
@pytest.mark.parametrize("most", [1, 40, 5003])
def test_what_is_said_to_be_distinct_is(monkeypatch: pytest.MonkeyPatch, op: str, most: int) -> None:
    many(monkeypatch, 1 << 16)
    said, function = list[Any](), parallel_updates._distinct

    def noted(table: Any, at: Any, new: Any, op: Any) -> Any:
        said.append(at)
        return function(table, at, new, op)

    monkeypatch.setattr(parallel_updates, "_distinct", noted)
    monkeypatch.setattr(parallel_updates, "update_sorts", lambda *_: True)
    rng = np.random.default_rng(most)
    with Context(DEV="CPU"):
        index = rng.integers(-1, most, (2, 5003)).astype(np.int32)
        update(Tensor.zeros(2, 5003), Tensor(index), Tensor.ones(2, 5003), op, 1).realize()
        assert said
        for at in said:
            for row in Tensor([0])._wrap(at).numpy():
                inside = row[(row >= 0) & (row < 5003)]
                assert len(set(inside.tolist())) == len(inside)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("size", [16, 5003])
def test_floats_that_are_not_finite(monkeypatch: pytest.MonkeyPatch, ways: list[str], size: int) -> None:
    many(monkeypatch, 1 << 16)
    rng = np.random.default_rng(size)
    index = rng.integers(0, size, 5003).astype(np.int32)
    value = rng.integers(-2, 3, 5003).astype(np.float32)
    value[rng.integers(0, 5003, 9)] = [np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf, np.inf, -0.0, 0.0]
    table = rng.integers(-2, 3, size).astype(np.float32)
    with Context(DEV="CPU"):
        for op in ("add", "maximum", "write"):
            with np.errstate(all="ignore"):
                want = loop(table, index, value, op, 0)
            got = [update(Tensor(table), Tensor(index), Tensor(value), op).numpy() for _ in range(2)]
            np.testing.assert_array_equal(got[0], want)
            np.testing.assert_array_equal(got[0], got[1])
    assert "updated_in_order" in ways and len(set(ways)) > 1


@pytest.mark.parametrize("what", ["sort", "scatter", "histogram", "embedding"])
def test_no_kernel_of_a_gpu_is_long_and_serial(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    many(monkeypatch, 1 << 16)
    n, renderer = 100_003, OpenCLRenderer()
    with Context(DEV="CPU"):
        index = Tensor(np.random.default_rng(0).integers(0, n, n).astype(np.int32)).realize()
        values = Tensor(np.ones((n, 1), np.float32)).realize()
        if what == "sort":
            out = Tensor(np.ones(n, np.float32)).realize().argsort()
        elif what == "scatter":
            out = Tensor.zeros(n).contiguous().realize().scatter_add(0, index, values.reshape(n))
        elif what == "histogram":
            out = update(Tensor.zeros(64).contiguous().realize(), index, values.reshape(n))
        else:
            out = Tensor.zeros(n, 5).contiguous().realize().index_add(0, index, values.expand(n, 5).contiguous())
        kernels = 0
        for item in out.schedule():
            if item.ast.op is not Ops.SINK:
                continue
            spec = compile_ast(item.ast, renderer)
            items = prod(int(size) for size in (*spec.global_size, *spec.local_size))
            steps = prod(int(dim) for dim in item.ast.src[0].shape) / items
            assert steps <= 512, (steps, spec.actions)
            kernels += 1
        assert kernels > 2


@pytest.mark.drawn(1)  # a driver compiles each for seconds
@pytest.mark.parametrize(("size", "op"), [(0, "argsort"), (7, "add"), (2003, "maximum"), (2003, "write")])
def test_work_items_share_out_rows(size: int, op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if "CL" not in Device.available():
        pytest.skip("the device CL is not available here")
    rng = np.random.default_rng(1)
    with Context(DEV="CL"):
        Tensor([0]).realize()
        monkeypatch.setitem(LIMITS, "CL", Limits(units=1 << 12))
        if op == "argsort":
            keys = rng.integers(0, 99, 3001).astype(np.int16)
            assert np.array_equal(Tensor(keys).argsort().numpy(), np.argsort(keys, kind="stable"))
            return
        index, value = rng.integers(-1, size + 1, 3001).astype(np.int32), rng.integers(-3, 4, 3001).astype(np.int32)
        table = rng.integers(-3, 4, size).astype(np.int32)
        got = update(Tensor(table), Tensor(index), Tensor(value), op)
        np.testing.assert_array_equal(got.numpy(), loop(table, index, value, op, 0))


FLOATS = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)


def numbers(rng: np.random.Generator, size: Any, dtype: str) -> Any:
    """Any numbers of a dtype, some of them often; of floats also those that are not finite."""
    if dtype.startswith("float"):
        return np.where(rng.random(size) < 0.3, rng.choice(FLOATS, size), rng.integers(-9, 9, size)).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    some = rng.choice(np.array([low, high, 0, 1], dtype), size)
    return np.where(rng.random(size) < 0.3, some, rng.integers(low, high, size, dtype, endpoint=True))


def drawn_program(rng: np.random.Generator) -> tuple[Any, Any]:
    """What a step of a random program finds, and what numpy does: an update, an order, a search or a set."""
    dtype = str(rng.choice(["int8", "uint16", "int32", "uint32", "int64", "float16", "float32", "float64"]))
    n, size = int(rng.choice([1, 2, 127, 131, 997, 2003, 4096])), int(rng.choice([1, 3, 61, 256, 1009, 3001]))
    x = numbers(rng, n, dtype)
    what = rng.choice(["update", "sort", "topk", "unique", "searchsorted", "lookup"])
    if what == "update":
        op = str(rng.choice(["add", "maximum", "write"]))
        kind = str(rng.choice(["int8", "uint8", "int64", "uint32"]))
        index, table = numbers(rng, n, kind), numbers(rng, size, dtype)
        if rng.random() < 0.7:
            index = rng.integers(0, min(size, 128), n).astype(kind)
        if op == "add" and dtype.startswith("float"):  # any order of sums is exact
            x, table = (rng.integers(-3, 4, length).astype(dtype) for length in (n, size))
        with np.errstate(all="ignore"):
            return update(Tensor(table), Tensor(index), Tensor(x), op), loop(table, index, x, op, 0)
    if what == "sort":
        return Tensor(x).argsort(), np.argsort(x, kind="stable")
    if what == "topk":
        k = int(rng.integers(1, n + 1))
        return Tensor(x).topk(k, largest=False)[0], np.sort(x)[:k]
    if what == "unique":
        return Tensor(x).unique(), np.unique(x)
    if what == "searchsorted":
        x = np.sort(x)
        values = numbers(rng, size, dtype)
        return Tensor(x).searchsorted(Tensor(values)), np.searchsorted(x, values)
    index = rng.integers(-n, n + 3, size)
    found = Tensor(x)[Tensor(index)]
    return found, np.where(index < n, x[np.minimum(index, n - 1)], 0)


@pytest.mark.drawn(8)
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = np.random.default_rng(seed)
    many(monkeypatch, int(rng.choice([2, 64, 1000, 1 << 16])))
    with Context(DEV="CPU"):
        found, want = drawn_program(rng)
        np.testing.assert_array_equal(found.numpy(), want)
