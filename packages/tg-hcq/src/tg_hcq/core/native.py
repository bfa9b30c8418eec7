"""The native half of a replay: one function that resolves, checks, patches, writes a ring and rings its doorbell.

It walks the arrays of a :class:`~tg_hcq.core.patch.PatchTable` and calls nobody. Nothing has changed where it returns
anything but :attr:`Outcome.DONE`, except that a ring's end may have been filled up.

The function takes the address of a record, whose words :data:`RECORD` names, 64 bits each:

- counters are rows (address, input, step): ``step`` more than the word there is an input, and is stored there at the
  end;
- copies are rows (from, to, dwords): what was patched goes on to where the device reads it;
- the queue's words are in use while the word at ``fence`` is less than that at ``serial``;
- where ``dry`` is not 0, it only looks whether it would be done;
- a ring is described by the words that :data:`RING` names, as :class:`~tg_hcq.core.ring.Ring` has them.

Written as LLVM IR, which tg_runtime compiles and keeps on disk.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import re
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from tg_runtime import CompileError, DeviceError
from tg_runtime.compilers.llvm import LLVMCompiler, available
from tg_runtime.host.execmem import ExecutableMemory

from .patch import LIMIT_COLUMNS, ROW_COLUMNS, SUM_COLUMNS, TERM_COLUMNS


class Outcome(IntEnum):
    """What a replay came to: done; an input or a value out of bounds; words still in use; too little room."""

    DONE = 0
    INPUT = 1
    VALUE = 2
    BUSY = 3
    FULL = 4


RECORD: Final = (
    "inputs", "input_count", "limits", "sums", "sum_count", "terms", "rows", "fresh", "values", "spaces", "known",
    "counters", "counter_count", "copies", "copy_count", "fence", "serial", "ring", "words", "word_count", "dry",
)  # fmt: skip
RING: Final = (
    "base", "dwords", "entry_dwords", "scale", "wraps", "circle", "filler", "fills", "headed", "token",
    "tells_token", "read", "read_wide", "write", "write_wide", "doorbell", "doorbell_wide", "flush", "behind",
)  # fmt: skip
COUNTER_COLUMNS: Final = 3
COPY_COLUMNS: Final = 3

_FENCES: Final = {
    "x86_64": ("llvm.x86.sse.sfence", "", ""),
    "aarch64": ("llvm.aarch64.dmb", "i32", "i32 14"),  # dmb st
}


@functools.cache
def native_replay() -> Callable[[int], int] | None:
    """The compiled function; None where LLVM is not there, or makes no code that runs here."""
    if not available() or sys.platform != "linux" or platform.machine() not in _FENCES:
        return None
    try:
        code = ExecutableMemory(LLVMCompiler().compile_cached(source()))
    except (CompileError, DeviceError, OSError):
        return None
    # The interpreter is kept: nothing else in this process that runs Python comes between a check and its store.
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)(code.function("replay"))
    function.__dict__["code"] = code
    return function


def source() -> str:
    """The text."""
    name, parameters, arguments = _FENCES[platform.machine()]
    text = _TEXT.replace("$STORE_FENCE", f"call void @{name}({arguments})")
    for columns, word in (
        (LIMIT_COLUMNS, "LIMIT"), (SUM_COLUMNS, "SUM"), (TERM_COLUMNS, "TERM"), (ROW_COLUMNS, "ROW"),
        (COUNTER_COLUMNS, "COUNTER"), (COPY_COLUMNS, "COPY"),
    ):  # fmt: skip
        text = text.replace(f"${word}", str(columns))
    for outcome in Outcome:
        text = text.replace(f"@{outcome.name}", str(int(outcome)))
    text = re.sub(r"^  (%\S+) = field (\S+) (\S+) (\S+)$", _field, text, flags=re.MULTILINE)
    text = re.sub(r"^  (%\S+) = at (\S+) (\S+)$", _element, text, flags=re.MULTILINE)
    return f"declare void @{name}({parameters})\n{text}"


def _field(found: re.Match[str]) -> str:
    """``%x = field ptr %record name``: the word of that name, as an address or an integer."""
    target, kind, base, name = found.groups()
    index = (RECORD if base == "%record" else RING).index(name)
    return f"  {target}.p = getelementptr i64, ptr {base}, i64 {index}\n  {target} = load {kind}, ptr {target}.p"


def _element(found: re.Match[str]) -> str:
    """``%x = at %base %index``: the 64-bit word with this index."""
    target, base, index = found.groups()
    return f"  {target}.p = getelementptr i64, ptr {base}, i64 {index}\n  {target} = load i64, ptr {target}.p"


_TEXT: Final = """
define private i64 @pointer(ptr %address, i64 %wide) alwaysinline nounwind {
  %is = icmp ne i64 %wide, 0
  br i1 %is, label %long, label %short
long:
  %q = load atomic i64, ptr %address acquire, align 8
  ret i64 %q
short:
  %d = load atomic i32, ptr %address acquire, align 4
  %e = zext i32 %d to i64
  ret i64 %e
}

define private void @store(ptr %address, i64 %wide, i64 %value) alwaysinline nounwind {
  $STORE_FENCE
  %is = icmp ne i64 %wide, 0
  br i1 %is, label %long, label %short
long:
  store atomic i64 %value, ptr %address release, align 8
  ret void
short:
  %d = trunc i64 %value to i32
  store atomic i32 %d, ptr %address release, align 4
  ret void
}

; Entries that were put in the ring and not read yet.
define private i64 @used(ptr %ring, i64 %position) nounwind {
  %read = field ptr %ring read
  %read_wide = field i64 %ring read_wide
  %scale = field i64 %ring scale
  %circle = field i64 %ring circle
  %seen = call i64 @pointer(ptr %read, i64 %read_wide)
  %distance = sub i64 %position, %seen
  %behind = icmp ult i64 %position, %seen
  %around = add i64 %distance, %circle
  %near = select i1 %behind, i64 %around, i64 %distance
  %is_circle = icmp ne i64 %circle, 0
  %modulus = select i1 %is_circle, i64 %circle, i64 -1
  %rest = urem i64 %near, %modulus
  %used = udiv i64 %rest, %scale
  ret i64 %used
}

; Moves the write pointer by so many entries, and rings the doorbell.
define private void @publish(ptr %ring, i64 %from, i64 %count) nounwind {
  %scale = field i64 %ring scale
  %wraps = field i64 %ring wraps
  %step = mul i64 %count, %scale
  %sum = add i64 %from, %step
  %begin_again = icmp ne i64 %wraps, 0
  br i1 %begin_again, label %wrap, label %plain
wrap:
  %rest = urem i64 %sum, %wraps
  br label %out
plain:
  br label %out
out:
  %to = phi i64 [ %rest, %wrap ], [ %sum, %plain ]
  %write = field ptr %ring write
  %write_wide = field i64 %ring write_wide
  call void @store(ptr %write, i64 %write_wide, i64 %to)
  %doorbell = field ptr %ring doorbell
  %doorbell_wide = field i64 %ring doorbell_wide
  %tells = field i64 %ring tells_token
  %token = field i64 %ring token
  %other = icmp ne i64 %tells, 0
  %behind = field i64 %ring behind
  %last = sub i64 %to, %behind
  %told = select i1 %other, i64 %token, i64 %last
  call void @store(ptr %doorbell, i64 %doorbell_wide, i64 %told)
  ret void
}

define private void @dwords(ptr %to, ptr %from, i64 %count) alwaysinline nounwind {
entry:
  %bytes = shl i64 %count, 2
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %to, ptr align 4 %from, i64 %bytes, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Has what the host stored to the device's memory arrive there, before whoever reads it is told.
define private void @flush(ptr %ring) nounwind {
  %cell = field ptr %ring flush
  %register = load ptr, ptr %cell
  %wanted = icmp ne ptr %register, null
  br i1 %wanted, label %store, label %out
store:
  $STORE_FENCE
  store atomic i32 0, ptr %register release, align 4
  $STORE_FENCE
  br label %out
out:
  ret void
}

; Puts entries in a ring: all that is behind their first words, and then these.
define private void @packets(ptr %ring, ptr %words, i64 %start, i64 %count) nounwind {
entry:
  %base = field ptr %ring base
  %size = field i64 %ring dwords
  %step = field i64 %ring entry_dwords
  %rest = sub i64 %step, 1
  br label %body_next
body_next:
  %b = phi i64 [ 0, %entry ], [ %b1, %body ]
  %b_more = icmp ult i64 %b, %count
  br i1 %b_more, label %body, label %bodies_done
body:
  %b_sum = add i64 %start, %b
  %b_place = urem i64 %b_sum, %size
  %b_behind = add i64 %b_place, 1
  %b_to = getelementptr i32, ptr %base, i64 %b_behind
  %b_second = add i64 %b, 1
  %b_from = getelementptr i32, ptr %words, i64 %b_second
  call void @dwords(ptr %b_to, ptr %b_from, i64 %rest)
  %b1 = add i64 %b, %step
  br label %body_next
bodies_done:
  $STORE_FENCE
  br label %head_next
head_next:
  %h = phi i64 [ 0, %bodies_done ], [ %h1, %head ]
  %h_more = icmp ult i64 %h, %count
  br i1 %h_more, label %head, label %out
head:
  %h_sum = add i64 %start, %h
  %h_place = urem i64 %h_sum, %size
  %h_to = getelementptr i32, ptr %base, i64 %h_place
  %h_from = getelementptr i32, ptr %words, i64 %h
  %header = load i32, ptr %h_from
  store atomic i32 %header, ptr %h_to release, align 4
  %h1 = add i64 %h, %step
  br label %head_next
out:
  ret void
}

define i64 @replay(ptr %record) nounwind {
entry:
  %inputs = field ptr %record inputs
  %counters = field ptr %record counters
  %counter_count = field i64 %record counter_count
  br label %count_next
count_next:
  %k = phi i64 [ 0, %entry ], [ %k1, %count ]
  %k_more = icmp ult i64 %k, %counter_count
  br i1 %k_more, label %count, label %count_done
count:
  %k_at = mul i64 %k, $COUNTER
  %counter = getelementptr i64, ptr %counters, i64 %k_at
  %counted.p = load ptr, ptr %counter
  %counted = load i64, ptr %counted.p
  %c_input = at %counter 1
  %c_step = at %counter 2
  %c_value = add i64 %counted, %c_step
  %c_to = getelementptr i64, ptr %inputs, i64 %c_input
  store i64 %c_value, ptr %c_to
  %k1 = add i64 %k, 1
  br label %count_next
count_done:

  %input_count = field i64 %record input_count
  %limits = field ptr %record limits
  br label %input_next
input_next:
  %i = phi i64 [ 0, %count_done ], [ %i1, %input_fits ]
  %i_more = icmp ult i64 %i, %input_count
  br i1 %i_more, label %input, label %sums_begin
input:
  %i_value = at %inputs %i
  %i_at = mul i64 %i, $LIMIT
  %limit = getelementptr i64, ptr %limits, i64 %i_at
  %i_least = load i64, ptr %limit
  %i_span = at %limit 1
  %i_off = sub i64 %i_value, %i_least
  %i_fits = icmp ule i64 %i_off, %i_span
  br i1 %i_fits, label %input_fits, label %bad_input
input_fits:
  %i1 = add i64 %i, 1
  br label %input_next
bad_input:
  ret i64 @INPUT

sums_begin:
  %sums = field ptr %record sums
  %sum_count = field i64 %record sum_count
  %terms = field ptr %record terms
  %fresh = field ptr %record fresh
  br label %sum_next
sum_next:
  %s = phi i64 [ 0, %sums_begin ], [ %s1, %sum_fits ]
  %t0 = phi i64 [ 0, %sums_begin ], [ %t_end, %sum_fits ]
  %s_more = icmp ult i64 %s, %sum_count
  br i1 %s_more, label %sum, label %sums_done
sum:
  %s_at = mul i64 %s, $SUM
  %sum_row = getelementptr i64, ptr %sums, i64 %s_at
  %constant = load i64, ptr %sum_row
  %s_least = at %sum_row 1
  %s_span = at %sum_row 2
  %t_end = at %sum_row 3
  br label %term_next
term_next:
  %t = phi i64 [ %t0, %sum ], [ %t1, %term ]
  %so_far = phi i64 [ %constant, %sum ], [ %added, %term ]
  %t_more = icmp ult i64 %t, %t_end
  br i1 %t_more, label %term, label %summed
term:
  %t_at = mul i64 %t, $TERM
  %term_row = getelementptr i64, ptr %terms, i64 %t_at
  %coefficient = load i64, ptr %term_row
  %t_input = at %term_row 1
  %t_value = at %inputs %t_input
  %product = mul i64 %coefficient, %t_value
  %added = add i64 %so_far, %product
  %t1 = add i64 %t, 1
  br label %term_next
summed:
  %s_off = sub i64 %so_far, %s_least
  %s_fits = icmp ule i64 %s_off, %s_span
  br i1 %s_fits, label %sum_fits, label %bad_value
sum_fits:
  %fresh_to = getelementptr i64, ptr %fresh, i64 %s
  store i64 %so_far, ptr %fresh_to
  %s1 = add i64 %s, 1
  br label %sum_next
bad_value:
  ret i64 @VALUE

sums_done:
  %fence = field ptr %record fence
  %fenced = icmp ne ptr %fence, null
  br i1 %fenced, label %look, label %room
look:
  %serial = field ptr %record serial
  %sent = load i64, ptr %serial
  %passed = load atomic i64, ptr %fence acquire, align 8
  %free = icmp uge i64 %passed, %sent
  br i1 %free, label %room, label %busy
busy:
  ret i64 @BUSY

room:
  %ring = field ptr %record ring
  %word_count = field i64 %record word_count
  %sends = icmp ne ptr %ring, null
  br i1 %sends, label %ring_found, label %patch_begin
ring_found:
  %base = field ptr %ring base
  %dwords = field i64 %ring dwords
  %entry_dwords = field i64 %ring entry_dwords
  %scale = field i64 %ring scale
  %circle = field i64 %ring circle
  %filler = field i64 %ring filler
  %fills = field i64 %ring fills
  %write = field ptr %ring write
  %write_wide = field i64 %ring write_wide
  %entries = udiv i64 %dwords, %entry_dwords
  %count64 = udiv i64 %word_count, %entry_dwords
  %is_wrapping = icmp ne i64 %circle, 0
  %spare = zext i1 %is_wrapping to i64
  %capacity = sub i64 %entries, %spare
  br label %place
place:
  %position = call i64 @pointer(ptr %write, i64 %write_wide)
  %used = call i64 @used(ptr %ring, i64 %position)
  %spaces_left = sub i64 %capacity, %used
  %entry_number = udiv i64 %position, %scale
  %entry_place = urem i64 %entry_number, %entries
  %start = mul i64 %entry_place, %entry_dwords
  %left = sub i64 %dwords, %start
  %cut = icmp ugt i64 %word_count, %left
  %may_fill = icmp ne i64 %fills, 0
  %must_fill = and i1 %cut, %may_fill
  br i1 %must_fill, label %fill_room, label %enough
fill_room:
  %left_entries = udiv i64 %left, %entry_dwords
  %fill_fits = icmp ule i64 %left_entries, %spaces_left
  br i1 %fill_fits, label %fill_next, label %full
fill_next:
  %f = phi i64 [ %start, %fill_room ], [ %f1, %fill ]
  %f_more = icmp ult i64 %f, %dwords
  br i1 %f_more, label %fill, label %fill_done
fill:
  %f_to = getelementptr i32, ptr %base, i64 %f
  %filler32 = trunc i64 %filler to i32
  store i32 %filler32, ptr %f_to
  %f1 = add i64 %f, 1
  br label %fill_next
fill_done:
  call void @publish(ptr %ring, i64 %position, i64 %left_entries)
  br label %place
enough:
  %fits = icmp ule i64 %count64, %spaces_left
  br i1 %fits, label %patch_begin, label %full
full:
  ret i64 @FULL

patch_begin:
  %first = phi i64 [ 0, %room ], [ %start, %enough ]
  %whole = phi i64 [ 0, %room ], [ %left, %enough ]
  %from = phi i64 [ 0, %room ], [ %position, %enough ]
  %dry = field i64 %record dry
  %only_looks = icmp ne i64 %dry, 0
  br i1 %only_looks, label %looked, label %patch
looked:
  ret i64 @DONE
patch:
  %values = field ptr %record values
  %rows = field ptr %record rows
  %spaces = field ptr %record spaces
  %known = field ptr %record known
  %was_known = load i64, ptr %known
  %is_known = icmp ne i64 %was_known, 0
  store i64 1, ptr %known
  br label %value_next
value_next:
  %v = phi i64 [ 0, %patch ], [ %v1, %value_done ]
  %r0 = phi i64 [ 0, %patch ], [ %r_end, %value_done ]
  %v_more = icmp ult i64 %v, %sum_count
  br i1 %v_more, label %value, label %patched
value:
  %v_at = mul i64 %v, $SUM
  %v_row = getelementptr i64, ptr %sums, i64 %v_at
  %r_end = at %v_row 4
  %new = at %fresh %v
  %old = at %values %v
  %same = icmp eq i64 %new, %old
  %skip = and i1 %same, %is_known
  br i1 %skip, label %value_done, label %changed
changed:
  store i64 %new, ptr %old.p
  br label %row_next
row_next:
  %r = phi i64 [ %r0, %changed ], [ %r1, %row ]
  %r_more = icmp ult i64 %r, %r_end
  br i1 %r_more, label %row, label %value_done
row:
  %r_at = mul i64 %r, $ROW
  %row_at = getelementptr i64, ptr %rows, i64 %r_at
  %space = load i64, ptr %row_at
  %dword = at %row_at 1
  %shift = at %row_at 2
  %mask64 = at %row_at 3
  %space_to = getelementptr i64, ptr %spaces, i64 %space
  %space_base = load ptr, ptr %space_to
  %word_to = getelementptr i32, ptr %space_base, i64 %dword
  %to_left = icmp slt i64 %shift, 0
  %minus = sub i64 0, %shift
  %amount = select i1 %to_left, i64 %minus, i64 %shift
  %up = shl i64 %new, %amount
  %down = lshr i64 %new, %amount
  %moved = select i1 %to_left, i64 %up, i64 %down
  %bits = trunc i64 %moved to i32
  %mask = trunc i64 %mask64 to i32
  %others = xor i32 %mask, -1
  %word = load i32, ptr %word_to
  %kept = and i32 %word, %others
  %taken = and i32 %bits, %mask
  %joined = or i32 %kept, %taken
  store i32 %joined, ptr %word_to
  %r1 = add i64 %r, 1
  br label %row_next
value_done:
  %v1 = add i64 %v, 1
  br label %value_next

patched:
  %copies = field ptr %record copies
  %copy_count = field i64 %record copy_count
  br label %copy_next
copy_next:
  %c = phi i64 [ 0, %patched ], [ %c1, %copy ]
  %c_more = icmp ult i64 %c, %copy_count
  br i1 %c_more, label %copy, label %copied
copy:
  %c_at = mul i64 %c, $COPY
  %copy_row = getelementptr i64, ptr %copies, i64 %c_at
  %c_from = load ptr, ptr %copy_row
  %c_dest.p = getelementptr i64, ptr %copy_row, i64 1
  %c_dest = load ptr, ptr %c_dest.p
  %c_dwords = at %copy_row 2
  call void @dwords(ptr %c_dest, ptr %c_from, i64 %c_dwords)
  %c1 = add i64 %c, 1
  br label %copy_next

copied:
  br i1 %sends, label %send, label %sent_all
send:
  call void @flush(ptr %ring)
  %words = field ptr %record words
  %is_cut = icmp ugt i64 %word_count, %whole
  %head = select i1 %is_cut, i64 %whole, i64 %word_count
  %tail = sub i64 %word_count, %head
  %ring_base = field ptr %ring base
  %headed = field i64 %ring headed
  %has_headers = icmp ne i64 %headed, 0
  br i1 %has_headers, label %send_packets, label %send_words
send_packets:
  call void @packets(ptr %ring, ptr %words, i64 %first, i64 %word_count)
  br label %put
send_words:
  %send_to = getelementptr i32, ptr %ring_base, i64 %first
  call void @dwords(ptr %send_to, ptr %words, i64 %head)
  %rest_from = getelementptr i32, ptr %words, i64 %head
  call void @dwords(ptr %ring_base, ptr %rest_from, i64 %tail)
  br label %put
put:
  %unit = field i64 %ring entry_dwords
  %sent_entries = udiv i64 %word_count, %unit
  call void @publish(ptr %ring, i64 %from, i64 %sent_entries)
  br label %sent_all
sent_all:
  br label %advance_next
advance_next:
  %a = phi i64 [ 0, %sent_all ], [ %a1, %advance ]
  %a_more = icmp ult i64 %a, %counter_count
  br i1 %a_more, label %advance, label %out
advance:
  %a_at = mul i64 %a, $COUNTER
  %a_counter = getelementptr i64, ptr %counters, i64 %a_at
  %a_to = load ptr, ptr %a_counter
  %a_step = at %a_counter 2
  %a_old = load i64, ptr %a_to
  %a_new = add i64 %a_old, %a_step
  store i64 %a_new, ptr %a_to
  %a1 = add i64 %a, 1
  br label %advance_next
out:
  ret i64 @DONE
}
"""
