"""Matrix products of the software GPU of AMD against Python's integers: sums that are exact in any order.

Where elements lie is said once more here: *RDNA3 Instruction Set Architecture* 7.9, *RDNA4* 7.12, *MI300* 7.1.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.registers import FLOATS
from tg_hcq.simulate.amd.testing.lanes import LanesBench
from tg_hcq.simulate.engine import Status, Wave

A, B, C, D = 32, 48, 64, 96  # registers
CASES = [
    ("gfx1100", 32, "v_wmma_f32_16x16x16_f16"), ("gfx1100", 32, "v_wmma_f32_16x16x16_bf16"),
    ("gfx1100", 32, "v_wmma_i32_16x16x16_iu8"), ("gfx1201", 32, "v_wmma_f32_16x16x16_f16"),
    ("gfx1201", 32, "v_wmma_f32_16x16x16_bf16"), ("gfx1201", 32, "v_wmma_i32_16x16x16_iu8"),
    ("gfx942", 64, "v_mfma_f32_16x16x4_f32"), ("gfx942", 64, "v_mfma_f32_32x32x2_f32"),
    ("gfx942", 64, "v_mfma_f32_16x16x16_f16"), ("gfx942", 64, "v_mfma_f32_32x32x8_f16"),
    ("gfx942", 64, "v_mfma_f32_16x16x16_bf16"), ("gfx942", 64, "v_mfma_f32_32x32x8_bf16"),
    ("gfx942", 64, "v_mfma_i32_16x16x32_i8"), ("gfx942", 64, "v_mfma_i32_32x32x16_i8"),
    ("gfx950", 64, "v_mfma_f32_16x16x32_f16"), ("gfx950", 64, "v_mfma_f32_32x32x16_bf16"),
    *(("gfx1201", 32, f"v_wmma_f32_16x16x16_{x}_{y}") for x in ("fp8", "bf8") for y in ("fp8", "bf8")),
    *(("gfx950", 64, f"v_mfma_f32_16x16x32_{x}_{y}") for x in ("fp8", "bf8") for y in ("fp8", "bf8")),
    ("gfx950", 64, "v_mfma_i32_16x16x64_i8"), ("gfx950", 64, "v_mfma_i32_32x32x32_i8"),
]  # fmt: skip


def encoded(number: int, of: str) -> int:
    """A small integer as an element."""
    if of in ("i8", "u8"):
        return number & 0xFF
    if of == "fp8":  # the number of 4 bits of exponent and 3 of fraction, looked for among all
        return next(byte for byte in range(255) if byte != 127 and _small(byte) == number)
    if of == "bf8":
        return int.from_bytes(struct.pack("<e", number), "little") >> 8
    if of == "f16":
        return int.from_bytes(struct.pack("<e", number), "little")
    bits = int.from_bytes(struct.pack("<f", number), "little")
    return bits >> 16 if of == "bf16" else bits


def _small(byte: int) -> float:
    exponent, fraction = byte >> 3 & 15, byte & 7
    size = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0**-9
    return -size if byte >> 7 else size


def layouts(arch: str, name: str) -> tuple[int, int, str, Callable[[int, int], list[tuple[int, int, int]]],
                                           Callable[[int, int], tuple[int, int]]]:  # fmt: skip
    """Size, inner dimension, element; of (row, k) register, lane and part; of (row, column) register and lane."""
    _, _, _, shape, of, *_ = name.split("_")
    size, _, inner = (int(n) for n in shape.split("x"))
    bits = int(of.lstrip("bfipu"))
    parts = 32 // bits
    if arch == "gfx1100":
        return size, inner, of, lambda i, k: [(k // parts, i + copy, k % parts) for copy in (0, 16)], lambda i, j: (
            i // 2, j + 16 * (i % 2))  # fmt: skip
    groups = (32 if arch == "gfx1201" else 64) // size
    run = inner // groups

    def of_k(i: int, k: int) -> list[tuple[int, int, int]]:
        return [(k % run // parts, i + size * (k // run), k % parts)]

    if arch == "gfx1201":
        return size, inner, of, of_k, lambda i, j: (i % 8, j + 16 * (i // 8))
    if size == 16:
        return size, inner, of, of_k, lambda i, j: (i % 4, j + 16 * (i // 4))
    return size, inner, of, of_k, lambda i, j: (i // 8 * 4 + i % 4, j + 32 * (i // 4 % 2))


def row_of(arch: str, name: str) -> Row:
    """The row whose result is in vector registers and is not also C."""
    rows = [row for row in table(arch) if row.name == name and row.operands["vdst"].register_class.startswith("VReg")]
    return next(row for row in rows if "src2" in [field for field, _ in row.fields])


@pytest.mark.parametrize(("arch", "lanes", "name"), CASES)
def test_products(arch: str, lanes: int, name: str) -> None:
    rng = random.Random(name)
    bench = LanesBench(architecture(arch, lanes))
    size, inner, of, place, place_of_result = layouts(arch, name)
    for inline in (False, True):
        signs = rng.randrange(4) if of == "iu8" else 0
        pair = name.split("_")[4:] * 2
        kinds = [("i8" if signs >> n & 1 else "u8") if of == "iu8" else pair[n] for n in (0, 1)]
        a, b = ([[rng.randrange(0 if kind == "u8" else -8, 9) for _ in range(inner)] for _ in range(size)]
                for kind in kinds)  # fmt: skip
        c = [[5 if inline else rng.randrange(-99, 100) for _ in range(size)] for _ in range(size)]
        result = "i32" if "_i32_" in name else "f32"
        wave = Wave(bench.layout, rng=rng)
        rows = {register: [0] * lanes for register in range(32, 128)}
        bits = int(kinds[0].lstrip("bfipu"))
        for first, matrix, kind in ((A, a, kinds[0]), (B, b, kinds[1])):
            for i in range(size):
                for k in range(inner):
                    for register, lane, part in place(i, k):
                        rows[first + register][lane] |= encoded(matrix[i][k], kind) << bits * part
        for i in range(size):
            for j in range(size):
                register, lane = place_of_result(i, j)
                rows[C + register][lane] = encoded(c[i][j], "f32") if result == "f32" else c[i][j] & 0xFFFFFFFF
        for register, values in rows.items():
            wave.set_row(register, values)
        wave.exec, wanted = (1 << lanes) - 1, FLOATS
        wave.set_scalar("mode", wanted)
        if result == "f32" and inline:  # the inline constant 4.0
            c = [[4] * size for _ in range(size)]
        constant = (246 if result == "f32" else 128 + 5) if inline else 256 + C
        assert bench.run(wave, row_of(arch, name), {
            "src0": 256 + A, "src1": 256 + B, "src2": constant, "vdst": D, "src0_modifiers": 8 | signs & 1,
            "src1_modifiers": 8 | signs >> 1, "src2_modifiers": 8,
        }) is Status.BUDGET  # fmt: skip
        for i in range(size):
            for j in range(size):
                register, lane = place_of_result(i, j)
                total = c[i][j] + sum(a[i][k] * b[j][k] for k in range(inner))
                found = wave.row(D + register)[lane]
                assert found == (encoded(total, "f32") if result == "f32" else total & 0xFFFFFFFF), (i, j)


def test_a_product_of_some_lanes_is_refused() -> None:
    """EXEC must be all ones (RDNA 3, 7.9), and other modes are not known."""
    bench = LanesBench(architecture("gfx1100", 32))
    fields = {"src0": 256 + A, "src1": 256 + B, "src2": 256 + C, "vdst": D, "src0_modifiers": 8, "src1_modifiers": 8,
              "src2_modifiers": 8}  # fmt: skip
    for mask, mode in ((0xFFFF, FLOATS), (0xFFFFFFFF, 0xC0)):
        wave = Wave(bench.layout, rng=random.Random(1))
        wave.exec = mask
        wave.set_scalar("mode", mode)
        assert bench.run(wave, row_of("gfx1100", "v_wmma_f32_16x16x16_f16"), fields) is Status.FAULT
