"""The specification of lanes against LLVM's: what ``instcombine`` makes of intrinsics of constants."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess

import pytest

from tg_hcq.simulate.amd.testing.assembly import Assembly
from tg_hcq.simulate.amd.testing.lanes import CORNERS, rule_of
from tg_hcq.simulate.amd.testing.rules import Mode, Rule
from tg_hcq.simulate.engine.testing import DOUBLE, HALF, SINGLE

OPT = shutil.which("opt-22")
ENVIRONMENT = Rule.Environment(Assembly("", []), Mode(0x3F0, 11), 0, False)
FORMATS = {"half": HALF, "float": SINGLE, "double": DOUBLE}
BITS = {"half": 16, "float": 32, "double": 64, "i16": 16, "i32": 32, "<2 x half>": 32}
INTRINSICS = {
    "v_bfe_u32": ("llvm.amdgcn.ubfe.i32", "i32", ["i32"] * 3),
    "v_bfe_i32": ("llvm.amdgcn.sbfe.i32", "i32", ["i32"] * 3),
    "v_perm_b32": ("llvm.amdgcn.perm", "i32", ["i32"] * 3),
    "v_mul_u32_u24": ("llvm.amdgcn.mul.u24.i32", "i32", ["i32"] * 2),
    "v_mul_i32_i24": ("llvm.amdgcn.mul.i24.i32", "i32", ["i32"] * 2),
    "v_alignbit_b32": ("llvm.fshr.i32", "i32", ["i32"] * 3),
    "v_alignbyte_b32": ("llvm.amdgcn.alignbyte", "i32", ["i32"] * 3),
    "v_bfrev_b32": ("llvm.bitreverse.i32", "i32", ["i32"]),
    "v_med3_f32": ("llvm.amdgcn.fmed3.f32", "float", ["float"] * 3),
    "v_mul_legacy_f32": ("llvm.amdgcn.fmul.legacy", "float", ["float"] * 2),
    "v_cvt_pkrtz_f16_f32": ("llvm.amdgcn.cvt.pkrtz", "<2 x half>", ["float"] * 2),
    "v_frexp_mant_f32": ("llvm.amdgcn.frexp.mant.f32", "float", ["float"]),
    "v_frexp_mant_f64": ("llvm.amdgcn.frexp.mant.f64", "double", ["double"]),
    "v_frexp_exp_i32_f32": ("llvm.amdgcn.frexp.exp.i32.f32", "i32", ["float"]),
    "v_frexp_exp_i32_f64": ("llvm.amdgcn.frexp.exp.i32.f64", "i32", ["double"]),
    "v_trunc_f32": ("llvm.trunc.f32", "float", ["float"]),
    "v_rndne_f32": ("llvm.roundeven.f32", "float", ["float"]),
    "v_floor_f64": ("llvm.floor.f64", "double", ["double"]),
    "v_fma_f32": ("llvm.fma.f32", "float", ["float"] * 3),
    "v_fma_f64": ("llvm.fma.f64", "double", ["double"] * 3),
    "v_fma_f16": ("llvm.fma.f16", "half", ["half"] * 3),
    "v_cvt_u32_f32": ("llvm.fptoui.sat.i32.f32", "i32", ["float"]),
    "v_cvt_i32_f64": ("llvm.fptosi.sat.i32.f64", "i32", ["double"]),
}
"""The intrinsic for an instruction, its result and arguments."""
DRAWS = 40


def literal(kind: str, bits: int) -> str:
    """A constant as LLVM reads it."""
    if kind[0] == "i":
        return str(bits)
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "float" and SINGLE.is_nan(bits):
        return "0x7FF8000000000000"
    if kind == "float":
        number = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
        return f"0x{int.from_bytes(struct.pack('<d', number), 'little'):016X}"
    return f"0x{bits:016X}"


@pytest.mark.skipif(OPT is None, reason="opt-22 is not installed")
def test_specifications_are_what_llvm_folds() -> None:
    """NaN with other bits than the usual ones are left out: LLVM keeps more of them than hardware says."""
    rng, text, cases = random.Random(2), list[str](), dict[str, tuple[str, list[int]]]()
    for name, (intrinsic, result, kinds) in INTRINSICS.items():
        text.append(f"declare {result} @{intrinsic}({', '.join(kinds)})")
        for number in range(DRAWS):
            values = []
            for kind in kinds:
                bits = BITS[kind]
                value = rng.choice(CORNERS) if rng.random() < 0.6 else rng.getrandbits(bits)
                value = (value << 32 | rng.getrandbits(32) if bits == 64 else value) & (1 << bits) - 1
                if kind in FORMATS and FORMATS[kind].is_nan(value):
                    value = FORMATS[kind].nan
                values.append(value)
            label = f"{name}.{number}"
            cases[label] = name, values
            arguments = ", ".join(f"{kind} {literal(kind, v)}" for kind, v in zip(kinds, values, strict=True))
            kind = f"i{BITS[result]}"
            last = f"  %b = bitcast {result} %r to {kind}\n  ret {kind} %b" if result != kind else f"  ret {kind} %r"
            text.append(f"define {kind} @{label}() {{\n  %r = call {result} @{intrinsic}({arguments})\n{last}\n}}")
    assert OPT is not None
    module = 'target triple = "amdgcn-amd-amdhsa"\n' + "\n".join(text)
    done = subprocess.run([OPT, "-S", "-passes=instcombine", "-mcpu=gfx1100"], input=module, text=True,
                          capture_output=True, check=True)  # fmt: skip
    folded = re.findall(r"define i\d+ @(\S+)\(\)[^{]*\{\s*ret i(\d+) (-?\d+|true|false)\s*\}", done.stdout)
    seen = set()
    for label, bits, value in folded:
        name, values = cases[label]
        found = rule_of(name)
        assert found is not None
        wanted, got = int(value) & (1 << int(bits)) - 1, found.compute(ENVIRONMENT, *values)
        assert isinstance(got, int)
        got &= (1 << int(bits)) - 1
        of = FORMATS.get(INTRINSICS[name][1])
        assert got == wanted or (of is not None and of.is_nan(got) and of.is_nan(wanted)), (name, values, got, wanted)
        seen.add(name)
    assert len(seen) >= 18, sorted(set(INTRINSICS) - seen)
