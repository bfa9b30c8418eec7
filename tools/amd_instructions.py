"""What the software cards of AMD execute of the instructions that their decoder knows.

    python -m tools.amd_instructions          # writes docs/amd_instructions.md
    python -m tools.amd_instructions --print  # prints it

Every row of each architecture's table is drawn several times, with and without modifiers. An instruction is executed if
one of its draws is placed; a form of it may still be refused, which is an error that names the form. Scalar ones, which
few immediates make sense for, are executed if they have a handler.
"""

from __future__ import annotations

import functools
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tg_hcq.simulate.amd.architecture import architecture
from tg_hcq.simulate.amd.isa import Row, table
from tg_hcq.simulate.amd.semantics.vector import bounds
from tg_hcq.simulate.amd.testing.folding import DIFFERENCES, folded
from tg_hcq.simulate.amd.testing.lanes import LanesBench, rule_of
from tg_hcq.simulate.engine import Undecodable
from tools.amd_refused import REASONS, reason

PAGE = Path(__file__).parents[1] / "docs" / "amd_instructions.md"
ARCHS = {"gfx1030": 32, "gfx1100": 32, "gfx1201": 32, "gfx942": 64, "gfx950": 64}
FAMILIES = {
    r"VOP.*": "Arithmetic of lanes", r"SOP.*|SMEM.*|SMRD.*": "Scalars", r"DS.*": "Local memory",
    r"MUBUF.*|MTBUF.*|VBUFFER.*": "Buffers", r"V?(FLAT|GLOBAL|SCRATCH).*": "Memory",
}  # fmt: skip
"""By patterns of encodings."""
OTHERS = "Others"
DRAWS = 8

HEAD = """# AMD's instructions

<!-- Written by `python -m tools.amd_instructions`. -->

The [software cards of AMD](amd.md#without-a-card) decode all instructions of LLVM's tables for computing; those of
images, exports and typed buffers (`tbuffer_*`), which are of graphics, are not in them, and are faults as what is no
instruction. These numbers say how many of them are executed. The others are faults that say
where they stand and what they are; why, is said with them here. Names are counted once for each architecture, whatever
their encodings; of pairs (`v_dual_…`), both halves.

"""

ONE_ORACLE = """What is executed in a lane is compared with a specification in Python's integers and correctly rounded
floats, with each modifier. Where LLVM folds constants, the specification is compared with that, too. It does not for
these, whose specification has nothing but the manuals to agree with. Conversions with a scale (`v_cvt_scalef32_*`) have
exact numbers to agree with, and no more.
"""

TWO_ORACLES = """The specification is that of AMD's manuals, and the software cards do what they say. LLVM folds
something else here, and which of them cards do was never seen.

| instruction | manual | LLVM |
|---|---|---|
"""

BOUNDS = """Hostile software cards (`AMD_HOSTILE`) give any value inside these bounds, drawn anew for each lane, and
others the value that is nearest. A unit is one in the last place of the true value.

| functions | format | bound | source |
|---|---|---|---|
"""

ORDERS = """
Of the arguments of which the manuals give the result, that is the result: {}; zeros, infinities and NaN are as they
say, too. Sums of matrix products, of `v_dot2_f32_f16` and of `v_dot2_f32_bf16` are made by hostile cards in any order,
in groups of any size, rounded with each term or once for each group: the manuals say neither.
"""


def family(row: Row) -> str:
    """Where an instruction is listed."""
    return next((name for pattern, name in FAMILIES.items() if re.fullmatch(pattern, row.encoding)), OTHERS)


@functools.cache
def executed(arch: str) -> list[tuple[str, str, bool]]:
    """Name and family of each instruction of an architecture, and whether it is executed."""
    bench, found = LanesBench(architecture(arch, ARCHS[arch])), dict[str, tuple[str, bool]]()
    for row in table(arch):
        names = row.name.split(" :: ")
        if all(found.get(name, ("", False))[1] for name in names):
            continue
        done = _placed(bench, row) or (row.encoding.startswith("SOP") and row.name in bench.instructions.handlers)
        for name in names:
            found[name] = family(row), done or found.get(name, ("", False))[1]
    return [(name, where, done) for name, (where, done) in sorted(found.items())]


def _placed(bench: LanesBench, row: Row) -> bool:
    """Whether one of a row's draws is placed; a row that the first two do not find, as another is decoded in its stead,
    is not looked for any longer."""
    found = 0
    for n in range(DRAWS):
        try:
            bench.draw(row, random.Random(f"{row.record} {n}"), plain=n % 2 == 0)
        except Undecodable:
            if n and not found:
                return False
            continue
        found += 1
        if bench.placed():
            return True
    return False


def page() -> str:
    """The page."""
    counts = defaultdict[str, dict[str, list[int]]](dict)
    refused = defaultdict[str, dict[str, list[str]]](dict)
    for arch in ARCHS:
        for name, where, done in executed(arch):
            both = counts[where].setdefault(arch, [0, 0])
            both[0] += done
            both[1] += 1
            if not done:
                refused[where].setdefault(name, []).append(arch)
    families = [*dict.fromkeys(FAMILIES.values()), OTHERS]
    lines = [f"| | {' | '.join(ARCHS)} |", f"|---|{'---|' * len(ARCHS)}"]
    for where in (f for f in families if f in counts):
        cells = (counts[where].get(arch, [0, 0]) for arch in ARCHS)
        lines.append(f"| {where} | {' | '.join(f'{done} of {of}' for done, of in cells)} |")
    whole = ([sum(counts[f].get(arch, [0, 0])[n] for f in counts) for n in (0, 1)] for arch in ARCHS)
    lines.append(f"| all | {' | '.join(f'{done} of {of}' for done, of in whole)} |")
    for where in (f for f in families if f in refused):
        lines += ["", f"## Refused: {where.lower()}", ""]
        by_reason = defaultdict[str | None, dict[tuple[str, ...], list[str]]](lambda: defaultdict(list))
        for name, those in sorted(refused[where].items()):
            by_reason[reason(name)][tuple(those)].append(f"`{name}`")
        for why in (*REASONS, None):
            by_archs = by_reason[why]
            for archs, names in sorted(by_archs.items(), key=lambda item: [list(ARCHS).index(a) for a in item[0]]):
                lines.append(f"- {', '.join(archs)}, {why}: {', '.join(names)}")
    lines += ["", "## One oracle", "", ONE_ORACLE, *once()]
    rows = (f"| {row.names} | {row.manual} | {row.llvm} |" for row in DIFFERENCES)
    lines += ["", "## Two oracles that differ", "", TWO_ORACLES + "\n".join(rows)]
    rows = (f"| {row.functions} | {row.kind} | {row.text} | {row.source} |" for row in bounds.BOUNDS)
    examples = (f"{name} of {number:g}" for name, numbers in bounds.EXACT.items() for number in numbers)
    lines += ["", "## Inside a bound", "", BOUNDS + "\n".join(rows), ORDERS.format(", ".join(examples)).rstrip()]
    return HEAD + "\n".join(lines) + "\n"


def once() -> Iterator[str]:
    """What is executed in a lane and LLVM does not fold, as lines of the page."""
    found = defaultdict[str, list[str]](list)
    for arch in ARCHS:
        for name, where, done in executed(arch):
            plain = name.replace("v_dual_", "v_")
            if done and where == "Arithmetic of lanes" and rule_of(plain, arch) is not None and folded(plain) is None:
                found[plain].append(arch)
    by_archs = defaultdict[tuple[str, ...], list[str]](list)
    for name, archs in sorted(found.items()):
        by_archs[tuple(dict.fromkeys(archs))].append(f"`{name}`")
    for those, names in sorted(by_archs.items(), key=lambda item: [list(ARCHS).index(a) for a in item[0]]):
        yield f"- {', '.join(those)}: {', '.join(names)}"


def main() -> None:
    """Writes or prints the page."""
    found = page()
    if "--print" in sys.argv[1:]:
        print(found, end="")
    else:
        PAGE.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
