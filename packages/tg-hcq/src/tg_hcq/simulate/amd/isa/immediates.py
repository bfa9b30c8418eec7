"""The text of immediate operands: wait counts, messages, hardware registers, swizzles, lane permutations, caches."""

from __future__ import annotations

from .table import Row, Table

# Position and width of each counter in the operand of s_waitcnt, lower pieces first (AMDGPUBaseInfo.cpp).
WAITS: dict[int, dict[str, tuple[tuple[int, int], ...]]] = {
    9: {"vmcnt": ((0, 4), (14, 2)), "expcnt": ((4, 3),), "lgkmcnt": ((8, 4),)},
    10: {"vmcnt": ((0, 4), (14, 2)), "expcnt": ((4, 3),), "lgkmcnt": ((8, 6),)},
    11: {"vmcnt": ((10, 6),), "expcnt": ((0, 3),), "lgkmcnt": ((4, 6),)},
}
WAITS[12] = WAITS[11]
# Position and width of each field in the operand of s_waitcnt_depctr and s_wait_alu, in the order of printing.
DEPENDENCES = {
    "depctr_hold_cnt": (7, 1), "depctr_sa_sdst": (0, 1), "depctr_va_vdst": (12, 4), "depctr_va_sdst": (9, 3),
    "depctr_va_ssrc": (8, 1), "depctr_va_vcc": (1, 1), "depctr_vm_vsrc": (2, 3),
}  # fmt: skip
DELAYS = ("NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1", "TRANS32_DEP_2",
          "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3")  # fmt: skip
SKIPS = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")
# Messages and registers: a number's names with the generations that have it.
MESSAGES: dict[int, dict[str, tuple[int, ...]]] = {
    1: {"MSG_INTERRUPT": (9, 10, 11, 12)}, 2: {"MSG_GS": (9, 10), "MSG_HS_TESSFACTOR": (11, 12)},
    3: {"MSG_GS_DONE": (9, 10), "MSG_DEALLOC_VGPRS": (11, 12)}, 4: {"MSG_SAVEWAVE": (9, 10)},
    5: {"MSG_STALL_WAVE_GEN": (9, 10, 11)}, 6: {"MSG_HALT_WAVES": (9, 10, 11)}, 7: {"MSG_ORDERED_PS_DONE": (9, 10)},
    8: {"MSG_EARLY_PRIM_DEALLOC": (9, 10)}, 9: {"MSG_GS_ALLOC_REQ": (9, 10, 11, 12)},
    10: {"MSG_GET_DOORBELL": (9, 10)}, 11: {"MSG_GET_DDID": (10,)}, 15: {"MSG_SYSMSG": (9, 10, 11, 12)},
    128: {"MSG_RTN_GET_DOORBELL": (11, 12)}, 129: {"MSG_RTN_GET_DDID": (11, 12)}, 130: {"MSG_RTN_GET_TMA": (11, 12)},
    131: {"MSG_RTN_GET_REALTIME": (11, 12)}, 132: {"MSG_RTN_SAVE_WAVE": (11, 12)}, 133: {"MSG_RTN_GET_TBA": (11, 12)},
    134: {"MSG_RTN_GET_TBA_TO_PC": (11, 12)}, 135: {"MSG_RTN_GET_SE_AID_ID": (12,)},
}  # fmt: skip
SYSTEM_OPERATIONS = {1: "SYSMSG_OP_ECC_ERR_INTERRUPT", 2: "SYSMSG_OP_REG_RD", 4: "SYSMSG_OP_TTRACE_PC"}
STREAM_OPERATIONS = {0: "GS_OP_NOP", 1: "GS_OP_CUT", 2: "GS_OP_EMIT", 3: "GS_OP_EMIT_CUT"}
REGISTERS: dict[int, dict[int, str]] = {
    9: {1: "MODE", 2: "STATUS", 3: "TRAPSTS", 4: "HW_ID", 5: "GPR_ALLOC", 6: "LDS_ALLOC", 7: "IB_STS",
        15: "SH_MEM_BASES", 16: "TBA_LO", 17: "TBA_HI", 18: "TMA_LO", 19: "TMA_HI", 20: "XCC_ID",
        21: "SQ_PERF_SNAPSHOT_DATA", 22: "SQ_PERF_SNAPSHOT_DATA1", 23: "SQ_PERF_SNAPSHOT_PC_LO",
        24: "SQ_PERF_SNAPSHOT_PC_HI"},
    10: {1: "MODE", 2: "STATUS", 3: "TRAPSTS", 5: "GPR_ALLOC", 6: "LDS_ALLOC", 7: "IB_STS", 15: "SH_MEM_BASES",
         16: "TBA_LO", 17: "TBA_HI", 18: "TMA_LO", 19: "TMA_HI", 20: "FLAT_SCR_LO", 21: "FLAT_SCR_HI", 23: "HW_ID1",
         24: "HW_ID2", 25: "POPS_PACKER", 29: "SHADER_CYCLES"},
    11: {1: "MODE", 2: "STATUS", 3: "TRAPSTS", 5: "GPR_ALLOC", 6: "LDS_ALLOC", 7: "IB_STS", 15: "SH_MEM_BASES",
         18: "PERF_SNAPSHOT_PC_LO", 19: "PERF_SNAPSHOT_PC_HI", 20: "FLAT_SCR_LO", 21: "FLAT_SCR_HI", 23: "HW_ID1",
         24: "HW_ID2", 27: "PERF_SNAPSHOT_DATA", 29: "SHADER_CYCLES"},
    12: {1: "WAVE_MODE", 2: "WAVE_STATUS", 4: "WAVE_STATE_PRIV", 5: "WAVE_GPR_ALLOC", 6: "WAVE_LDS_ALLOC", 7: "IB_STS",
         10: "PERF_SNAPSHOT_DATA", 11: "PERF_SNAPSHOT_PC_LO", 12: "PERF_SNAPSHOT_PC_HI", 15: "PERF_SNAPSHOT_DATA1",
         16: "PERF_SNAPSHOT_DATA2", 17: "WAVE_EXCP_FLAG_PRIV", 18: "WAVE_EXCP_FLAG_USER", 19: "WAVE_TRAP_CTRL",
         20: "WAVE_SCRATCH_BASE_LO", 21: "WAVE_SCRATCH_BASE_HI", 23: "WAVE_HW_ID1", 24: "WAVE_HW_ID2",
         26: "WAVE_SCHED_MODE", 29: "SHADER_CYCLES_LO", 30: "SHADER_CYCLES_HI", 31: "WAVE_DVGPR_ALLOC_LO",
         32: "WAVE_DVGPR_ALLOC_HI"},
}  # fmt: skip
VERSIONS = {0: "UC_VERSION_GFX7", 4: "UC_VERSION_GFX10", 6: "UC_VERSION_GFX11", 9: "UC_VERSION_GFX12"}
SELECTIONS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
SCOPES = ("", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS")
HINTS = ("", "NT", "HT", "", "NT_RT", "RT_NT", "NT_HT", "NT_WB")


def waitcnt(value: int, generation: int) -> str:
    """The counters of s_waitcnt that are waited for; all of them if none is."""
    texts, every = [], []
    for name, pieces in WAITS[generation].items():
        count = shift = 0
        for position, width in pieces:
            count |= (value >> position & (1 << width) - 1) << shift
            shift += width
        every.append(f"{name}({count})")
        if count != (1 << shift) - 1:
            texts.append(every[-1])
    return " ".join(texts or every)


def depctr(value: int) -> str:
    """The dependences of s_waitcnt_depctr that are waited for; all of them if none is."""
    fields = {name: (value >> at & (1 << width) - 1, (1 << width) - 1) for name, (at, width) in DEPENDENCES.items()}
    unknown = value & ~sum(((1 << width) - 1) << at for at, width in DEPENDENCES.values())
    if unknown:
        return f"{value:#x}"
    waited = {name: pair for name, pair in fields.items() if pair[0] != pair[1]}
    return " ".join(f"{name}({count})" for name, (count, _) in (waited or fields).items())


def delay_alu(value: int) -> str:
    """The dependences of s_delay_alu."""
    parts = []
    fields = (("instid0", 0, 15, DELAYS), ("instskip", 4, 7, SKIPS), ("instid1", 7, 15, DELAYS))
    for name, position, mask, texts in fields:
        number = value >> position & mask
        if number:
            bad = "skip" if name == "instskip" else "id"
            parts.append(f"{name}({texts[number] if number < len(texts) else f'/* invalid inst{bad} value */'})")
    return " | ".join(parts) or "0"


def sendmsg(value: int, generation: int) -> str:
    """A message with its operation and stream."""
    operation, stream = (0, 0) if generation >= 11 else (value >> 4 & 7, value >> 8 & 3)
    number = value & (0xFF if generation >= 11 else 15)
    known = (name for name, where in MESSAGES.get(number, {}).items() if generation in where)
    name = next(known, "")
    geometry = generation < 11 and number in (2, 3)
    operations = SYSTEM_OPERATIONS if number == 15 else STREAM_OPERATIONS if geometry else {}
    takes_stream = geometry and operation != 0
    valid = operation in operations and not (number == 2 and operation == 0) if operations else operation == 0
    if name and valid and (takes_stream or stream == 0):
        more = f", {operations[operation]}" if operations else ""
        return f"sendmsg({name}{more}{f', {stream}' if takes_stream else ''})"
    if number | operation << 4 | stream << 8 == value:
        return f"sendmsg({number}, {operation}, {stream})"
    return str(value)


def hwreg(value: int, generation: int) -> str:
    """A hardware register, and which of its bits if not all."""
    number, offset, width = value & 63, value >> 6 & 31, (value >> 11 & 31) + 1
    name = REGISTERS[generation].get(number)
    bits = f", {offset}, {width}" if (offset, width) != (0, 32) else ""
    return f"hwreg({f'HW_REG_{name}' if name else number}{bits})"


def version(value: int) -> str:
    """The operand of s_version."""
    if value & ~0xE0FF:
        return f"{value:#x}"
    shown = VERSIONS.get(value & 0xFF, str(value & 0xFF))
    for bit, name in ((13, "W64"), (14, "W32"), (15, "MDP")):
        if value >> bit & 1:
            shown = f"{f'({shown})' if '|' in shown else shown}|UC_VERSION_{name}_BIT"
    return shown


def swizzle(value: int) -> str:
    """The pattern of ds_swizzle_b32."""
    if value == 0:
        return ""
    if value >= 0xE000:
        what = f"FFT,{value & 31}"
    elif value >= 0xC000:
        what = f"ROTATE,{value >> 10 & 1},{value >> 5 & 31}"
    elif value & 0xFF00 == 0x8000:
        what = "QUAD_PERM," + ",".join(str(value >> 2 * lane & 3) for lane in range(4))
    elif value & 0x8000:
        return f" offset:{value}"
    else:
        what = _bitmask(value & 31, value >> 5 & 31, value >> 10 & 31)
    return f" offset:swizzle({what})"


def _bitmask(keep: int, force: int, flip: int) -> str:
    if keep == 31 and force == 0 and flip.bit_count() == 1:
        return f"SWAP,{flip}"
    if keep == 31 and force == 0 and flip and flip & (flip + 1) == 0:
        return f"REVERSE,{flip + 1}"
    size = 32 - keep
    if size > 1 and size & (size - 1) == 0 and force < size and flip == 0:
        return f"BROADCAST,{size},{force}"
    zeros, ones = force ^ flip, (keep | force) ^ flip
    bits = ("01"[zeros >> b & 1] if zeros >> b & 1 == ones >> b & 1 else "pi"[zeros >> b & 1] for b in range(4, -1, -1))
    return f'BITMASK_PERM,"{"".join(bits)}"'


def dpp_control(value: int, generation: int) -> str:
    """From which lane a lane reads."""
    if value < 0x100:
        return "quad_perm:[" + ",".join(str(value >> 2 * lane & 3) for lane in range(4)) + "]"
    rows = {0x100: "row_shl", 0x110: "row_shr", 0x120: "row_ror", 0x160: "row_xmask",
            0x150: "row_newbcast" if generation == 9 else "row_share"}  # fmt: skip
    fixed = {0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1", 0x140: "row_mirror",
             0x141: "row_half_mirror", 0x142: "row_bcast:15", 0x143: "row_bcast:31"}  # fmt: skip
    return fixed.get(value) or f"{rows[value & 0x1F0]}:{value & 15}"


def cache_policy(value: int, row: Row, of: Table) -> str:
    """How a memory access treats the caches."""
    if "IsAtomicRet" in row.flags:
        value |= 1
    if of.generation >= 12:
        scope = value >> 3 & 3
        return _temporal_hint(value & 7, scope, row) + SCOPES[scope] + (" nv" if value & 32 else "")
    is_gfx940 = "FeatureGFX940Insts" in of.features
    names = ((1, "sc0" if is_gfx940 and row.encoding != "SMEM" else "glc"), (2, "nt" if is_gfx940 else "slc"))
    text = "".join(f" {name}" for bit, name in names if value & bit)
    text += " dlc" if value & 4 and of.generation >= 10 else ""
    return text + (" sc1" if value & 16 and is_gfx940 else "")


def _temporal_hint(hint: int, scope: int, row: Row) -> str:
    if hint == 0:
        return ""
    if row.flags & {"IsAtomicRet", "IsAtomicNoRet"}:
        if hint & 4:
            what = ("CASCADE_NT" if hint & 2 else "CASCADE_RT") if scope >= 2 else f"{hint:#x}"
        else:
            what = "NT_RETURN" if hint == 3 else "NT" if hint == 2 else "RETURN"
        return f" th:TH_ATOMIC_{what}"
    store = "mayStore" in row.flags and "mayLoad" not in row.flags
    if hint == 7 and not store:
        return " th:0x7"
    what = HINTS[hint] or ("BYPASS" if scope == 3 else "WB" if store else "LU")
    return f" th:TH_{'STORE' if store else 'LOAD'}_{what}"
