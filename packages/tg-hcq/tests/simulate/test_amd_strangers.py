"""Code objects that clang makes of ``strangers.cl``, on the software cards: each kernel does what numpy says."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_hcq.amd import AMDDevice
from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_runtime import BufferOptions, DevEntry
from tg_runtime.compilers.amdgpu import AMDGPUCompiler
from tg_runtime.device.launch import Launch

Array = NDArray[Any]
SOURCE = Path(__file__).parent / "strangers.cl"
CLANG = shutil.which("clang-19")
ITEMS, GROUPS = 64, 4
COUNT = ITEMS * GROUPS
CDNA = ("gfx942", "gfx950")
ALL = ("gfx1030", "gfx1100", "gfx1201", *CDNA)
BRAINS = ("gfx1100", "gfx1201", "gfx950")
"""Those with products of bfloat16."""
pytestmark = pytest.mark.skipif(CLANG is None, reason="clang-19 is not installed")
N = np.arange(COUNT)
PACKED = np.dtype([("a", "i1"), ("b", "<i4"), ("c", "<i2"), ("d", "<f8")])


class Kernel(NamedTuple):
    """What a kernel of the file is given, and what it stores.

    Attributes:
      given: the input.
      wanted: the output, of that.
      tolerance: relative; of floats whose order of sums is the machine's.
      archs: that can run it.
      n: the last argument.
    """

    given: Array
    wanted: Callable[[Array], Array]
    tolerance: float = 0.0
    archs: tuple[str, ...] = ALL
    n: int = COUNT


def drawn(dtype: str, lanes: int = 1) -> Array:
    """Random numbers, of integers all of them."""
    rng, kind = np.random.default_rng(len(dtype) + 10 * lanes), np.dtype(dtype)
    if kind.kind == "f":
        return (rng.normal(size=COUNT * lanes) * 3).astype(kind)
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, COUNT * lanes, kind, endpoint=True)


def paired(x: Array, lanes: int = 1) -> tuple[Array, Array]:
    """Those of an item and of its neighbour."""
    rows = x.reshape(COUNT, lanes)
    return rows.ravel(), rows[N ^ 1].ravel()


def padded(*values: Any, dtype: str = "i4") -> Array:
    """Few of them, and zeros."""
    found = np.zeros(COUNT, dtype)
    found[: len(values)] = np.array(values).astype(dtype)
    return found


def by_python(function: Callable[..., int], *rows: Array, dtype: str) -> Array:
    """Of Python's integers, which do not overflow; cut to the bits of the result."""
    bits = 8 * np.dtype(dtype).itemsize
    found = (function(*numbers) % (1 << bits) for numbers in zip(*(row.tolist() for row in rows), strict=True))
    return np.array(list(found), f"u{bits // 8}").view(dtype)


def towards_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def clamped(x: Any, dtype: str) -> Array:
    info = np.iinfo(dtype)
    found: Array = np.clip(x, info.min, info.max).astype(dtype)
    return found


def _tiles(x: Array) -> Array:
    squares = x.reshape(GROUPS, 8, 8)
    one = np.stack([squares[t] @ squares[3 - t].T for t in range(GROUPS)]).sum(0)
    found: Array = np.tile(one.ravel(), GROUPS)
    return found


def _shuffles(x: Array) -> Array:
    sums = np.repeat(x.reshape(-1, 32).sum(1, dtype=np.int32), 32)
    first = np.where(WAVE[0] == 32, N // 32 * 32, N // 64 * 64)
    found: Array = sums ^ x[N ^ 3] ^ x[N ^ 1] ^ x[N ^ 5] ^ x[first + 3] ^ x[first]
    return found


WAVE = [32]
"""Lanes of a wave of the card that is tried."""


def _votes(x: Array) -> Array:
    low = (x.view(np.uint32) < 1 << 31).reshape(-1, WAVE[0])
    before: Array = np.cumsum(low, 1) - low
    found: Array = (32 * before + (np.arange(WAVE[0]) & 31)).ravel().astype(np.int32)
    return found


def _atomics(x: Array) -> Array:
    found, few = np.zeros(COUNT, np.int32), x & 7
    found[:7] = [min(x.min(), 0), max(x.max(), 0), x.sum(dtype=np.int32), np.bitwise_xor.reduce(x),
                 np.bitwise_or.reduce(x), x.view(np.uint32).max().view(np.int32), COUNT]  # fmt: skip
    found[8:10] = np.array([x.sum(dtype=np.int64)]).view(np.int32)
    found[10:11] = np.array([few.sum()], np.float32).view(np.int32)
    found[12:14] = np.array([few.sum()], np.float64).view(np.int32)
    found[14:15] = np.array([few.max()], np.float32).view(np.int32)
    return found


def _local_atomics(x: Array) -> Array:
    found = []
    for part in x.reshape(GROUPS, ITEMS):
        total, few = int(part.sum(dtype=np.int64)), part & 7
        found += [part.sum(dtype=np.int32), min(part.min(), 0), part.view(np.uint32).max().view(np.int32),
                  np.bitwise_xor.reduce(part), 3 * ITEMS,
                  np.array([(total >> 32 ^ total) & 0xFFFFFFFF], np.uint32).view(np.int32)[0],
                  part.view(np.uint32).max().view(np.int32), 2 * few.sum() + few.max()]  # fmt: skip
    return np.array(found, np.int32).reshape(GROUPS, 1, 8).repeat(8, 1).ravel()


def _anywhere(x: Array) -> Array:
    """Odd items read and add in LDS, where their neighbour but one reads later; even ones in what they were given."""
    found: Array = np.where(N & 1, x[N ^ 2], x) + 3 * (x + 7)
    return found


def _halves(x: Array) -> Array:
    a, b = (v.reshape(COUNT, 4) for v in paired(x, 4))
    s = np.maximum(a, b) * a - b
    s[:, 0] = np.trunc(a[:, 0] * np.float16(4)) + np.floor(b[:, 0])
    s[:, 1] = (a[:, 1].astype(np.float32) * b[:, 1].astype(np.float32)).astype(np.float16)
    s[:, 3] = np.where(a[:, 3] > b[:, 3], s[:, 3], -a[:, 3])
    return (s + np.abs(b)).ravel()


def _shorts(x: Array) -> Array:
    a, b = (v.astype(np.int64) for v in paired(x, 4))
    s = (a * b + (a >> 3) - (b << (b & 7))).astype(np.int16).astype(np.int64)
    s = np.maximum(s, a) + clamped(a + b, "i2") - clamped(a - s, "i2")
    found: Array = s.astype(np.int16) ^ np.where(a < b, -1, 0).astype(np.int16)
    return found


def _chars(x: Array) -> Array:
    a, b = (v.astype(np.int64) for v in paired(x, 4))
    return clamped((a * b + (a >> 1)).astype(np.int8).astype(np.int64) + b, "i1") ^ np.maximum(a, b).astype(np.int8)


def _int(x: int, other: int) -> int:
    y, u = other >> 10 | 1, x % (1 << 32)
    v, quotient = y % (1 << 32), towards_zero(x, y)
    z = quotient ^ x - quotient * y ^ u // (v | 3) ^ x * y >> 32 ^ u * v >> 32
    z ^= u.bit_count() ^ 32 - (u | 1).bit_length() ^ ((u | 1 << 31) & -(u | 1 << 31)).bit_length() - 1
    z ^= int(f"{u:032b}"[::-1], 2) ^ int.from_bytes(v.to_bytes(4, "little"), "big")
    z ^= int(clamped(x + y, "i4")) ^ max(u - v, 0)
    z %= 1 << 32
    return {0: z + 5, 1: z ^ y, 2: z - x, 3: z * 3, 5: ~z, 7: z << 1, 11: y}.get(u & 15, -z)


def _long(x: int, other: int) -> int:
    y, u = other >> 20 | 1, x % (1 << 64)
    v, quotient = y % (1 << 64), towards_zero(x, y)
    return (quotient ^ x - quotient * y ^ u // (v | 3) ^ x * y ^ x << (y & 63) ^ x >> (y & 31) ^ u >> (v & 7)
            ^ min(x, y))  # fmt: skip


def _in_order(x: Array) -> Array:
    """As the kernel adds, one after another."""
    a, b = paired(x)
    kind = x.dtype.type
    z = ((a / b + np.sqrt(np.abs(a))) + np.floor(b)) + np.rint(a * kind(3))
    terms = (np.minimum(a, b) + np.trunc(a * kind(10))) + np.trunc(b * kind(1e10))
    z = z + (terms + np.trunc(np.abs(b)))
    found: Array = np.where(a < b, z * kind(8), -np.copysign(z, b)).astype(x.dtype)
    return found


def wide(bits: Array) -> Array:
    """bfloat16 as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _brains(x: Array) -> Array:
    a, b = (wide(v) for v in paired(x))
    bits = (a * b + a).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _dots(x: Array) -> Array:
    def dot(a: int, b: int, c: int, bits: int, signed: bool) -> int:
        for at in range(0, 32, bits):
            p, q = (v >> at & (1 << bits) - 1 for v in (a, b))
            c += (p - (p >> bits - 1 << bits)) * (q - (q >> bits - 1 << bits)) if signed else p * q
        return c

    def one(a: int, b: int, c: int) -> int:
        c = (dot(a, b, c, 8, True) ^ dot(a, b, c, 4, True)) % (1 << 32)
        return c ^ dot(a, b, c, 8, False) ^ dot(a, b, c, 4, False)

    return by_python(one, x, x[N ^ 1], x[N ^ 2], dtype="i4")


def _brain_dots(x: Array) -> Array:
    a, b = paired(x)
    parts = [[wide((v >> at & 0xFFFF).astype(np.uint16)).astype(np.float64) for v in (a, b)] for at in (0, 16)]
    (p, q), (r, s) = parts
    found: Array = (1.5 + p * q + r * s).astype(np.float32)
    return found


def _arrays(x: Array) -> Array:
    def one(first: int) -> int:
        a, s = [int(x[(first + i) % COUNT]) for i in range(16)], 0
        for i in range(16):
            a[a[i] & 15] ^= a[i] + i
        for i in range(16):
            s = s * 3 + a[i]
        return s

    return by_python(one, N, dtype="i4")


def _vectors(x: Array) -> Array:
    found = np.zeros(COUNT, np.float32)
    for item in range(COUNT):
        a, group = x[8 * (item & 31) : 8 * (item & 31) + 8].copy(), item // ITEMS
        at, other = int(x[group]) & 7, int(x[group + 9]) & 7
        a[at] = a[other] + 1
        found[item] = a[at ^ 1] + 2 * a[at] + 4 * a[0]
    return found


def _calls(x: Array) -> Array:
    def f(a: int, b: int) -> int:
        return a * (b & 7) + b

    def g(a: int, b: int) -> int:
        return f(a, b) - f(b, a) if a > 3 else a ^ b

    return by_python(lambda a, b: g(a, b) + (f if a & 1 else g)(a, 3), *paired(x), dtype="i4")


def _structs(x: Array) -> Array:
    s = x.view(PACKED)[:COUNT]
    whole = s["a"].astype(np.int64) + s["b"] + s["c"]
    found: Array = whole.astype(np.int32).astype(np.float64) + s["d"]
    return found


def _buffers(x: Array) -> Array:
    words, found = np.concatenate([x[:200], np.zeros(2000, np.uint32)]), np.zeros(COUNT, np.uint32)
    data = words.view(np.uint8)
    for item in range(COUNT):
        lane = item % ITEMS
        x4 = words[64 + 4 * lane :][:4]
        short = 0 if lane & 1 else int(data[6 * lane : 6 * lane + 2].view(np.uint16)[0])
        at = (item ^ 1) + (item & 128) // 4
        value = words[item + 64] ^ words[2 * item + 4] ^ words[2 * item + 5] ^ x4[0] ^ x4[3] ^ data[5 * item] ^ short
        if at < 200:
            found[at] = value
    return found


def _structured() -> Array:
    rng = np.random.default_rng(2)
    found = np.zeros(COUNT, PACKED)
    found["a"], found["b"] = rng.integers(-100, 100, COUNT), rng.integers(-(1 << 20), 1 << 20, COUNT)
    found["c"], found["d"] = rng.integers(-9999, 9999, COUNT), rng.normal(size=COUNT)
    return found


KERNELS = {
    "saxpy": Kernel(drawn("f4"), lambda x: (np.float64(2.5) * x + 1).astype(np.float32), 1e-6),
    "reduction": Kernel(drawn("f4"), lambda x: np.repeat(x.reshape(GROUPS, ITEMS).sum(1), ITEMS), 1e-4),
    "tiles": Kernel(drawn("f4"), _tiles, 1e-4),
    "shuffles": Kernel(drawn("i4"), _shuffles),
    "scan": Kernel(drawn("i4"), lambda x: np.cumsum(x.reshape(-1, 16), 1, dtype=np.int32).ravel()),
    "votes": Kernel(drawn("i4"), _votes),
    "histogram": Kernel(drawn("u4"), lambda x: padded(*np.bincount(x & 15, minlength=16), dtype="u4")),
    "atomics": Kernel(drawn("i4"), _atomics),
    "local_atomics": Kernel(drawn("i4"), _local_atomics),
    "anywhere": Kernel(drawn("i4"), _anywhere, archs=ALL[1:]),
    "halves": Kernel(drawn("f2", 4), _halves, 1e-2),
    "shorts": Kernel(drawn("i2", 4), _shorts),
    "chars": Kernel(drawn("i1", 4), _chars),
    "ints": Kernel(drawn("i4"), lambda x: by_python(_int, *paired(x), dtype="i4")),
    "longs": Kernel(drawn("i8"), lambda x: by_python(_long, *paired(x), dtype="i8")),
    "floats": Kernel(drawn("f4"), _in_order, 1e-5),
    "doubles": Kernel(drawn("f8"), _in_order, 1e-12),
    "brains": Kernel((drawn("f4").view(np.uint32) >> 16).astype(np.uint16), _brains),
    "dots": Kernel(drawn("i4"), _dots),
    "brain_dots": Kernel((drawn("f4").view(np.uint32) >> 16) * np.uint32(0x10001), _brain_dots, 1e-4, BRAINS),
    "arrays": Kernel(drawn("i4"), _arrays),
    "vectors": Kernel(np.abs(drawn("f4")), _vectors, 1e-6),
    "calls": Kernel(drawn("i4"), _calls),
    "structs": Kernel(_structured(), _structs, 1e-12),
    "sizes": Kernel(drawn("u4"), lambda x: x * ITEMS + COUNT),
    "passing": Kernel(drawn("i4"), lambda x: x + x + 1),
    "buffers": Kernel(drawn("u4"), _buffers, archs=ALL[:4], n=200),
}  # fmt: skip


def compiled(arch: str, level: int, folder: Path, *options: str) -> bytes:
    """The code object. Of gfx950, which clang 19 does not know, LLVM makes it of what clang makes for gfx942."""
    known = "gfx942" if arch == "gfx950" else arch
    target = folder / ("code.ll" if known != arch else "code.o")
    assert CLANG is not None
    command = [CLANG, "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", f"-mcpu={known}", "-nogpulib", "-w",
               f"-O{level}", *options, *(["-S", "-emit-llvm", "-DAS_GFX950"] if known != arch else ["-c"])]  # fmt: skip
    subprocess.run([*command, str(SOURCE), "-o", str(target)], check=True)
    if known == arch:
        return target.read_bytes()
    text = re.sub(r' "target-(cpu|features)"="[^"]*"', "", target.read_text(encoding="utf-8"))
    return AMDGPUCompiler(arch, level).compile(text)


def close(got: Array, wanted: Array, tolerance: float) -> bool:
    """Whether they are the same, of floats with the tolerance."""
    if not tolerance:
        return got.tobytes() == wanted.tobytes()
    return bool(np.allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance))


def wrong(arch: str, level: int, folder: Path) -> dict[str, str]:
    """Kernels that are refused, or store something else."""
    image, found = compiled(arch, level, folder), dict[str, str]()
    WAVE[0] = 64 if arch in CDNA else 32
    device = AMDDevice("AMD", DevEntry("AMD", arch=arch), system=KfdSystem(arch))
    for name, kernel in KERNELS.items():
        if arch not in kernel.archs:
            continue
        wanted = kernel.wanted(kernel.given)
        out, given = (device.allocator.alloc(1 << 13, BufferOptions(host=True)) for _ in range(2))
        out.host_view("B").write(0, bytes(1 << 13))
        given.host_view("B").write(0, kernel.given.tobytes())
        launch = Launch(groups=(GROUPS, 1, 1), items=(ITEMS, 1, 1), vals=[kernel.n], wait=True)
        try:
            assert device.runtime is not None
            program: Any = device.runtime(name, image)
            program.launch([out, given], launch)
        except Exception as error:
            found[name] = str(error)[:300]
            device.close()
            device = AMDDevice("AMD", DevEntry("AMD", arch=arch), system=KfdSystem(arch))
            continue
        got = np.frombuffer(bytes(out.host_view("B").read(0, wanted.nbytes)), wanted.dtype)
        if not close(got, wanted, kernel.tolerance):
            differ = np.flatnonzero(got != wanted)
            found[name] = f"{len(differ)} differ: at {differ[0]} {got[differ[0]]}, not {wanted[differ[0]]}"
    device.close()
    return found


@pytest.mark.parametrize("arch", [
    arch if arch in ("gfx1100", "gfx942") else pytest.param(arch, marks=pytest.mark.slow) for arch in ALL
])  # fmt: skip
def test_each_kernel_does_what_numpy_says(arch: str, tmp_path: Path) -> None:
    assert wrong(arch, 2, tmp_path) == {}


def test_a_replayed_launch_has_a_packet_of_its_own(tmp_path: Path) -> None:
    """With other sizes of the grid, whose arguments lie elsewhere; the kernel looks at its queue, too."""
    image, wanted = compiled("gfx1100", 2, tmp_path, "-mcode-object-version=4", "-DVERSION_4"), KERNELS["sizes"]
    device = AMDDevice("AMD", DevEntry("AMD", arch="gfx1100"), system=KfdSystem("gfx1100"))
    out, given = (device.allocator.alloc(1 << 13, BufferOptions(host=True)) for _ in range(2))
    given.host_view("B").write(0, wanted.given.tobytes())
    assert device.runtime is not None
    program: Any = device.runtime("sizes", image)
    for groups in (1, 3, 2, GROUPS):
        program.launch([out, given], Launch(groups=(groups, 1, 1), items=(ITEMS, 1, 1), vals=[COUNT], wait=False))
        device.synchronize()
        got = np.frombuffer(bytes(out.host_view("B").read(0, 4 * ITEMS * groups)), "u4")
        assert (got == wanted.given[: len(got)] * ITEMS + ITEMS * groups).all(), groups
    device.close()


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("arch", ALL)
def test_at_other_levels(arch: str, level: int, tmp_path: Path) -> None:
    """Without optimisation every kernel asks for its dispatch packet."""
    assert wrong(arch, level, tmp_path) == {}
