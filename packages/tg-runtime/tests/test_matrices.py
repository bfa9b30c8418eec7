"""Dot products of the processor: who has them, and that they compute what the plain loops do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import compile_ast
from tg_codegen.ir.uop import UOps
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, Context, LazyOp, Ops
from tg_lazy import ast as A
from tg_runtime import Buffer, Compiled, CompiledRunner, Device
from tg_runtime.host import arch as arch_module
from tg_runtime.host.arch import MACHINES, CPUArch, this_machine
from tg_shape import ShapeTracker

BYTES = ["vpdpbusd", "vpdpbusd.turned", "vpdpbusd.signed", "vpdpbusd.unsigned", "vpdpwssd"]
BOTH = ["vdpbf16ps", *BYTES, *(f"paired.{name}" for name in BYTES)]
TILES = ["tdpbf16ps", "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"]
NARROW = ("int16", "int8", "uint8")
WORDS = [f"{before}vpmaddwd.{a}.{b}" for before in ("", "paired.") for a in NARROW for b in NARROW]
HELD = "CPU:LLVM:x86_64,haswell"
DEVICES = ["CPU", *([] if CPUArch.parse("x86_64,haswell").machine or CPUArch.parse("haswell").lacking() else [HELD])]
"""This machine, and as far as it goes one of AVX2."""
ST = ShapeTracker.from_shape
M, N, K = 70, 130, 331


@pytest.mark.parametrize(
    ("arch", "names"),
    [
        ("x86_64,skylake-avx512", []), ("x86_64,icelake-server", BOTH[1:]), ("x86_64,znver4", BOTH),
        ("x86_64,sapphirerapids", [*TILES, *BOTH]), ("x86_64,emeraldrapids,-amx-int8", [TILES[0], *BOTH]),
        ("x86_64,sapphirerapids,-amx-tile", BOTH),
        ("x86_64,znver4,-avx512f", WORDS), ("x86_64,znver4,-avx512bf16", BOTH[1:]), ("x86_64,haswell", WORDS),
        ("x86_64,haswell,-avx2", []), ("aarch64", []),
    ],
)  # fmt: skip
def test_who_has_them(arch: str, names: list[str]) -> None:
    assert [found.name for found in CPUArch.parse(arch).target(1).matrices] == names


@pytest.mark.parametrize(
    ("arch", "cycles"), [("znver4", 0.5), ("cooperlake", 0.5), ("sapphirerapids", 2.0), ("emeraldrapids", 2.0)])
def test_how_fast_they_are(arch: str, cycles: float) -> None:
    assert CPUArch.parse(f"x86_64,{arch}").target(1).cpu.pair_product == cycles


@pytest.mark.parametrize(("maker", "cycles"), [("GenuineIntel", -1.0), ("AuthenticAMD", 1.0), ("", 1.0)])
def test_memory_is_this_machines_whatever_instructions_are(
    maker: str, cycles: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as kernels run here; another machine's is not known."""
    monkeypatch.setattr(arch_module, "vendor", lambda: maker)
    assert [CPUArch.parse(arch).target(2).cpu.beside_line for arch in ("", "native,-avx2", "haswell")] == [cycles] * 3
    other = next(name for name in MACHINES if name != this_machine())
    assert CPUArch.parse(other).target(2).cpu.beside_line == 1.0


def product(a: DType, b: DType, acc: DType, m: int, turned: bool) -> LazyOp:
    """``m`` rows times ``N`` columns, which lie one after the other if ``turned``."""
    shape = (m, N, K)
    x = A.cast(A.load(1, a, ST((m, 1, K)).expand(shape)), acc)
    columns = ST((N, K)) if turned else ST((K, N)).permute((1, 0))
    y = A.cast(A.load(2, b, columns.reshape((1, N, K)).expand(shape)), acc)
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    sizes = (BufferArg(acc, m * N), BufferArg(a, m * K), BufferArg(b, K * N))
    return A.sink((A.store(0, ST((m, N, 1)), total),), sizes)


@pytest.mark.parametrize(
    ("a", "b", "acc"),
    [
        (dtypes.uint8, dtypes.int8, dtypes.int32),
        (dtypes.int8, dtypes.uint8, dtypes.int32),
        (dtypes.int8, dtypes.int8, dtypes.int32),
        (dtypes.uint8, dtypes.uint8, dtypes.int32),
        (dtypes.int16, dtypes.int16, dtypes.int32),
        (dtypes.bfloat16, dtypes.bfloat16, dtypes.float32),
    ],
)
@pytest.mark.parametrize(("m", "turned"), [(M, False), (1, True), (3, True)])
@pytest.mark.parametrize("dev", DEVICES)
@pytest.mark.parametrize("slow", [False, True])
def test_products(
    a: DType, b: DType, acc: DType, m: int, turned: bool, dev: str, slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the instructions that the processor has; not with one that is slower than multiply-adds are."""
    with Context(DEV=dev):
        device = Device["CPU"]
    assert isinstance(device, Compiled)
    assert device.renderer is not None
    here = device.renderer.target
    costs = replace(here.cpu, pair_product=2.0 if slow else 0.5)
    monkeypatch.setattr(device.renderer, "target", replace(here, cpu=costs))
    spec = compile_ast(product(a, b, acc, m, turned), device.renderer)
    same = [found for found in here.matrices if {found.a, found.b} == {a, b}]
    has = any(found.paired is turned and not found.tiled for found in same)
    wanted = (has and not (slow and a is dtypes.bfloat16)) or (m == M and any(found.tiled for found in same))
    assert any(u.op is UOps.MATRIX for u in spec.uops) is wanted
    rng = np.random.default_rng(0)

    def values(dtype: DType, *shape: int) -> tuple[Any, Any]:
        if dtype is dtypes.bfloat16:
            kept = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            return kept, (kept.astype(np.uint32) << 16).view(np.float32)
        low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
        kept = rng.integers(max(low, -9000), min(high, 9000) + 1, shape).astype(dtype.name)
        return kept, kept.astype(np.int64)

    (x, left), (y, right) = values(a, m, K), values(b, *((N, K) if turned else (K, N)))
    buffers = [Buffer("CPU", n, d).allocate() for n, d in ((m * N, acc), (m * K, a), (K * N, b))]
    buffers[1].copyin(memoryview(x).cast("B"))
    buffers[2].copyin(memoryview(y).cast("B"))
    CompiledRunner(spec, device)(buffers, {}, wait=True)
    found = np.frombuffer(bytes(buffers[0].as_buffer()), acc.name).reshape(m, N)
    right = right.T if turned else right
    np.testing.assert_allclose(found, left @ right, rtol=1e-5, atol=0 if dtypes.is_int(acc) else 1e-4)


@pytest.mark.parametrize("low", [-128, -127, 127])
@pytest.mark.parametrize(("m", "turned"), [(2, False), (5, False), (7, False), (8, False), (13, False), (61, True)])
@pytest.mark.parametrize("dev", DEVICES)
def test_the_largest_sums_of_bytes(m: int, turned: bool, low: int, dev: str) -> None:
    """Every product is the largest or the smallest that there is: nothing saturates, and no sign is flipped twice."""
    with Context(DEV=dev):
        device = Device["CPU"]
    assert isinstance(device, Compiled)
    assert device.renderer is not None
    spec = compile_ast(product(dtypes.int8, dtypes.int8, dtypes.int32, m, turned), device.renderer)
    x, y = np.full((m, K), low, np.int8), np.full((N, K) if turned else (K, N), -128, np.int8)
    x[:, 3::7], x[-1] = -1, -128
    buffers = [Buffer("CPU", n, d).allocate() for n, d in (
        (m * N, dtypes.int32), (m * K, dtypes.int8), (K * N, dtypes.int8))]
    buffers[1].copyin(x.data.cast("B"))
    buffers[2].copyin(y.data.cast("B"))
    CompiledRunner(spec, device)(buffers, {}, wait=True)
    found = np.frombuffer(bytes(buffers[0].as_buffer()), np.int32).reshape(m, N)
    right = y.astype(np.int64)
    np.testing.assert_array_equal(found, x.astype(np.int64) @ (right.T if turned else right))


def test_tiles_need_a_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there are none, whatever the processor has; what is kept on disk is kept apart; who asks is told."""
    flags = {"avx", "avx2", "fma", "f16c", "avx512f", "amx_tile", "amx_bf16", "amx_int8"}
    monkeypatch.setattr("tg_runtime.host.arch.features", lambda: frozenset(flags))
    monkeypatch.setattr("tg_runtime.host.arch.this_machine", lambda: "x86_64")
    keys = set[str]()
    for permitted in (True, False):
        monkeypatch.setattr("tg_runtime.host.arch.tiles_permitted", permitted.__bool__)
        target = CPUArch.parse("").target(1)
        assert any(found.tiled for found in target.matrices) is permitted
        assert ("amx-tile" in CPUArch.parse("sapphirerapids").lacking()) is not permitted
        assert ("amx-int8" in CPUArch.parse("native,+amx-int8").lacking()) is not permitted
        keys.add(LLVMRenderer(target).key)
    assert len(keys) == 2


TILED = [(dtypes.bfloat16, dtypes.bfloat16, dtypes.float32), *(
    (a, b, dtypes.int32) for a in (dtypes.int8, dtypes.uint8) for b in (dtypes.int8, dtypes.uint8))]


def tiled_device() -> Compiled:
    """This machine, if it has tile registers."""
    with Context(DEV="CPU"):
        device = Device["CPU"]
    assert isinstance(device, Compiled)
    assert device.renderer is not None
    if not any(found.tiled for found in device.renderer.target.matrices):
        pytest.skip("this processor has no tile registers")
    return device


def general_product(a: DType, b: DType, acc: DType, size: tuple[int, int, int, int], ta: bool, tb: bool) -> LazyOp:
    """``relu(x @ y + bias)`` of a batch, rows, columns and terms."""
    batch, m, n, k = size
    shape = (batch, m, n, k)
    left = ST((batch, k, m)).permute((0, 2, 1)) if ta else ST((batch, m, k))
    right = ST((batch, n, k)) if tb else ST((batch, k, n)).permute((0, 2, 1))
    x = A.cast(A.load(1, a, left.reshape((batch, m, 1, k)).expand(shape)), acc)
    y = A.cast(A.load(2, b, right.reshape((batch, 1, n, k)).expand(shape)), acc)
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (3,))
    bias = A.load(3, acc, ST((1, 1, n, 1)).expand((batch, m, n, 1)))
    zero = A.const(0, acc, (batch, m, n, 1))
    result = A.alu(Ops.MAX, A.alu(Ops.ADD, total, bias), zero)
    sizes = (batch * m * n, acc), (batch * m * k, a), (batch * k * n, b), (n, acc)
    buffers = tuple(BufferArg(dtype, count) for count, dtype in sizes)
    return A.sink((A.store(0, ST((batch, m, n, 1)), result),), buffers)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("a", "b", "acc"), TILED)
def test_products_of_tiles(a: DType, b: DType, acc: DType, seed: int) -> None:
    """Of random sizes, batches and orders; integers are exact, and so are small whole numbers of bfloat16."""
    device = tiled_device()
    assert device.renderer is not None
    rng = np.random.default_rng([seed, TILED.index((a, b, acc))])
    m, n, k = (int(rng.integers(least, most)) for least, most in ((33, 300), (32, 300), (64, 1500)))
    batch, ta, tb = int(rng.choice([1, 1, 3])), bool(rng.integers(2)), bool(rng.integers(2))
    spec = compile_ast(general_product(a, b, acc, (batch, m, n, k), ta, tb), device.renderer)
    assert any(u.op is UOps.MATRIX and u.arg.tiled for u in spec.uops)

    def values(dtype: DType, *shape: int) -> tuple[Any, Any]:
        if dtype is dtypes.bfloat16:
            whole = rng.integers(-16, 17, shape)
            return (whole.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), whole
        kept = rng.integers(int(dtypes.min(dtype)), int(dtypes.max(dtype)) + 1, shape).astype(dtype.name)
        return kept, kept.astype(np.int64)

    x, left = values(a, batch, *((k, m) if ta else (m, k)))
    y, right = values(b, batch, *((n, k) if tb else (k, n)))
    bias = rng.integers(-1000, 1000, n).astype(acc.name)
    sizes = (batch * m * n, acc), (x.size, a), (y.size, b), (n, acc)
    buffers = [Buffer("CPU", count, dtype).allocate() for count, dtype in sizes]
    for buffer, kept in zip(buffers[1:], (x, y, bias), strict=True):
        buffer.copyin(memoryview(kept).cast("B"))
    CompiledRunner(spec, device)(buffers, {}, wait=True)
    found = np.frombuffer(bytes(buffers[0].as_buffer()), acc.name).reshape(batch, m, n)
    expected = (left.swapaxes(1, 2) if ta else left) @ (right.swapaxes(1, 2) if tb else right) + bias
    np.testing.assert_array_equal(found, np.maximum(expected, 0))


def test_infinities_and_nan_in_tiles() -> None:
    """They spread over their row and their column, and no further: padding is multiplied with padding alone."""
    device = tiled_device()
    assert device.renderer is not None
    m, k = 37, 67
    spec = compile_ast(general_product(*TILED[0], (1, m, N, k), False, False), device.renderer)
    assert any(u.op is UOps.MATRIX and u.arg.tiled for u in spec.uops)
    x, y = np.ones((m, k), np.float32), np.ones((k, N), np.float32)
    x[3, 5], x[36, 66], y[7, 129] = np.inf, np.nan, np.inf
    buffers = [Buffer("CPU", n, d).allocate() for n, d in (
        (m * N, dtypes.float32), (m * k, dtypes.bfloat16), (k * N, dtypes.bfloat16), (N, dtypes.float32))]
    for buffer, kept in zip(buffers[1:], (x, y), strict=False):
        buffer.copyin((kept.view(np.uint32) >> 16).astype(np.uint16).data.cast("B"))
    buffers[3].copyin(np.zeros(N, np.float32).data.cast("B"))
    CompiledRunner(spec, device)(buffers, {}, wait=True)
    found = np.frombuffer(bytes(buffers[0].as_buffer()), np.float32).reshape(m, N)
    np.testing.assert_array_equal(found[:36], np.maximum(x @ y, 0)[:36])
    assert np.isfinite(found[:3, :129]).all()
