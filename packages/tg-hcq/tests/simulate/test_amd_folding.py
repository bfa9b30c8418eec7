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
from tg_hcq.simulate.amd.testing.folding import DIFFERENCES, FOLDED, folded
from tg_hcq.simulate.amd.testing.lanes import CORNERS, rule_of
from tg_hcq.simulate.amd.testing.rules import Mode, Rule
from tg_hcq.simulate.engine.testing import DOUBLE, HALF, SINGLE

OPT = shutil.which("opt-22")
ENVIRONMENTS = {ieee: Rule.Environment(Assembly("", []), Mode(mode, 11), 0, False)
                for ieee, mode in ((True, 0x3F0), (False, 0x1F0))}  # fmt: skip
"""With IEEE in MODE, as LLVM assumes of functions, and without."""
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


@pytest.mark.skipif(OPT is None, reason="opt-22 is not installed")
def test_specifications_are_what_llvm_folds() -> None:
    """NaN with other bits than the usual ones are left out: LLVM keeps more of them than hardware says."""
    text, cases = list[str](), dict[str, tuple[str, list[int], bool]]()
    text += sorted({row.declares for row in FOLDED.values() if row.declares})
    for name, row in FOLDED.items():
        rng = random.Random(name)
        examples = [(list(d.example), d.ieee) for d in DIFFERENCES if d.name == name]
        for number in range(DRAWS + len(examples)):
            values, ieee = [drawn(kind, rng) for kind in row.sources], True
            if number >= DRAWS:
                values, ieee = examples[number - DRAWS]
            bounded = 0 if "{1.name}, {0.name}" in row.text else -1
            if row.most is not None:
                values[bounded] %= row.most + 1
            values[bounded] = max(values[bounded], row.least)
            label = f"{name}.{number}"
            cases[label] = name, values, ieee
            sources = [Constant(kind, literal(kind, v)) for kind, v in zip(row.sources, values, strict=True)]
            kind = f"i{bits_of(row.result)}"
            last = f"  ret {kind} %r"
            if row.result != kind:
                last = f"  %b = bitcast {row.result} %r to {kind}\n  ret {kind} %b"
            head = f"define {kind} @{label}(){'' if ieee else ' #0'}"
            text.append(f"{head} {{\n  %r = {row.text.format(*sources)}\n{last}\n}}")
    text.append('attributes #0 = { "amdgpu-ieee"="false" }')
    assert OPT is not None
    module = 'target triple = "amdgcn-amd-amdhsa"\n' + "\n".join(text)
    done = subprocess.run([OPT, "-S", "-passes=instcombine", "-mcpu=gfx1100"], input=module, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"define i\d+ @(\S+)\(\)[^{]*\{\s*ret i(\d+) (-?\d+|true|false)\s*\}", done.stdout)
    seen, wrong, differ = set(), [], set()
    for label, bits, value in found:
        name, values, ieee = cases[label]
        specification = rule_of(name)
        assert specification is not None, name
        ones = (1 << int(bits)) - 1
        wanted = {"true": 1, "false": 0}.get(value) if value[0] in "tf" else int(value)
        got = specification.compute(ENVIRONMENTS[ieee], *values)
        assert wanted is not None and isinstance(got, int)
        of = FORMATS.get(FOLDED[name].result)
        same = got & ones == wanted & ones or (of is not None and of.is_nan(got & ones) and of.is_nan(wanted & ones))
        seen.add(name)
        known = any(d.name == name and d.ieee == ieee and d.holds(values) for d in DIFFERENCES)
        if not same and known:
            differ.add(name)
        elif not same:
            wrong.append((name, [hex(v) for v in values], hex(got & ones), hex(wanted & ones)))
    assert wrong == []
    assert differ == {difference.name for difference in DIFFERENCES}
    assert seen == set(FOLDED), f"LLVM does not fold {sorted(set(FOLDED) - seen)}"


def test_names_of_generations() -> None:
    assert folded("v_cmpx_lt_f32") is FOLDED["v_cmp_lt_f32"] and folded("v_add_u32") is FOLDED["v_add_nc_u32"]
    assert folded("v_rsq_f32") is None
