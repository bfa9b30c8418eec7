"""The specification of lanes against LLVM's: what ``instcombine`` makes of expressions of constants."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
from typing import NamedTuple

import pytest

from tg_hcq.simulate.amd.testing.assembly import Assembly
from tg_hcq.simulate.amd.testing.folding import FOLDED, folded
from tg_hcq.simulate.amd.testing.lanes import CORNERS, rule_of
from tg_hcq.simulate.amd.testing.rules import Mode, Rule
from tg_hcq.simulate.engine.testing import DOUBLE, HALF, SINGLE

OPT = shutil.which("opt-22")
ENVIRONMENT = Rule.Environment(Assembly("", []), Mode(0x3F0, 11), 0, False)
FORMATS = {"half": HALF, "float": SINGLE, "double": DOUBLE}
BITS = {"half": 16, "float": 32, "double": 64, "<2 x half>": 32}
DRAWS = 40


def bits_of(kind: str) -> int:
    return BITS[kind] if kind in BITS else int(kind[1:])


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


def drawn(kind: str, rng: random.Random) -> int:
    bits = bits_of(kind)
    value = rng.choice(CORNERS) if rng.random() < 0.6 else rng.getrandbits(bits)
    value = (value << 32 | rng.getrandbits(32) if bits == 64 else value) & (1 << bits) - 1
    return FORMATS[kind].nan if kind in FORMATS and FORMATS[kind].is_nan(value) else value


class Constant(NamedTuple):
    """A source: with its type as text, and its ``name`` alone."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def __format__(self, _: str) -> str:
        return str(self)


def disagrees(name: str, values: list[int]) -> bool:
    """Where AMD's manual and LLVM say different things, and the software GPU does what the manual says.

    V_MED3_F32 of a source that is no number is the least of the others in RDNA 3's manual (16.10). In LLVM
    (``GCNTTIImpl::instCombineIntrinsic``) it is the greatest, where that is not the first source. V_FMA_DX9_ZERO_F32 of
    a zero and -0 is the third source in the manual, so -0; LLVM adds it to +0.
    """
    if name == "v_fma_legacy_f32":
        return values[2] == SINGLE.sign and not all(value & ~SINGLE.sign for value in values[:2])
    return name == "v_med3_f32" and not SINGLE.is_nan(values[0]) and any(map(SINGLE.is_nan, values[1:]))


@pytest.mark.skipif(OPT is None, reason="opt-22 is not installed")
def test_specifications_are_what_llvm_folds() -> None:
    """NaN with other bits than the usual ones are left out: LLVM keeps more of them than hardware says."""
    text, cases = list[str](), dict[str, tuple[str, list[int]]]()
    text += sorted({row.declares for row in FOLDED.values() if row.declares})
    for name, row in FOLDED.items():
        rng = random.Random(name)
        for number in range(DRAWS):
            values = [drawn(kind, rng) for kind in row.sources]
            bounded = 0 if "{1.name}, {0.name}" in row.text else -1
            if row.most is not None:
                values[bounded] %= row.most + 1
            values[bounded] = max(values[bounded], row.least)
            label = f"{name}.{number}"
            cases[label] = name, values
            sources = [Constant(kind, literal(kind, v)) for kind, v in zip(row.sources, values, strict=True)]
            kind = f"i{bits_of(row.result)}"
            last = f"  ret {kind} %r"
            if row.result != kind:
                last = f"  %b = bitcast {row.result} %r to {kind}\n  ret {kind} %b"
            text.append(f"define {kind} @{label}() {{\n  %r = {row.text.format(*sources)}\n{last}\n}}")
    assert OPT is not None
    module = 'target triple = "amdgcn-amd-amdhsa"\n' + "\n".join(text)
    done = subprocess.run([OPT, "-S", "-passes=instcombine", "-mcpu=gfx1100"], input=module, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"define i\d+ @(\S+)\(\)[^{]*\{\s*ret i(\d+) (-?\d+|true|false)\s*\}", done.stdout)
    seen, wrong = set(), []
    for label, bits, value in found:
        name, values = cases[label]
        specification = rule_of(name)
        assert specification is not None, name
        ones = (1 << int(bits)) - 1
        wanted = {"true": 1, "false": 0}.get(value) if value[0] in "tf" else int(value)
        got = specification.compute(ENVIRONMENT, *values)
        assert wanted is not None and isinstance(got, int)
        of = FORMATS.get(FOLDED[name].result)
        same = got & ones == wanted & ones or (of is not None and of.is_nan(got & ones) and of.is_nan(wanted & ones))
        if not same and not disagrees(name, values):
            wrong.append((name, [hex(v) for v in values], hex(got & ones), hex(wanted & ones)))
        seen.add(name)
    assert wrong == []
    assert seen == set(FOLDED), f"LLVM does not fold {sorted(set(FOLDED) - seen)}"


def test_names_of_generations() -> None:
    assert folded("v_cmpx_lt_f32") is FOLDED["v_cmp_lt_f32"] and folded("v_add_u32") is FOLDED["v_add_nc_u32"]
    assert folded("v_rsq_f32") is None
