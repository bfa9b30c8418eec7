"""The host's side of a launch, as LLVM IR: blocks one after the other, and the threads of a block in turns."""

from __future__ import annotations

from .convention import BARRIER, EXIT, FRAME_MASK, MISALIGNED, RUNNING, STUCK, TRAP, WARP

# What a status may become once every thread of a block waits or has ended. A lane of a warp goes on when all lanes that
# it waits for are there; a barrier opens when nobody waits for a warp any more.
RELEASE = f"""
define internal i32 @release(ptr %status, ptr %frames, i64 %size, i32 %n) #0 {{
entry:
  br label %warp
warp:
  %base = phi i32 [ 0, %entry ], [ %base.next, %warp.end ]
  %freed = phi i32 [ 0, %entry ], [ %freed.out, %warp.end ]
  %held = phi i32 [ 0, %entry ], [ %held.out, %warp.end ]
  %fenced = phi i32 [ 0, %entry ], [ %fenced.out, %warp.end ]
  %warp.go = icmp slt i32 %base, %n
  br i1 %warp.go, label %count, label %decide
count:
  %end.raw = add i32 %base, 32
  %end.cut = icmp slt i32 %end.raw, %n
  %end = select i1 %end.cut, i32 %end.raw, i32 %n
  br label %lane
lane:
  %t = phi i32 [ %base, %count ], [ %t.next, %lane.body ]
  %here = phi i32 [ 0, %count ], [ %here.next, %lane.body ]
  %fenced.in = phi i32 [ %fenced, %count ], [ %fenced.next, %lane.body ]
  %lane.go = icmp slt i32 %t, %end
  br i1 %lane.go, label %lane.body, label %free
lane.body:
  %s.at = getelementptr i32, ptr %status, i32 %t
  %s = load i32, ptr %s.at
  %s.exit = icmp eq i32 %s, {EXIT}
  %s.warp = icmp eq i32 %s, {WARP}
  %s.there = or i1 %s.exit, %s.warp
  %s.bar = icmp eq i32 %s, {BARRIER}
  %fenced.bit = zext i1 %s.bar to i32
  %fenced.next = or i32 %fenced.in, %fenced.bit
  %offset = sub i32 %t, %base
  %s.bit = zext i1 %s.there to i32
  %s.placed = shl i32 %s.bit, %offset
  %here.next = or i32 %here, %s.placed
  %t.next = add i32 %t, 1
  br label %lane
free:
  %u = phi i32 [ %base, %lane ], [ %u.next, %free.next ]
  %freed.in = phi i32 [ %freed, %lane ], [ %freed.next, %free.next ]
  %held.in = phi i32 [ %held, %lane ], [ %held.next, %free.next ]
  %free.go = icmp slt i32 %u, %end
  br i1 %free.go, label %free.body, label %warp.end
free.body:
  %v.at = getelementptr i32, ptr %status, i32 %u
  %v = load i32, ptr %v.at
  %v.warp = icmp eq i32 %v, {WARP}
  br i1 %v.warp, label %ask, label %free.skip
ask:
  %u.wide = sext i32 %u to i64
  %frame.at = mul i64 %u.wide, %size
  %frame = getelementptr i8, ptr %frames, i64 %frame.at
  %mask.at = getelementptr i8, ptr %frame, i64 {FRAME_MASK}
  %mask = load i32, ptr %mask.at
  %absent = xor i32 %here, -1
  %missing = and i32 %mask, %absent
  %ready = icmp eq i32 %missing, 0
  br i1 %ready, label %go, label %stay
go:
  store i32 {RUNNING}, ptr %v.at
  br label %free.next
stay:
  br label %free.next
free.skip:
  br label %free.next
free.next:
  %freed.bit = phi i32 [ 1, %go ], [ 0, %stay ], [ 0, %free.skip ]
  %held.bit = phi i32 [ 0, %go ], [ 1, %stay ], [ 0, %free.skip ]
  %freed.next = or i32 %freed.in, %freed.bit
  %held.next = or i32 %held.in, %held.bit
  %u.next = add i32 %u, 1
  br label %free
warp.end:
  %freed.out = phi i32 [ %freed.in, %free ]
  %held.out = phi i32 [ %held.in, %free ]
  %fenced.out = phi i32 [ %fenced.in, %free ]
  %base.next = add i32 %base, 32
  br label %warp
decide:
  %some = icmp ne i32 %freed, 0
  br i1 %some, label %again, label %decide.held
decide.held:
  %stuck = icmp ne i32 %held, 0
  br i1 %stuck, label %lost, label %decide.fence
decide.fence:
  %waits = icmp ne i32 %fenced, 0
  br i1 %waits, label %fence, label %done
fence:
  %w = phi i32 [ 0, %decide.fence ], [ %w.next, %fence.next ]
  %fence.go = icmp slt i32 %w, %n
  br i1 %fence.go, label %fence.body, label %again
fence.body:
  %w.at = getelementptr i32, ptr %status, i32 %w
  %x = load i32, ptr %w.at
  %x.bar = icmp eq i32 %x, {BARRIER}
  br i1 %x.bar, label %fence.open, label %fence.next
fence.open:
  store i32 {RUNNING}, ptr %w.at
  br label %fence.next
fence.next:
  %w.next = add i32 %w, 1
  br label %fence
again:
  ret i32 {RUNNING}
lost:
  ret i32 {STUCK}
done:
  ret i32 {EXIT}
}}
"""

_HEAD = """
define i32 @{entry}(ptr %params, ptr %sizes, ptr %shared, ptr %status, ptr %frames, i64 %first, i64 %last) {{
entry:
  %state = alloca [9 x i32], align 4
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %state, ptr align 4 %sizes, i64 24, i1 false)
  %nx = load i32, ptr %sizes
  %ny.at = getelementptr i32, ptr %sizes, i64 1
  %ny = load i32, ptr %ny.at
  %nz.at = getelementptr i32, ptr %sizes, i64 2
  %nz = load i32, ptr %nz.at
  %nxy = mul i32 %nx, %ny
  %n = mul i32 %nxy, %nz
  %gx.at = getelementptr i32, ptr %sizes, i64 3
  %gx.32 = load i32, ptr %gx.at
  %gx = zext i32 %gx.32 to i64
  %gy.at = getelementptr i32, ptr %sizes, i64 4
  %gy.32 = load i32, ptr %gy.at
  %gy = zext i32 %gy.32 to i64
  %cx.at = getelementptr i32, ptr %state, i64 6
  %cy.at = getelementptr i32, ptr %state, i64 7
  %cz.at = getelementptr i32, ptr %state, i64 8
  br label %block
block:
  %b = phi i64 [ %first, %entry ], [ %b.next, %block.end ]
  %block.go = icmp ult i64 %b, %last
  br i1 %block.go, label %block.begin, label %end
block.begin:
  %cx.64 = urem i64 %b, %gx
  %rows = udiv i64 %b, %gx
  %cy.64 = urem i64 %rows, %gy
  %cz.64 = udiv i64 %rows, %gy
  %cx = trunc i64 %cx.64 to i32
  %cy = trunc i64 %cy.64 to i32
  %cz = trunc i64 %cz.64 to i32
  store i32 %cx, ptr %cx.at
  store i32 %cy, ptr %cy.at
  store i32 %cz, ptr %cz.at
"""

_THREAD = """
  %tx = urem i32 %t, %nx
  %lines = udiv i32 %t, %nx
  %ty = urem i32 %lines, %ny
  %tz = udiv i32 %lines, %ny
"""

_PLAIN = f"""
  br label %thread
thread:
  %t = phi i32 [ 0, %block.begin ], [ %t.next, %thread.next ]
  %thread.go = icmp ult i32 %t, %n
  br i1 %thread.go, label %thread.body, label %block.end
thread.body:
{_THREAD}
  %r = call i32 @{{thread}}(ptr %params, ptr %state, ptr %shared, ptr null, i32 %tx, i32 %ty, i32 %tz, i32 %t)
  %ended = icmp eq i32 %r, {EXIT}
  br i1 %ended, label %thread.next, label %failed
thread.next:
  %t.next = add nuw i32 %t, 1
  br label %thread
failed:
  ret i32 %r
"""

_TURNS = f"""
  br label %clear
clear:
  %c = phi i32 [ 0, %block.begin ], [ %c.next, %clear.body ]
  %clear.go = icmp ult i32 %c, %n
  br i1 %clear.go, label %clear.body, label %round
clear.body:
  %c.at = getelementptr i32, ptr %status, i32 %c
  store i32 {RUNNING}, ptr %c.at
  %c.wide = zext i32 %c to i64
  %c.offset = mul i64 %c.wide, {{frame_bytes}}
  %c.frame = getelementptr i8, ptr %frames, i64 %c.offset
  store i32 0, ptr %c.frame
  %c.next = add nuw i32 %c, 1
  br label %clear
round:
  br label %thread
thread:
  %t = phi i32 [ 0, %round ], [ %t.next, %thread.next ]
  %thread.go = icmp ult i32 %t, %n
  br i1 %thread.go, label %thread.look, label %settle
thread.look:
  %s.at = getelementptr i32, ptr %status, i32 %t
  %s = load i32, ptr %s.at
  %runs = icmp eq i32 %s, {RUNNING}
  br i1 %runs, label %thread.body, label %thread.next
thread.body:
{_THREAD}
  %t.wide = zext i32 %t to i64
  %offset = mul i64 %t.wide, {{frame_bytes}}
  %frame = getelementptr i8, ptr %frames, i64 %offset
  %r = call i32 @{{thread}}(ptr %params, ptr %state, ptr %shared, ptr %frame, i32 %tx, i32 %ty, i32 %tz, i32 %t)
  store i32 %r, ptr %s.at
  %trapped.in = icmp eq i32 %r, {TRAP}
  %trapped.at = icmp eq i32 %r, {MISALIGNED}
  %trapped = or i1 %trapped.in, %trapped.at
  br i1 %trapped, label %failed, label %thread.next
thread.next:
  %t.next = add nuw i32 %t, 1
  br label %thread
settle:
  %verdict = call i32 @release(ptr %status, ptr %frames, i64 {{frame_bytes}}, i32 %n)
  switch i32 %verdict, label %lost [ i32 {RUNNING}, label %round
                                     i32 {EXIT}, label %block.end ]
lost:
  ret i32 %verdict
failed:
  ret i32 %r
"""

_TAIL = f"""
block.end:
  %b.next = add nuw i64 %b, 1
  br label %block
end:
  ret i32 {EXIT}
}}
"""


def launcher(entry: str, thread: str, frame_bytes: int) -> str:
    """A function that runs blocks ``first`` to ``last`` of a kernel.

    Its arguments: the parameters as they lie in memory; six words, the threads and the blocks along x, y, z; shared
    memory; a word and a frame for each thread of a block, where the kernel waits; the range of blocks. It returns
    ``EXIT``, ``TRAP``, or ``STUCK`` where threads wait for others that never come.

    Args:
      entry: the function's name, as LLVM has it.
      thread: the name of the function that runs a thread.
      frame_bytes: size of a frame, 0 for a kernel that never waits.
    """
    body = (_TURNS if frame_bytes else _PLAIN).format(thread=thread, frame_bytes=frame_bytes)
    return _HEAD.format(entry=entry) + body + _TAIL
