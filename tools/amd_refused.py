"""Why the software cards of AMD refuse instructions that their decoder knows: reasons by patterns of names.

What a compiler emits is said of LLVM 22 without intrinsics that ask for an instruction by its name.
"""

from __future__ import annotations

import re
from typing import Final

REASONS: Final = {
    "of graphics, for which no kernel asks": (
        r"v_cube.*|v_cvt_(pk_?)?norm_.*|v_cvt_norm_.*|v_cvt_pkaccum_.*|v_mullit_f32|s_setkill|s_wait_event"
        r"|s_endpgm_ordered_ps_done|buffer_.*format.*|ds_bvh_stack_.*|ds_(add|sub)_gs_reg_rtn"
        r"|global_atomic_ordered_add_b64"
    ),
    "of trap handlers, debuggers and profilers, which the cards have not": (
        r"s_rfe_(restore_)?b64|s_sethalt|s_sendmsghalt|s_sendmsg(_rtn_b\d+)?|s_cbranch_cdbg.*|s_ttracedata.*|s_endpgm_saved"
        r"|s_(in|de)cperflevel|s_atc_probe.*|s_icache_inv|v_clrexcp"
    ),
    "of memory and barriers that work-groups share, which the cards have not": r"ds_gws_.*|ds_ordered_count",
    "it is there to stop whoever runs behind a program's end": "s_code_end",
    "for waves of 64 lanes, and the page is that of waves of 32": r"s_\w*(saveexec|wrexec)_b64",
    "no document says how often it is rounded": (
        r"v_(mac|mad|madak|madmk|mad_legacy)_f16|v_dot2_(bf16_bf16|f16_f16)|v_dot4_f32_.*"
    ),
    "no document says what of the random number counts, and how the sum is rounded": r"v_cvt_(scalef32_)?sr_.*",
    "of gfx8, for programs older than the architecture": r"v_(fma|div_fixup)_legacy_f16|v_(exp|log)_legacy_f32",
    "documents differ in where the elements lie": r"v_smfmac_.*",
    "a part of another instruction, which is executed": "v_mfma_ld_scale_b32",
    "no compiler emits it, or not by itself": (
        r"s_cbranch_([gi]_fork|join)|s_setvskip|s_set_gpr_idx_\w+|"
        r"s_(buffer_)?atomic_.*|s_scratch_.*|s_store_.*|s_buffer_store_.*|s_subvector_loop_.*|.*_addtid(_b32)?"
        r"|ds_(wrxchg2|storexchg_2addr).*|ds_condxchg32_rtn_b64|ds_cmpst(ore)?_(rtn_)?f\d+|v_pipeflush"
        r"|(buffer|flat|global)_atomic_(fcmpswap|cmpswap_f32).*|v_screen_partition_4se_b32|s_(dcache|gl1)_.*"
    ),
    "compilers emit it where a program asks for it by its name alone; not written yet": (
        r"v_swap_b16|v_cvt_pk_u8_f32|v_mqsad_u32_u8|v_permlanex?16_var_b32|ds_(append|consume|bpermute_fi_b32)"
        r"|(ds_read|global_load)_\w*tr_\w+|(global|scratch)_(load|store)_block|s_barrier_\w+"
        r"|s_get_barrier_state|s_sleep_var|s_alloc_vgpr|s_buffer_prefetch_data"
    ),
}  # fmt: skip
"""The first that fits counts."""


def reason(name: str) -> str | None:
    """Why an instruction is refused that is refused; None where nobody has said it.

    >>> reason("v_mad_f16")
    'no document says how often it is rounded'
    """
    return next((why for why, pattern in REASONS.items() if re.fullmatch(pattern, name)), None)
