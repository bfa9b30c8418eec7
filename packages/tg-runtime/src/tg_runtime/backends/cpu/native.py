"""The native half of the dispatch path: thunks, the worker pool, and the walk over a table of launches.

Written as LLVM IR, so that llvmlite and clang can both compile it, and loaded like a kernel. No Python is on the path
of a launch: a table of :data:`ENTRY_WORDS` words a launch goes in, and threads run it.

Tables and arrays are little-endian 64-bit words:

- a launch: address of the thunk, address of the kernel, address of its arguments, number of threads, and in the upper
  half of that word the number of the first one;
- arguments: one word each, buffer addresses first;
- a patch: index into the arguments, index into the values, and what is added to the value;
- a replay: address of the launches, their number, address of the arguments, address of the patches, their number,
  address of the values;
- a move, by which a value follows from the number of a step: an address, bytes from slot to slot, the slot of step 0,
  by how many slots it moves in a step, how many there are, a mask of the slot's number, and the address where there is
  no such slot;
- a loop that is a launch of another table: address of the word that holds the pool's address, address of the replay,
  address of the moves, their number, the address of the homes, the first step, and the one after the last; one such
  after the other for each thread of the launch, which goes through the steps by itself;
- a home, by which a move follows from the arguments of such a launch: the index of the argument that its address
  begins at, what is added to that, and the index of the address where there is no slot (all ones where that is never).

How a job is handed out. One 64-bit word holds the job's number (upper half), how many parts it has (16 bits) and how
many were taken (16 bits). Whoever wants a part adds one by compare-and-swap, so a part of a finished job can never be
taken. The upper half is also the word on which idle workers sleep (futex), after having spun for as many pauses as the
pool's block says: how long one lasts differs between processors a hundredfold, so it is measured. The caller takes
parts too. When a second thread launches while a job is running, it runs its parts by itself.
"""

from __future__ import annotations

import platform
import sys

ENTRY_WORDS = 4
PATCH_WORDS = 3
MOVE_WORDS = 7
LOOP_WORDS = 7
POOL_BYTES = 512
# offsets in the pool's block, one cache line for each thing that different cores write
STATE, JOB, DONE, WAITING, SLEEPERS, STOP, BUSY, WORKERS, SPIN = 0, 64, 128, 132, 192, 196, 256, 320, 324

HANDLER_STACK_BYTES = 64 << 10
"""A stack for handlers of signals: the kernel saves all registers there, of which AMX alone has 8 KiB."""

_FUTEX = {"x86_64": 202, "aarch64": 98}
_SIGALTSTACK = {"x86_64": 131, "aarch64": 132}
_PAUSE = {"x86_64": "llvm.x86.sse2.pause()", "aarch64": "llvm.aarch64.hint(i32)"}


def supported() -> bool:
    """Whether the pool runs here: it wants Linux's futex, on x86-64 or AArch64."""
    return sys.platform == "linux" and platform.machine() in _FUTEX


def thunk_source(arity: int) -> str:
    """LLVM IR of ``thunk_N(kernel, arguments, core)``: calls a kernel with N arguments from memory, then ``core``.

    All arguments are integers or addresses, which travel alike. A kernel that takes no ``core`` ignores it.
    """
    loads = []
    for i in range(arity):
        loads.append(f"  %p{i} = getelementptr i64, ptr %args, i64 {i}")
        loads.append(f"  %a{i} = load i64, ptr %p{i}")
    arguments = ", ".join([*(f"i64 %a{i}" for i in range(arity)), "i64 %wide"])
    return "\n".join(
        [
            f"define void @thunk_{arity}(ptr %kernel, ptr %args, i32 %core) nounwind {{",
            "  %wide = zext i32 %core to i64",
            *loads,
            f"  call void %kernel({arguments})",
            "  ret void",
            "}",
        ]
    )


def pool_source() -> str:
    """LLVM IR of the pool: ``worker``, ``run_table``, ``replay``, ``repeat``, ``loop``, ``stop`` and ``pauses``."""
    machine = platform.machine()
    pause = _PAUSE[machine]
    pause_call = f"call void @{pause}" if machine == "x86_64" else "call void @llvm.aarch64.hint(i32 1)"
    text = _POOL.replace("$PAUSE", pause_call).replace("$FUTEX", str(_FUTEX[machine]))
    text = text.replace("$SIGALTSTACK", str(_SIGALTSTACK[machine])).replace("$STACK", str(HANDLER_STACK_BYTES))
    return f"declare void @{pause}\n{text}"


_POOL = """
declare i64 @syscall(i64, i64, i64, i64, i64, i64, i64)

define private void @wake(ptr %word, i32 %count) nounwind {
  %address = ptrtoint ptr %word to i64
  %wide = zext i32 %count to i64
  call i64 @syscall(i64 $FUTEX, i64 %address, i64 129, i64 %wide, i64 0, i64 0, i64 0)
  ret void
}

define private void @sleep(ptr %word, i32 %expected) nounwind {
  %address = ptrtoint ptr %word to i64
  %wide = zext i32 %expected to i64
  call i64 @syscall(i64 $FUTEX, i64 %address, i64 128, i64 %wide, i64 0, i64 0, i64 0)
  ret void
}

; Takes and runs parts of the job in the state word until none is left; returns the last state seen.
define private i64 @work(ptr %pool) nounwind {
entry:
  %thunk.p = getelementptr i8, ptr %pool, i64 64
  %kernel.p = getelementptr i8, ptr %pool, i64 72
  %args.p = getelementptr i8, ptr %pool, i64 80
  %done.p = getelementptr i8, ptr %pool, i64 128
  %waiting.p = getelementptr i8, ptr %pool, i64 132
  br label %look
look:
  %state = load atomic i64, ptr %pool seq_cst, align 8
  %taken = and i64 %state, 65535
  %shifted = lshr i64 %state, 16
  %parts = and i64 %shifted, 65535
  %some = icmp ult i64 %taken, %parts
  br i1 %some, label %take, label %none
take:
  %next = add i64 %state, 1
  %pair = cmpxchg ptr %pool, i64 %state, i64 %next seq_cst seq_cst, align 8
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %run, label %look
run:
  %thunk = load ptr, ptr %thunk.p
  %kernel = load ptr, ptr %kernel.p
  %args = load ptr, ptr %args.p
  %core = trunc i64 %taken to i32
  call void %thunk(ptr %kernel, ptr %args, i32 %core)
  %before = atomicrmw add ptr %done.p, i32 1 seq_cst, align 4
  %after = add i32 %before, 1
  %parts32 = trunc i64 %parts to i32
  %last = icmp eq i32 %after, %parts32
  br i1 %last, label %finish, label %look
finish:
  %waiting = load atomic i32, ptr %waiting.p seq_cst, align 4
  %someone = icmp ne i32 %waiting, 0
  br i1 %someone, label %tell, label %look
tell:
  call void @wake(ptr %done.p, i32 1)
  br label %look
none:
  ret i64 %state
}

define void @pauses(i64 %count) nounwind {
entry:
  %last = alloca i32
  store i32 0, ptr %last
  br label %spin
spin:
  %turns = phi i64 [ 0, %entry ], [ %turns.next, %spin ]
  %looked = load atomic i32, ptr %last seq_cst, align 4
  $PAUSE
  %turns.next = add i64 %turns, 1
  %more = icmp ult i64 %turns.next, %count
  br i1 %more, label %spin, label %end
end:
  ret void
}

; Handlers of signals run on memory at the far end of the worker's stack: who has run out of stack has no other.
define ptr @worker(ptr %pool) nounwind {
entry:
  %own = alloca [$STACK x i8], align 16
  %stack = alloca { ptr, i32, i64 }
  %stack.flags = getelementptr { ptr, i32, i64 }, ptr %stack, i64 0, i32 1
  %stack.size = getelementptr { ptr, i32, i64 }, ptr %stack, i64 0, i32 2
  store ptr %own, ptr %stack
  store i32 0, ptr %stack.flags
  store i64 $STACK, ptr %stack.size
  %stack.number = ptrtoint ptr %stack to i64
  call i64 @syscall(i64 $SIGALTSTACK, i64 %stack.number, i64 0, i64 0, i64 0, i64 0, i64 0)
  %epoch.p = getelementptr i8, ptr %pool, i64 4
  %sleepers.p = getelementptr i8, ptr %pool, i64 192
  %stop.p = getelementptr i8, ptr %pool, i64 196
  %spin.p = getelementptr i8, ptr %pool, i64 324
  br label %fresh
fresh:
  %seen = call i64 @work(ptr %pool)
  %seen.high = lshr i64 %seen, 32
  %epoch = trunc i64 %seen.high to i32
  %limit = load i32, ptr %spin.p
  br label %spin
spin:
  %turns = phi i32 [ 0, %fresh ], [ %turns.next, %again ]
  %stop = load atomic i32, ptr %stop.p seq_cst, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %leave, label %check
check:
  %now = load atomic i32, ptr %epoch.p seq_cst, align 4
  %changed = icmp ne i32 %now, %epoch
  br i1 %changed, label %fresh, label %tired
tired:
  %enough = icmp uge i32 %turns, %limit
  br i1 %enough, label %rest, label %again
again:
  $PAUSE
  %turns.next = add i32 %turns, 1
  br label %spin
rest:
  atomicrmw add ptr %sleepers.p, i32 1 seq_cst, align 4
  call void @sleep(ptr %epoch.p, i32 %epoch)
  atomicrmw sub ptr %sleepers.p, i32 1 seq_cst, align 4
  br label %fresh
leave:
  ret ptr null
}

define private void @alone(ptr %thunk, ptr %kernel, ptr %args, i32 %first, i32 %threads) nounwind {
entry:
  %end.core = add i32 %first, %threads
  br label %loop
loop:
  %core = phi i32 [ %first, %entry ], [ %core.next, %loop ]
  call void %thunk(ptr %kernel, ptr %args, i32 %core)
  %core.next = add i32 %core, 1
  %more = icmp ult i32 %core.next, %end.core
  br i1 %more, label %loop, label %end
end:
  ret void
}

define private void @launch(ptr %pool, ptr %thunk, ptr %kernel, ptr %args, i64 %which) nounwind {
entry:
  %threads = trunc i64 %which to i32
  %workers.p = getelementptr i8, ptr %pool, i64 320
  %busy.p = getelementptr i8, ptr %pool, i64 256
  %single = icmp ule i32 %threads, 1
  br i1 %single, label %serial, label %staffed
staffed:
  %workers = load atomic i32, ptr %workers.p seq_cst, align 4
  %nobody = icmp eq i32 %workers, 0
  br i1 %nobody, label %serial, label %enter
enter:
  %pair = cmpxchg ptr %busy.p, i32 0, i32 1 seq_cst seq_cst, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %post, label %serial
serial:
  %which.high = lshr i64 %which, 32
  %first = trunc i64 %which.high to i32
  call void @alone(ptr %thunk, ptr %kernel, ptr %args, i32 %first, i32 %threads)
  ret void
post:
  %thunk.p = getelementptr i8, ptr %pool, i64 64
  %kernel.p = getelementptr i8, ptr %pool, i64 72
  %args.p = getelementptr i8, ptr %pool, i64 80
  %done.p = getelementptr i8, ptr %pool, i64 128
  %waiting.p = getelementptr i8, ptr %pool, i64 132
  %sleepers.p = getelementptr i8, ptr %pool, i64 192
  %epoch.p = getelementptr i8, ptr %pool, i64 4
  %spin.p = getelementptr i8, ptr %pool, i64 324
  store ptr %thunk, ptr %thunk.p
  store ptr %kernel, ptr %kernel.p
  store ptr %args, ptr %args.p
  store atomic i32 0, ptr %done.p seq_cst, align 4
  store atomic i32 0, ptr %waiting.p seq_cst, align 4
  %old = load atomic i64, ptr %pool seq_cst, align 8
  %old.epoch = lshr i64 %old, 32
  %new.epoch = add i64 %old.epoch, 1
  %high = shl i64 %new.epoch, 32
  %threads64 = zext i32 %threads to i64
  %middle = shl i64 %threads64, 16
  %state = or i64 %high, %middle
  store atomic i64 %state, ptr %pool seq_cst, align 8
  %sleepers = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %rouse, label %join
rouse:
  %helpers = sub i32 %threads, 1
  call void @wake(ptr %epoch.p, i32 %helpers)
  br label %join
join:
  call i64 @work(ptr %pool)
  %limit = load i32, ptr %spin.p
  br label %wait
wait:
  %turns = phi i32 [ 0, %join ], [ %turns.next, %again ]
  %done = load atomic i32, ptr %done.p seq_cst, align 4
  %all = icmp eq i32 %done, %threads
  br i1 %all, label %finish, label %tired
tired:
  %enough = icmp uge i32 %turns, %limit
  br i1 %enough, label %rest, label %again
again:
  $PAUSE
  %turns.next = add i32 %turns, 1
  br label %wait
rest:
  store atomic i32 1, ptr %waiting.p seq_cst, align 4
  %done.now = load atomic i32, ptr %done.p seq_cst, align 4
  %all.now = icmp eq i32 %done.now, %threads
  br i1 %all.now, label %finish, label %doze
doze:
  call void @sleep(ptr %done.p, i32 %done.now)
  br label %rest
finish:
  store atomic i32 0, ptr %busy.p seq_cst, align 4
  ret void
}

define void @run_table(ptr %pool, ptr %table, i64 %count) nounwind {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %entry.p = getelementptr [4 x i64], ptr %table, i64 %i
  %kernel.p = getelementptr i64, ptr %entry.p, i64 1
  %args.p = getelementptr i64, ptr %entry.p, i64 2
  %threads.p = getelementptr i64, ptr %entry.p, i64 3
  %thunk = load ptr, ptr %entry.p
  %kernel = load ptr, ptr %kernel.p
  %args = load ptr, ptr %args.p
  %which = load i64, ptr %threads.p
  call void @launch(ptr %pool, ptr %thunk, ptr %kernel, ptr %args, i64 %which)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

define void @replay(ptr %pool, ptr %call) nounwind {
entry:
  %count.p = getelementptr i64, ptr %call, i64 1
  %args.p = getelementptr i64, ptr %call, i64 2
  %patches.p = getelementptr i64, ptr %call, i64 3
  %patch.count.p = getelementptr i64, ptr %call, i64 4
  %values.p = getelementptr i64, ptr %call, i64 5
  %table = load ptr, ptr %call
  %count = load i64, ptr %count.p
  %args = load ptr, ptr %args.p
  %patches = load ptr, ptr %patches.p
  %patch.count = load i64, ptr %patch.count.p
  %values = load ptr, ptr %values.p
  %any = icmp ne i64 %patch.count, 0
  br i1 %any, label %loop, label %run
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %patch.p = getelementptr [3 x i64], ptr %patches, i64 %i
  %from.p = getelementptr i64, ptr %patch.p, i64 1
  %addend.p = getelementptr i64, ptr %patch.p, i64 2
  %to = load i64, ptr %patch.p
  %from = load i64, ptr %from.p
  %addend = load i64, ptr %addend.p
  %value.p = getelementptr i64, ptr %values, i64 %from
  %value = load i64, ptr %value.p
  %sum = add i64 %value, %addend
  %arg.p = getelementptr i64, ptr %args, i64 %to
  store i64 %sum, ptr %arg.p
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %patch.count
  br i1 %more, label %loop, label %run
run:
  call void @run_table(ptr %pool, ptr %table, i64 %count)
  ret void
}

; Steps of a loop: values are addresses that move from slot to slot; where there is no slot, that of other memory.
; Where there is a flag, a byte, no step follows one that clears it. Returns the number of the step that would be next.
define i64 @repeat(ptr %pool, ptr %call, ptr %moves, i64 %count, i64 %start, i64 %stop, ptr %flag) nounwind {
entry:
  %values.p = getelementptr i64, ptr %call, i64 5
  %values = load ptr, ptr %values.p
  %any = icmp slt i64 %start, %stop
  br i1 %any, label %step, label %end
step:
  %t = phi i64 [ %start, %entry ], [ %t.next, %ask ]
  br label %look
look:
  %i = phi i64 [ 0, %step ], [ %i.next, %move ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %move, label %run
move:
  %move.p = getelementptr [7 x i64], ptr %moves, i64 %i
  %stride.p = getelementptr i64, ptr %move.p, i64 1
  %first.p = getelementptr i64, ptr %move.p, i64 2
  %by.p = getelementptr i64, ptr %move.p, i64 3
  %slots.p = getelementptr i64, ptr %move.p, i64 4
  %mask.p = getelementptr i64, ptr %move.p, i64 5
  %outside.p = getelementptr i64, ptr %move.p, i64 6
  %base = load i64, ptr %move.p
  %stride = load i64, ptr %stride.p
  %first = load i64, ptr %first.p
  %by = load i64, ptr %by.p
  %mask = load i64, ptr %mask.p
  %slots = load i64, ptr %slots.p
  %outside = load i64, ptr %outside.p
  %gone = mul i64 %by, %t
  %slot = add i64 %first, %gone
  %none = icmp uge i64 %slot, %slots
  %place = and i64 %slot, %mask
  %bytes = mul i64 %place, %stride
  %there = add i64 %base, %bytes
  %address = select i1 %none, i64 %outside, i64 %there
  %value.p = getelementptr i64, ptr %values, i64 %i
  store i64 %address, ptr %value.p
  %i.next = add i64 %i, 1
  br label %look
run:
  call void @replay(ptr %pool, ptr %call)
  %t.next = add i64 %t, 1
  %flagged = icmp ne ptr %flag, null
  br i1 %flagged, label %read, label %ask
read:
  %byte = load i8, ptr %flag
  %set = icmp ne i8 %byte, 0
  br label %ask
ask:
  %wanted = phi i1 [ true, %run ], [ %set, %read ]
  %left = icmp slt i64 %t.next, %stop
  %again = and i1 %wanted, %left
  br i1 %again, label %step, label %end
end:
  %done = phi i64 [ %start, %entry ], [ %t.next, %ask ]
  ret i64 %done
}

; A loop as a launch: its buffers are the arguments, its steps those of ``repeat``. Each thread has a loop of its own.
define void @loop(ptr %loops, ptr %args, i32 %core) nounwind {
entry:
  %number = zext i32 %core to i64
  %what = getelementptr [7 x i64], ptr %loops, i64 %number
  %call.p = getelementptr i64, ptr %what, i64 1
  %moves.p = getelementptr i64, ptr %what, i64 2
  %count.p = getelementptr i64, ptr %what, i64 3
  %homes.p = getelementptr i64, ptr %what, i64 4
  %start.p = getelementptr i64, ptr %what, i64 5
  %stop.p = getelementptr i64, ptr %what, i64 6
  %pool.p = load ptr, ptr %what
  %pool = load ptr, ptr %pool.p
  %call = load ptr, ptr %call.p
  %moves = load ptr, ptr %moves.p
  %count = load i64, ptr %count.p
  %start = load i64, ptr %start.p
  %stop = load i64, ptr %stop.p
  %homes = load ptr, ptr %homes.p
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %put, label %run
put:
  %home.p = getelementptr [3 x i64], ptr %homes, i64 %i
  %offset.p = getelementptr i64, ptr %home.p, i64 1
  %other.p = getelementptr i64, ptr %home.p, i64 2
  %argument = load i64, ptr %home.p
  %offset = load i64, ptr %offset.p
  %other = load i64, ptr %other.p
  %arg.p = getelementptr i64, ptr %args, i64 %argument
  %arg = load i64, ptr %arg.p
  %address = add i64 %arg, %offset
  %move.p = getelementptr [7 x i64], ptr %moves, i64 %i
  store i64 %address, ptr %move.p
  %never = icmp eq i64 %other, -1
  br i1 %never, label %next, label %beside
beside:
  %beside.p = getelementptr i64, ptr %args, i64 %other
  %outside = load i64, ptr %beside.p
  %outside.p = getelementptr i64, ptr %move.p, i64 6
  store i64 %outside, ptr %outside.p
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %look
run:
  call i64 @repeat(ptr %pool, ptr %call, ptr %moves, i64 %count, i64 %start, i64 %stop, ptr null)
  ret void
}

define void @stop(ptr %pool) nounwind {
  %epoch.p = getelementptr i8, ptr %pool, i64 4
  %stop.p = getelementptr i8, ptr %pool, i64 196
  store atomic i32 1, ptr %stop.p seq_cst, align 4
  %old = load atomic i64, ptr %pool seq_cst, align 8
  %high = and i64 %old, -4294967296
  %next = add i64 %high, 4294967296
  store atomic i64 %next, ptr %pool seq_cst, align 8
  call void @wake(ptr %epoch.p, i32 2147483647)
  ret void
}
"""
