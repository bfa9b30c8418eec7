"""Tensors on AMD's software cards: two cards of one machine, functions that are recorded, profiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tg_hcq.amd import AMDDevice
from tg_lazy import Context
from tg_runtime import Device, profile
from tg_runtime.testing.trace import check_nesting, spans
from tinytg import Tensor, TinyJit, dtypes

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
CARDS = "MOCKKFD+AMD:LLVM:gfx1100"
rng = np.random.default_rng(20)


def test_cards_copy_to_one_another() -> None:
    data = rng.normal(size=(37, 53)).astype(np.float32)
    with Context(DEV=CARDS):
        here = (Tensor(data, device="AMD") * 2).realize()
        there = (here.to("AMD:1") + 1).realize()
        back = (there.to("AMD") * there.sum().to("AMD")).numpy()
        one, other = Device["AMD"], Device["AMD:1"]
    assert isinstance(one, AMDDevice) and isinstance(other, AMDDevice) and one.system is other.system
    assert one.node.gpu_id != other.node.gpu_id
    expected = data * 2 + 1
    np.testing.assert_allclose(back, expected * expected.sum(dtype=np.float64), rtol=1e-4)


MORE = {"gfx1100": [], "gfx1201": [], "gfx942": ["float32"], "gfx950": ["fp8e4m3", "float32"]}
"""Dtypes beside those that all of them multiply."""


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "arch", ["gfx1100", *(pytest.param(arch, marks=pytest.mark.slow) for arch in ("gfx1201", "gfx942", "gfx950"))]
)
def test_products_by_matrix_instructions(arch: str) -> None:
    """The card's author and the planner's read the registers' layout in the manuals by themselves."""
    m, n, k = (16 * int(rng.integers(1, 4)) + int(rng.integers(0, 9)) for _ in range(3))
    with Context(DEV=f"MOCKKFD+AMD:LLVM:{arch}"):
        for name in ("float16", "bfloat16", *MORE[arch]):
            dtype = getattr(dtypes, name)
            x, y = (Tensor(rng.uniform(-1, 1, size).astype(np.float32), device="AMD").cast(dtype).realize()
                    for size in ((m, k), (k, n)))  # fmt: skip
            # a product of whole operands: the cast after it is another kernel's
            got = (x.cast(dtypes.float32) @ y.cast(dtypes.float32)).numpy()
            expected = x.cast(dtypes.float32).numpy() @ y.cast(dtypes.float32).numpy()
            np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3, err_msg=f"{arch} {name} {m} {n} {k}")
        for name in ("int8", "uint8"):
            low, high = (-128, 128) if name == "int8" else (0, 256)
            a, b = (rng.integers(low, high, size).astype(name) for size in ((m, k), (k, n)))
            whole = (Tensor(part, device="AMD").realize().cast(dtypes.int32) for part in (a, b))
            product = next(whole) @ next(whole)
            assert (product.numpy() == a.astype(np.int64) @ b.astype(np.int64)).all(), f"{arch} {name} {m} {n} {k}"


@pytest.mark.parametrize("card", ["MOCKKFD+AMD:LLVM:gfx1100", "MOCKKFD+AMD:LLVM:gfx942"])
def test_what_is_recorded_is_replayed(card: str) -> None:
    """Several kernels, with a reduction between them, and other inputs each time."""

    def step(x: Tensor, y: Tensor) -> Tensor:
        return ((x - x.mean(axis=1, keepdim=True)).exp2() * y).contiguous().sum(axis=0).realize()

    with Context(DEV=card):
        recorded = TinyJit(step)
        for _ in range(6):
            x, y = (rng.normal(size=(19, 23)).astype(np.float32) for _ in range(2))
            got = recorded(Tensor(x, device="AMD").realize(), Tensor(y, device="AMD").realize()).numpy()
            expected = (np.exp2(x - x.mean(axis=1, keepdims=True)) * y).sum(axis=0)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_kernels_and_copies_are_on_the_hosts_clock(tmp_path: Path) -> None:
    with Context(DEV=CARDS), profile(tmp_path / "trace.json") as recorded:
        (Tensor(rng.normal(size=1000).astype(np.float32), device="AMD") + 1).sum().numpy()
    trace = recorded.trace()
    assert recorded.lost == 0
    check_nesting(trace)
    tracks = spans(trace)
    kernels, copies = tracks["AMD", "compute queue"], tracks["AMD", "copy queue"]
    assert kernels and {"copyin", "copyout"} <= {event["name"] for event in copies}
    (label,) = [row["args"]["labels"] for row in trace["traceEvents"] if row["name"] == "process_labels"]  # type: ignore[attr-defined]
    error = float(label.split()[2])
    assert label.startswith("clock within ") and 0 < error < 100_000
    launches = [event for event in tracks["host", "MainThread"] if event["cat"] == "launch"]
    for kernel in kernels:
        begun = min(launch["ts"] for launch in launches if launch["name"].endswith(kernel["name"]))
        assert kernel["ts"] >= begun - error and kernel["dur"] > 0


def test_kernels_of_a_replay_are_on_the_hosts_clock(tmp_path: Path) -> None:
    """Each kernel of a graph has its own time, after the launch of the whole."""

    def step(x: Tensor) -> Tensor:
        return (x - x.mean(axis=1, keepdim=True)).exp2().contiguous().sum(axis=0).realize()

    with Context(DEV=CARDS):
        recorded, x = TinyJit(step), Tensor(rng.normal(size=(19, 23)).astype(np.float32), device="AMD").realize()
        for _ in range(4):
            recorded(x).numpy()
        with profile(tmp_path / "trace.json") as profiled:
            recorded(x).numpy()
    trace = profiled.trace()
    check_nesting(trace)
    tracks = spans(trace)
    (graph,) = [event for event in tracks["host", "MainThread"] if event["name"].startswith("launch graph of")]
    (label,) = [row["args"]["labels"] for row in trace["traceEvents"] if row["name"] == "process_labels"]  # type: ignore[attr-defined]
    kernels, error = tracks["AMD", "compute queue"], float(label.split()[2])
    assert len({kernel["name"] for kernel in kernels}) > 1 and profiled.lost == 0
    assert all(kernel["ts"] >= graph["ts"] - error and kernel["dur"] > 0 for kernel in kernels)
