"""Which lane each lane reads where an instruction permutes its first source.

Source: AMD, "RDNA3 Instruction Set Architecture", 7.7 "Data Parallel Processing (DPP)"; "AMD Instinct MI300 Instruction
Set Architecture", 12.10.2.
"""

from __future__ import annotations

import re

from .assembly import Assembly


def permuted(assembly: Assembly, lanes: int, executing: int) -> list[tuple[int | None, bool]]:
    """For each lane the one that it reads, None for zero, and whether it writes."""
    found: list[tuple[int | None, bool]] = []
    m = assembly.modifiers
    for lane in range(lanes):
        source = _source(m, lane, lanes)
        if source is _PLAIN:
            found.append((lane, True))
            continue
        valid = source is not None and 0 <= source < lanes
        if valid and source is not None and not executing >> source & 1:
            valid = "fi" in m
        bound = m.get("bound_ctrl") == "1" or "dpp8" in m
        rows, banks = (int(m.get(name, "0xf"), 16) for name in ("row_mask", "bank_mask"))
        masked = rows >> (lane // 16 & 3) & 1 and banks >> (lane // 4 & 3) & 1
        found.append((source if valid else None, bool(masked and (valid or bound))))
    return found


_PLAIN = -(1 << 40)


def _source(m: dict[str, str], lane: int, lanes: int) -> int | None:
    row, inside = lane // 16 * 16, lane % 16
    if "dpp8" in m:
        return lane // 8 * 8 + int(re.findall(r"\d", m["dpp8"])[lane % 8])
    if "quad_perm" in m:
        return lane // 4 * 4 + int(re.findall(r"\d", m["quad_perm"])[lane % 4])
    for name in m:
        text = m[name]
        if name == "row_shl":
            return lane + int(text) if inside + int(text) < 16 else None
        if name == "row_shr":
            return lane - int(text) if inside >= int(text) else None
        if name == "row_ror":
            return row + (inside - int(text)) % 16
        if name == "row_mirror":
            return row + 15 - inside
        if name == "row_half_mirror":
            return lane // 8 * 8 + 7 - lane % 8
        if name in ("row_share", "row_newbcast"):
            return row + int(text)
        if name == "row_xmask":
            return row + (inside ^ int(text))
        if name == "row_bcast":
            width = int(text) + 1
            return lane // width * width - 1 if lane >= width else None
        if name == "wave_shl":
            return lane + 1 if lane + 1 < lanes else None
        if name == "wave_shr":
            return lane - 1 if lane else None
        if name == "wave_rol":
            return (lane + 1) % lanes
        if name == "wave_ror":
            return (lane - 1) % lanes
    return _PLAIN
