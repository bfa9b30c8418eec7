"""What an instruction of a wave costs on the engine of software GPUs, as ``python -m bench engine`` prints it.

A mix of arithmetic, loads, stores, shared memory and waits in a loop, and each kind alone, on the toy instruction set.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from tg_hcq.simulate.toy import ToyGpu

from .instructions import GOALS_NS
from .record import Record

SHARED_BYTES = 4096
_BEGIN = """
  s_mov_i32 s8, 0
  v_shl_i32 v10, v0, 2                ; v10, v11: the address of 4 bytes a lane, beside one another
  v_add_i32 v10, v10, v1
  v_mov_i32 v11, v2
  v_mul_i32 v12, v0, 68               ; v12, v13: 68 bytes apart
  v_add_i32 v12, v12, v1
  v_mov_i32 v13, v2
  v_shl_i32 v14, v0, 2                ; v14: an offset in shared memory
again:
"""
_END = """
  s_add_i32 s8, s8, 1
  s_cmp_ult_i32 scc, s8, {loops}
  s_branch_scc1 scc, #again
  s_end
"""
MIX = """
  global_load_4 v4, v10
  global_load_4 v5, v12
  v_mul_i32 v6, v0, v0
  v_add_i32 v6, v6, s8
  s_wait
  v_fma_f32 v7, v4, v6, v7
  v_fma_f32 v8, v5, v6, v8
  v_xor_i32 v9, v4, v5
  shared_store_4 v9, v14
  v_lshr_i32 v9, v9, 3
  v_cmp_ult_i32 m0, v9, v6
  v_select_i32 v16, m0, v9, v6
  s_wait
  shared_load_4 v17, v14
  s_wait
  v_add_i64 v18, v16, v8
  global_store_4 v17, v10 #0x2000
"""
KINDS = {
    "integers_ns": "v_add_i32 v4, v4, v0",
    "fma_ns": "v_fma_f32 v4, v4, v0, v4",
    "scalar_ns": "s_add_i32 s9, s9, 1",
    "load_ns": "global_load_4 v4, v10",
    "load_strided_ns": "global_load_4 v4, v12",
    "load_16_bytes_ns": "global_load_16 v4, v12",
    "shared_load_ns": "shared_load_4 v4, v14",
    "wait_ns": "s_wait",
}


def cost(lanes: int, body: str, instructions: int) -> float:
    """Nanoseconds of an instruction: the best of five runs.

    Args:
      lanes: 32 or 64.
      body: of the loop.
      instructions: how many to execute, about.
    """
    gpu = ToyGpu(lanes)
    loops = max(instructions // len(body.split("\n")), 1)
    gpu.load(_BEGIN + body + _END.format(loops=loops))
    gpu.launch(shared_bytes=SHARED_BYTES)  # decodes it
    found = []
    for _ in range(5):
        begin = time.perf_counter()
        executed = gpu.launch(shared_bytes=SHARED_BYTES)
        found.append((time.perf_counter() - begin) / executed)
    return 1e9 * min(found)


def measured(instructions: int = 2_000_000) -> dict[str, float]:
    """All figures."""
    figures = {f"wave{lanes}_mix_ns": cost(lanes, MIX, instructions) for lanes in (64, 32)}
    for name, line in KINDS.items():
        figures[name] = cost(64, "\n".join([line] * 20), instructions // 4)
    return {name: round(ns, 2) for name, ns in figures.items()}


def main(say: Callable[[str], None], path: str = "") -> int:
    """Prints the figures as JSON; 1 if one is more than it may be.

    Args:
      say: prints a line.
      path: a record that they are put in, for the page; none if empty.
    """
    figures = measured()
    say(json.dumps(figures))
    if path:
        Record.put(Path(path), "engine", figures)
    return int(any(figures[name] > most for name, most in GOALS_NS.items()))
