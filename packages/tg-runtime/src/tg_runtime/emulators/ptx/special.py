"""Special registers: where a thread stands in its warp, its block and the grid, and clocks."""

from __future__ import annotations

from .convention import STATE
from .emitter import Emitter
from .errors import PTXUnsupported
from .syntax import Function


class Special:
    """Reads the special registers of a thread."""

    def __init__(self, ir: Emitter, function: Function) -> None:
        self.ir, self.function = ir, function

    def read(self, name: str) -> tuple[str, str]:
        """A special register and its LLVM type."""
        stem, _, axis = name[1:].partition(".")
        if stem == "tid" and axis:
            return f"%tid.{axis}", "i32"
        if stem in STATE and axis:
            place = self.ir.emit(f"getelementptr i32, ptr %state, i64 {STATE[stem] + 'xyz'.index(axis)}")
            return self.ir.emit(f"load i32, ptr {place}"), "i32"
        lane = self.ir.emit("and i32 %flat, 31") if stem.startswith("lane") else ""
        match stem:
            case "laneid":
                return lane, "i32"
            case "warpid":
                return self.ir.emit("lshr i32 %flat, 5"), "i32"
            case "lanemask_eq" | "lanemask_lt" | "lanemask_le" | "lanemask_gt" | "lanemask_ge":
                return self.lane_mask(stem[-2:], lane), "i32"
            case "clock" | "clock_hi" | "smid" | "gridid" | "nwarpid":
                return "0", "i32"
            case "nsmid":
                return "1", "i32"
            case "clock64" | "globaltimer":
                return self.ir.call("llvm.readcyclecounter", "i64"), "i64"
        raise PTXUnsupported(f"PTX: {self.function.name}: {name} is no register that is known")

    def lane_mask(self, which: str, lane: str) -> str:
        one = self.ir.emit(f"shl i32 1, {lane}")
        below = self.ir.emit(f"sub i32 {one}, 1")
        match which:
            case "eq":
                return one
            case "lt":
                return below
            case "le":
                return self.ir.emit(f"or i32 {one}, {below}")
            case "gt":
                return self.ir.emit(f"xor i32 {self.ir.emit(f'or i32 {one}, {below}')}, -1")
        return self.ir.emit(f"xor i32 {below}, -1")
