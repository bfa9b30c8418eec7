"""What handlers call: the dispatch loop, jumps, checks of addresses, transfers. LLVM IR for one number of lanes."""

from __future__ import annotations

from string import Template

from . import state
from .ir import Builder, Type, Value
from .state import Access, FaultKind, Layout, Space, Status
from .transfers import Shape, atomic_name


def support(layout: Layout, apertures: tuple[int, int]) -> str:
    """The text of what handlers call, but for atomic operations.

    Args:
      layout: where registers are.
      apertures: the upper halves of generic addresses in shared memory and in scratch.
    """
    names = _names(layout)
    parts = [Template(_SUPPORT).substitute(names)]
    parts += [Template(_narrow(nbytes)).substitute(names) for nbytes in (1, 2)]
    for space in (Space.SHARED, Space.SCRATCH):
        own = {
            "NAME": space.name.lower(), "BASE": names[space.name], "LIMIT": names[f"{space.name}_BYTES"],
            "KIND_OF": names[f"KIND_{space.name}"], "STRIDE": "0" if space is Space.SHARED else "%limit",
        }  # fmt: skip
        parts.append(Template(_OFFSETS).substitute(names | own))
    own = {"SHARED_APERTURE": str(apertures[0]), "PRIVATE_APERTURE": str(apertures[1])}
    parts.append(Template(_GENERIC).substitute(names | own))
    return "\n".join(parts)


def atomic(layout: Layout, shape: Shape) -> str:
    """The text of an atomic operation."""
    return _atomic(atomic_name(shape), shape, _names(layout))


def _names(layout: Layout) -> dict[str, str]:
    names = {
        key: str(getattr(state, key))
        for key in (
            "EXEC", "STATUS", "KIND", "RESUME", "STOPPED", "EXECUTED", "LANE", "ADDRESS", "ACCESS", "NBYTES", "RANGES",
            "RANGE_COUNT", "RANGE", "SHARED", "SHARED_BYTES", "SCRATCH", "SCRATCH_BYTES", "RECORDS", "CODE_BASE",
            "CODE_SLOTS", "CODE_SHIFT", "PC", "LANE_ADDRESSES", "HOSTS", "PENDING", "PENDING_ROWS", "RECORD_BYTES",
        )
    }  # fmt: skip
    names |= {f"STATUS_{status.name}": str(int(status)) for status in Status}
    names |= {f"KIND_{kind.name}": str(int(kind)) for kind in FaultKind}
    return names | {
        "N": str(layout.lanes), "ROWS": str(layout.rows), "ROW_BYTES": str(layout.row_bytes),
        "READ": str(int(Access.READ)),
        "LANE_WIDE": "add i64 %lane.n, 0" if layout.lanes == 64 else "zext i32 %lane.n to i64",
    }  # fmt: skip


def _modified(shape: Shape) -> str:
    """Until nobody else was faster: what is there, what comes of it, an exchange."""
    assert shape.modify is not None
    kind, builder = Type("i", 8 * shape.nbytes), Builder()
    second = "%second" if shape.operands == 2 else "%data"
    new = shape.modify(builder, *(Value(builder, kind, name) for name in ("%old", "%data", second)))
    exchange = f"cmpxchg ptr %host, {kind} %old, {kind} {new.text} seq_cst seq_cst, align {shape.nbytes}"
    return "\n".join([
        f"  %first = load atomic {kind}, ptr %host seq_cst, align {shape.nbytes}", "  br label %try", "try:",
        f"  %old = phi {kind} [ %first, %lane.do ], [ %seen, %try ]", *builder.lines, f"  %pair = {exchange}",
        f"  %seen = extractvalue {{ {kind}, i1 }} %pair, 0", f"  %won = extractvalue {{ {kind}, i1 }} %pair, 1",
        "  br i1 %won, label %exchanged, label %try", "exchanged:",
    ])  # fmt: skip


def _atomic(name: str, shape: Shape, names: dict[str, str]) -> str:
    bits = 8 * shape.nbytes
    rows = ", ptr %second.row" if shape.op == "cmpxchg" or shape.operands == 2 else ""
    second = _row_load("second", bits) + "\n" if rows else ""
    if shape.modify is not None:
        middle = second + _modified(shape)
    elif shape.op == "cmpxchg":
        exchange = f"cmpxchg ptr %host, i{bits} %second, i{bits} %data seq_cst seq_cst, align {bits // 8}"
        middle = (f"{second}  %pair = {exchange}\n"
                  f"  %old = extractvalue {{ i{bits}, i1 }} %pair, 0")  # fmt: skip
    elif shape.op.startswith("f"):
        kind = "float" if bits == 32 else "double"
        middle = (f"  %number = bitcast i{bits} %data to {kind}\n"
                  f"  %before = atomicrmw {shape.op} ptr %host, {kind} %number seq_cst, align {bits // 8}\n"
                  f"  %old = bitcast {kind} %before to i{bits}")  # fmt: skip
    else:
        middle = f"  %old = atomicrmw {shape.op} ptr %host, i{bits} %data seq_cst, align {bits // 8}"
    store = "  store i32 %old, ptr %to, align 4"
    if bits == 64:
        store = ("  %old.low = trunc i64 %old to i32\n  store i32 %old.low, ptr %to, align 4\n"
                 "  %old.shifted = lshr i64 %old, 32\n  %old.high = trunc i64 %old.shifted to i32\n"
                 f"  %to.high = getelementptr i8, ptr %to, i64 {names['ROW_BYTES']}\n"
                 "  store i32 %old.high, ptr %to.high, align 4")  # fmt: skip
    body = f"{_row_load('data', bits)}\n{middle}"
    if shape.returns:
        body += f"\n  %to = getelementptr i32, ptr %row, i64 %lane\n{store}"
    body = body.replace("$ROW_BYTES", names["ROW_BYTES"])
    head = f"define internal void @{name}(ptr %w{', ptr %row' if shape.returns else ''}, ptr %data.row{rows})"
    return Template(_LANES).substitute(names | {"HEAD": head, "BODY": body})


def _row_load(name: str, bits: int) -> str:
    """A lane of 32 or 64 bits of rows."""
    text = [f"  %{name}.at = getelementptr i32, ptr %{name}.row, i64 %lane"]
    here = f"%{name}.at"
    if bits == 32:
        return "\n".join([*text, f"  %{name} = load i32, ptr {here}, align 4"])
    return "\n".join(
        [*text, f"  %{name}.l = load i32, ptr {here}, align 4",
         f"  %{name}.p = getelementptr i8, ptr {here}, i64 $ROW_BYTES",
         f"  %{name}.h = load i32, ptr %{name}.p, align 4",
         f"  %{name}.lz = zext i32 %{name}.l to i64", f"  %{name}.hz = zext i32 %{name}.h to i64",
         f"  %{name}.hs = shl i64 %{name}.hz, 32", f"  %{name} = or i64 %{name}.lz, %{name}.hs"]
    )  # fmt: skip


# a loop over the active lanes, the lowest first, with %lane and %host
_LANES = """
$HEAD nounwind {
entry:
  %mask = load i64, ptr %w
  %hosts = getelementptr i8, ptr %w, i64 $HOSTS
  br label %look
look:
  %left = phi i64 [ %mask, %entry ], [ %rest, %lane.done ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %lane.do
lane.do:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %less = sub i64 %left, 1
  %rest = and i64 %left, %less
  %host.p = getelementptr i64, ptr %hosts, i64 %lane
  %host = load ptr, ptr %host.p
$BODY
  br label %lane.done
lane.done:
  br label %look
done:
  ret void
}
"""

def _narrow(nbytes: int) -> str:
    """Loads and stores of 8 or 16 bits: of whole registers, and of the halves of them."""
    kind, to = f"i{8 * nbytes}", "  %to = getelementptr i32, ptr %row, i64 %lane"
    read, parts = f"  %narrow = load {kind}, ptr %host, align 1", dict[str, str]()
    for extend, suffix in (("zext", ""), ("sext", "_signed")):
        wide = f"{read}\n  %wide = {extend} {kind} %narrow to i32\n{to}"
        parts[f"load{suffix}"] = f"{wide}\n  store i32 %wide, ptr %to, align 4"
        for half, place in (("low", 0), ("high", 2)):
            parts[f"load_{half}{suffix}"] = (
                f"{wide}\n  %short = trunc i32 %wide to i16\n  %half = getelementptr i8, ptr %to, i64 {place}\n"
                "  store i16 %short, ptr %half, align 2"
            )
    for name, place in (("store", 0), ("store_high", 2)):
        parts[name] = (
            f"  %from = getelementptr i32, ptr %row, i64 %lane\n  %part = getelementptr i8, ptr %from, i64 {place}\n"
            f"  %narrow = load {kind}, ptr %part, align 1\n  store {kind} %narrow, ptr %host, align 1"
        )
    heads = {name: f"define internal void @{name}_{nbytes}(ptr %w, ptr %row)" for name in parts}
    return "".join(_LANES.replace("$HEAD", heads[name]).replace("$BODY", body) for name, body in parts.items())


# shared memory and scratch: offsets from a base, below a limit; scratch has a part for each lane
_OFFSETS = """
define internal i32 @resolve_$NAME(ptr %w, ptr %r, i64 %nbytes, i32 %access, i64 %align) nounwind {
entry:
  %base.p = getelementptr i8, ptr %w, i64 $BASE
  %limit.p = getelementptr i8, ptr %w, i64 $LIMIT
  %base = load i64, ptr %base.p
  %limit = load i64, ptr %limit.p
  %exec = load i$N, ptr %w
  %active = bitcast i$N %exec to <$N x i1>
  %addresses.p = getelementptr i8, ptr %w, i64 $LANE_ADDRESSES
  %a = load <$N x i64>, ptr %addresses.p, align 8
  %more = add i64 %limit, 1
  %last = call i64 @llvm.usub.sat.i64(i64 %more, i64 %nbytes)
  %last.1 = insertelement <$N x i64> poison, i64 %last, i32 0
  %last.n = shufflevector <$N x i64> %last.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %beyond = icmp uge <$N x i64> %a, %last.n
  %align.1 = insertelement <$N x i64> poison, i64 %align, i32 0
  %align.n = shufflevector <$N x i64> %align.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %low = and <$N x i64> %a, %align.n
  %odd = icmp ne <$N x i64> %low, zeroinitializer
  %either = or <$N x i1> %beyond, %odd
  %bad = and <$N x i1> %either, %active
  %bad.bits = bitcast <$N x i1> %bad to i$N
  %wrong = icmp ne i$N %bad.bits, 0
  br i1 %wrong, label %refuse, label %fine
refuse:
  %lane.n = call i$N @llvm.cttz.i$N(i$N %bad.bits, i1 true)
  %lane = $LANE_WIDE
  %address.p = getelementptr i64, ptr %addresses.p, i64 %lane
  %address = load i64, ptr %address.p
  %bits = and i64 %address, %align
  %is.odd = icmp ne i64 %bits, 0
  %kind = select i1 %is.odd, i32 $KIND_MISALIGNED, i32 $KIND_OF
  call void @fault_at(ptr %w, ptr %r, i32 %kind, i64 %lane, i64 %address, i32 %access, i64 %nbytes)
  ret i32 0
fine:
  %iota = call <$N x i64> @llvm.stepvector.v${N}i64()
  %stride.1 = insertelement <$N x i64> poison, i64 $STRIDE, i32 0
  %stride.n = shufflevector <$N x i64> %stride.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %parts = mul <$N x i64> %iota, %stride.n
  %base.1 = insertelement <$N x i64> poison, i64 %base, i32 0
  %base.n = shufflevector <$N x i64> %base.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %inside = add <$N x i64> %a, %parts
  %hosts = add <$N x i64> %inside, %base.n
  %hosts.p = getelementptr i8, ptr %w, i64 $HOSTS
  store <$N x i64> %hosts, ptr %hosts.p, align 8
  ret i32 1
}
"""

# generic addresses: each lane's is in one of the memories
_GENERIC = """
define internal i32 @resolve_generic(ptr %w, ptr %r, i64 %nbytes, i32 %access, i64 %align) nounwind {
entry:
  %mask = load i64, ptr %w
  %addresses.p = getelementptr i8, ptr %w, i64 $LANE_ADDRESSES
  %hosts.p = getelementptr i8, ptr %w, i64 $HOSTS
  br label %look
look:
  %left = phi i64 [ %mask, %entry ], [ %others, %keep ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %do
do:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %less = sub i64 %left, 1
  %others = and i64 %left, %less
  %address.p = getelementptr i64, ptr %addresses.p, i64 %lane
  %address = load i64, ptr %address.p
  %bits = and i64 %address, %align
  %odd = icmp ne i64 %bits, 0
  br i1 %odd, label %refuse, label %even
even:
  %upper = lshr i64 %address, 32
  %offset = and i64 %address, 4294967295
  %last = add i64 %offset, %nbytes
  switch i64 %upper, label %global [ i64 $SHARED_APERTURE, label %shared
                                     i64 $PRIVATE_APERTURE, label %private ]
shared:
  %shared.p = getelementptr i8, ptr %w, i64 $SHARED
  %shared.bytes.p = getelementptr i8, ptr %w, i64 $SHARED_BYTES
  %shared.base = load i64, ptr %shared.p
  %shared.bytes = load i64, ptr %shared.bytes.p
  %shared.host = add i64 %shared.base, %offset
  %shared.in = icmp ule i64 %last, %shared.bytes
  br i1 %shared.in, label %keep, label %refuse
private:
  %private.p = getelementptr i8, ptr %w, i64 $SCRATCH
  %private.bytes.p = getelementptr i8, ptr %w, i64 $SCRATCH_BYTES
  %private.base = load i64, ptr %private.p
  %private.bytes = load i64, ptr %private.bytes.p
  %part = mul i64 %lane, %private.bytes
  %private.lane = add i64 %private.base, %part
  %private.host = add i64 %private.lane, %offset
  %private.in = icmp ule i64 %last, %private.bytes
  br i1 %private.in, label %keep, label %refuse
global:
  %found = call { i64, i32 } @find(ptr %w, i64 %address, i64 %nbytes, i32 %access)
  %plus = extractvalue { i64, i32 } %found, 0
  %wrong = extractvalue { i64, i32 } %found, 1
  %global.host = add i64 %address, %plus
  %global.in = icmp eq i32 %wrong, 0
  br i1 %global.in, label %keep, label %refuse
keep:
  %host = phi i64 [ %shared.host, %shared ], [ %private.host, %private ], [ %global.host, %global ]
  %host.p = getelementptr i64, ptr %hosts.p, i64 %lane
  store i64 %host, ptr %host.p
  br label %look
refuse:
  %kind = phi i32 [ $KIND_MISALIGNED, %do ], [ $KIND_SHARED, %shared ], [ $KIND_SCRATCH, %private ],
                  [ %wrong, %global ]
  call void @fault_at(ptr %w, ptr %r, i32 %kind, i64 %lane, i64 %address, i32 %access, i64 %nbytes)
  ret i32 0
done:
  ret i32 1
}
"""

_SUPPORT = """
declare i64 @llvm.cttz.i64(i64, i1)
declare i32 @llvm.cttz.i32(i32, i1)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare i64 @llvm.vector.reduce.umin.v${N}i64(<$N x i64>)
declare i64 @llvm.vector.reduce.umax.v${N}i64(<$N x i64>)
declare <$N x i64> @llvm.stepvector.v${N}i64()
declare <$N x i32> @llvm.masked.gather.v${N}i32.v${N}p0(<$N x ptr>, i32, <$N x i1>, <$N x i32>)

define i32 @run(ptr %w, i64 %budget) nounwind {
entry:
  %resume.p = getelementptr i8, ptr %w, i64 $RESUME
  %status.p = getelementptr i8, ptr %w, i64 $STATUS
  %stopped.p = getelementptr i8, ptr %w, i64 $STOPPED
  %executed.p = getelementptr i8, ptr %w, i64 $EXECUTED
  %first = load ptr, ptr %resume.p
  %executed = load i64, ptr %executed.p
  br label %look
look:
  %r = phi ptr [ %first, %entry ], [ %next, %do ]
  %done = phi i64 [ 0, %entry ], [ %done.1, %do ]
  %spent = icmp eq i64 %done, %budget
  br i1 %spent, label %pause, label %do
do:
  %handler = load ptr, ptr %r
  %next = call ptr %handler(ptr %w, ptr %r)
  %done.1 = add i64 %done, 1
  %stops = icmp eq ptr %next, null
  br i1 %stops, label %stop, label %look
pause:
  store i32 $STATUS_BUDGET, ptr %status.p
  store ptr %r, ptr %resume.p
  br label %leave
stop:
  br label %leave
leave:
  %count = phi i64 [ %done, %pause ], [ %done.1, %stop ]
  store ptr %r, ptr %stopped.p
  %all = add i64 %executed, %count
  store i64 %all, ptr %executed.p
  %status = load i32, ptr %status.p
  ret i32 %status
}

define internal void @fault(ptr %w, ptr %r, i32 %kind) nounwind {
  %status.p = getelementptr i8, ptr %w, i64 $STATUS
  store i32 $STATUS_FAULT, ptr %status.p
  %kind.p = getelementptr i8, ptr %w, i64 $KIND
  store i32 %kind, ptr %kind.p
  %resume.p = getelementptr i8, ptr %w, i64 $RESUME
  store ptr %r, ptr %resume.p
  ret void
}

define internal void @fault_at(ptr %w, ptr %r, i32 %kind, i64 %lane, i64 %address, i32 %access, i64 %nbytes) nounwind {
  call void @fault(ptr %w, ptr %r, i32 %kind)
  %lane.p = getelementptr i8, ptr %w, i64 $LANE
  store i64 %lane, ptr %lane.p
  %address.p = getelementptr i8, ptr %w, i64 $ADDRESS
  store i64 %address, ptr %address.p
  %access.p = getelementptr i8, ptr %w, i64 $ACCESS
  store i32 %access, ptr %access.p
  %few = trunc i64 %nbytes to i32
  %nbytes.p = getelementptr i8, ptr %w, i64 $NBYTES
  store i32 %few, ptr %nbytes.p
  ret void
}

; Whether a load into one of the registers was not waited for.
define internal i1 @pending(ptr %w, i32 %offset, i32 %count) nounwind {
entry:
  %literal = icmp slt i32 %offset, 0
  br i1 %literal, label %no, label %see
see:
  %vector = icmp sge i32 %offset, $ROWS
  %from = sub i32 %offset, $ROWS
  %row = udiv i32 %from, $ROW_BYTES
  %place = add i32 %row, $PENDING_ROWS
  %word = lshr i32 %offset, 2
  %index = select i1 %vector, i32 %place, i32 %word
  br label %look
look:
  %i = phi i32 [ 0, %see ], [ %i.1, %next ]
  %at = add i32 %index, %i
  %wide = zext i32 %at to i64
  %in = add i64 %wide, $PENDING
  %p = getelementptr i8, ptr %w, i64 %in
  %byte = load i8, ptr %p
  %set = icmp ne i8 %byte, 0
  br i1 %set, label %yes, label %next
next:
  %i.1 = add i32 %i, 1
  %more = icmp ult i32 %i.1, %count
  br i1 %more, label %look, label %no
yes:
  %address.p = getelementptr i8, ptr %w, i64 $ADDRESS
  %step = select i1 %vector, i32 $ROW_BYTES, i32 4
  %further = mul i32 %i, %step
  %exact = add i32 %offset, %further
  %wide.offset = zext i32 %exact to i64
  store i64 %wide.offset, ptr %address.p
  ret i1 true
no:
  ret i1 false
}

; The record of an instruction, or null: then its address waits for the host to find its code.
define internal ptr @jump(ptr %w, i64 %pc) nounwind {
  %records.p = getelementptr i8, ptr %w, i64 $RECORDS
  %base.p = getelementptr i8, ptr %w, i64 $CODE_BASE
  %slots.p = getelementptr i8, ptr %w, i64 $CODE_SLOTS
  %shift.p = getelementptr i8, ptr %w, i64 $CODE_SHIFT
  %records = load ptr, ptr %records.p
  %base = load i64, ptr %base.p
  %slots = load i64, ptr %slots.p
  %shift = load i64, ptr %shift.p
  %offset = sub i64 %pc, %base
  %slot = lshr i64 %offset, %shift
  %back = shl i64 %slot, %shift
  %whole = icmp eq i64 %back, %offset
  %inside = icmp ult i64 %slot, %slots
  %fine = and i1 %whole, %inside
  br i1 %fine, label %near, label %far
near:
  %bytes = mul i64 %slot, $RECORD_BYTES
  %r = getelementptr i8, ptr %records, i64 %bytes
  ret ptr %r
far:
  call void @fetch(ptr %w, i64 %pc, i32 0)
  ret ptr null
}

define internal void @fetch(ptr %w, i64 %pc, i32 %undone) nounwind {
  %undone.p = getelementptr i8, ptr %w, i64 $KIND
  store i32 %undone, ptr %undone.p
  %pc.p = getelementptr i8, ptr %w, i64 $PC
  store i64 %pc, ptr %pc.p
  %status.p = getelementptr i8, ptr %w, i64 $STATUS
  store i32 $STATUS_FETCH, ptr %status.p
  %resume.p = getelementptr i8, ptr %w, i64 $RESUME
  store ptr null, ptr %resume.p
  ret void
}

; The handler of what is not decoded yet.
define ptr @undecoded(ptr %w, ptr %r) nounwind {
  %records.p = getelementptr i8, ptr %w, i64 $RECORDS
  %base.p = getelementptr i8, ptr %w, i64 $CODE_BASE
  %shift.p = getelementptr i8, ptr %w, i64 $CODE_SHIFT
  %records = load i64, ptr %records.p
  %base = load i64, ptr %base.p
  %shift = load i64, ptr %shift.p
  %here = ptrtoint ptr %r to i64
  %bytes = sub i64 %here, %records
  %slot = udiv i64 %bytes, $RECORD_BYTES
  %offset = shl i64 %slot, %shift
  %pc = add i64 %base, %offset
  call void @fetch(ptr %w, i64 %pc, i32 1)
  ret ptr null
}

; What is added to an address in global memory for the host's, or the kind of a fault; remembers the mapping.
define internal { i64, i32 } @find(ptr %w, i64 %address, i64 %nbytes, i32 %access) nounwind {
entry:
  %table.p = getelementptr i8, ptr %w, i64 $RANGES
  %count.p = getelementptr i8, ptr %w, i64 $RANGE_COUNT
  %table = load ptr, ptr %table.p
  %count = load i64, ptr %count.p
  br label %look
look:
  %low = phi i64 [ 0, %entry ], [ %low.1, %see ]
  %high = phi i64 [ %count, %entry ], [ %high.1, %see ]
  %empty = icmp uge i64 %low, %high
  br i1 %empty, label %found, label %see
see:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %row = getelementptr [4 x i64], ptr %table, i64 %middle
  %start = load i64, ptr %row
  %after = icmp ule i64 %start, %address
  %up = add i64 %middle, 1
  %low.1 = select i1 %after, i64 %up, i64 %low
  %high.1 = select i1 %after, i64 %high, i64 %middle
  br label %look
found:
  %nothing = icmp eq i64 %low, 0
  br i1 %nothing, label %unmapped, label %check
check:
  %index = sub i64 %low, 1
  %hit = getelementptr [4 x i64], ptr %table, i64 %index
  %whole = load [4 x i64], ptr %hit
  %end = extractvalue [4 x i64] %whole, 1
  %delta = extractvalue [4 x i64] %whole, 2
  %flags = extractvalue [4 x i64] %whole, 3
  %inside = icmp ult i64 %address, %end
  br i1 %inside, label %mapped, label %unmapped
mapped:
  %few = trunc i64 %flags to i32
  %allowed = and i32 %few, %access
  %permitted = icmp eq i32 %allowed, %access
  br i1 %permitted, label %length, label %protected
length:
  %room = sub i64 %end, %address
  %fits = icmp ule i64 %nbytes, %room
  br i1 %fits, label %fine, label %crossing
fine:
  %range.p = getelementptr i8, ptr %w, i64 $RANGE
  store [4 x i64] %whole, ptr %range.p
  %ok = insertvalue { i64, i32 } { i64 0, i32 0 }, i64 %delta, 0
  ret { i64, i32 } %ok
unmapped:
  ret { i64, i32 } { i64 0, i32 $KIND_UNMAPPED }
protected:
  ret { i64, i32 } { i64 0, i32 $KIND_PROTECTED }
crossing:
  ret { i64, i32 } { i64 0, i32 $KIND_CROSSING }
}

define internal i64 @resolve_one(ptr %w, ptr %r, i64 %nbytes, i64 %align) nounwind {
  %address.p = getelementptr i8, ptr %w, i64 $LANE_ADDRESSES
  %address = load i64, ptr %address.p
  %found = call { i64, i32 } @find(ptr %w, i64 %address, i64 %nbytes, i32 $READ)
  %delta = extractvalue { i64, i32 } %found, 0
  %wrong = extractvalue { i64, i32 } %found, 1
  %low = and i64 %address, %align
  %odd = icmp ne i64 %low, 0
  %kind = select i1 %odd, i32 $KIND_MISALIGNED, i32 %wrong
  %fine = icmp eq i32 %kind, 0
  br i1 %fine, label %yes, label %no
yes:
  %host = add i64 %address, %delta
  ret i64 %host
no:
  call void @fault_at(ptr %w, ptr %r, i32 %kind, i64 -1, i64 %address, i32 $READ, i64 %nbytes)
  ret i64 0
}

; Checks the active lanes' addresses in global memory and finds the host's: 0 after a fault, 2 where they are adjacent.
define internal i32 @resolve_global(ptr %w, ptr %r, i64 %nbytes, i32 %access, i64 %align) nounwind {
entry:
  %exec = load i$N, ptr %w
  %active = bitcast i$N %exec to <$N x i1>
  %idle = icmp eq i$N %exec, 0
  br i1 %idle, label %nobody, label %somebody
nobody:
  ret i32 1
somebody:
  %addresses.p = getelementptr i8, ptr %w, i64 $LANE_ADDRESSES
  %hosts.p = getelementptr i8, ptr %w, i64 $HOSTS
  %a = load <$N x i64>, ptr %addresses.p, align 8
  %lows = select <$N x i1> %active, <$N x i64> %a, <$N x i64> splat (i64 -1)
  %highs = select <$N x i1> %active, <$N x i64> %a, <$N x i64> zeroinitializer
  %low = call i64 @llvm.vector.reduce.umin.v${N}i64(<$N x i64> %lows)
  %high = call i64 @llvm.vector.reduce.umax.v${N}i64(<$N x i64> %highs)
  %align.1 = insertelement <$N x i64> poison, i64 %align, i32 0
  %align.n = shufflevector <$N x i64> %align.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %rest = and <$N x i64> %highs, %align.n
  %odd = icmp ne <$N x i64> %rest, zeroinitializer
  %odd.bits = bitcast <$N x i1> %odd to i$N
  %even = icmp eq i$N %odd.bits, 0
  %range.p = getelementptr i8, ptr %w, i64 $RANGE
  %range = load [4 x i64], ptr %range.p
  %start = extractvalue [4 x i64] %range, 0
  %end = extractvalue [4 x i64] %range, 1
  %delta = extractvalue [4 x i64] %range, 2
  %flags = extractvalue [4 x i64] %range, 3
  %few = trunc i64 %flags to i32
  %allowed = and i32 %few, %access
  %permitted = icmp eq i32 %allowed, %access
  %from = icmp uge i64 %low, %start
  %last = sub i64 %end, %nbytes
  %to = icmp ule i64 %high, %last
  %inside = and i1 %from, %to
  %both = and i1 %inside, %permitted
  %fast = and i1 %both, %even
  br i1 %fast, label %near, label %each
near:
  %delta.1 = insertelement <$N x i64> poison, i64 %delta, i32 0
  %delta.n = shufflevector <$N x i64> %delta.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %hosts = add <$N x i64> %a, %delta.n
  store <$N x i64> %hosts, ptr %hosts.p, align 8
  %one = extractelement <$N x i64> %a, i32 0
  %one.1 = insertelement <$N x i64> poison, i64 %one, i32 0
  %one.n = shufflevector <$N x i64> %one.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %size.1 = insertelement <$N x i64> poison, i64 %nbytes, i32 0
  %size.n = shufflevector <$N x i64> %size.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %iota = call <$N x i64> @llvm.stepvector.v${N}i64()
  %steps = mul <$N x i64> %iota, %size.n
  %line = add <$N x i64> %one.n, %steps
  %off = icmp ne <$N x i64> %line, %a
  %off.bits = bitcast <$N x i1> %off to i$N
  %row = icmp eq i$N %off.bits, 0
  %all = icmp eq i$N %exec, -1
  %adjacent = and i1 %row, %all
  %mode = select i1 %adjacent, i32 2, i32 1
  ret i32 %mode
each:
  %mask = load i64, ptr %w
  br label %look
look:
  %left = phi i64 [ %mask, %each ], [ %others, %keep ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %do
do:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %less = sub i64 %left, 1
  %others = and i64 %left, %less
  %address.p = getelementptr i64, ptr %addresses.p, i64 %lane
  %address = load i64, ptr %address.p
  %found = call { i64, i32 } @find(ptr %w, i64 %address, i64 %nbytes, i32 %access)
  %plus = extractvalue { i64, i32 } %found, 0
  %wrong = extractvalue { i64, i32 } %found, 1
  %bits = and i64 %address, %align
  %is.odd = icmp ne i64 %bits, 0
  %kind = select i1 %is.odd, i32 $KIND_MISALIGNED, i32 %wrong
  %fine = icmp eq i32 %kind, 0
  br i1 %fine, label %keep, label %refuse
keep:
  %host = add i64 %address, %plus
  %host.p = getelementptr i64, ptr %hosts.p, i64 %lane
  store i64 %host, ptr %host.p
  br label %look
refuse:
  call void @fault_at(ptr %w, ptr %r, i32 %kind, i64 %lane, i64 %address, i32 %access, i64 %nbytes)
  ret i32 0
done:
  ret i32 1
}

define internal void @load_rows(ptr %w, ptr %row, i64 %rows, i32 %mode) nounwind {
entry:
  %exec = load i$N, ptr %w
  %active = bitcast i$N %exec to <$N x i1>
  %hosts.p = getelementptr i8, ptr %w, i64 $HOSTS
  %adjacent = icmp eq i32 %mode, 2
  %single = icmp eq i64 %rows, 1
  %line = and i1 %adjacent, %single
  br i1 %line, label %whole, label %gather
whole:
  %first = load ptr, ptr %hosts.p
  %all = load <$N x i32>, ptr %first, align 1
  store <$N x i32> %all, ptr %row, align 4
  ret void
gather:
  %hosts = load <$N x i64>, ptr %hosts.p, align 8
  br label %look
look:
  %i = phi i64 [ 0, %gather ], [ %i.1, %look ]
  %skip = shl i64 %i, 2
  %skip.1 = insertelement <$N x i64> poison, i64 %skip, i32 0
  %skip.n = shufflevector <$N x i64> %skip.1, <$N x i64> poison, <$N x i32> zeroinitializer
  %here = add <$N x i64> %hosts, %skip.n
  %p = inttoptr <$N x i64> %here to <$N x ptr>
  %bytes = mul i64 %i, $ROW_BYTES
  %to = getelementptr i8, ptr %row, i64 %bytes
  %old = load <$N x i32>, ptr %to, align 4
  %new = call <$N x i32> @llvm.masked.gather.v${N}i32.v${N}p0(<$N x ptr> %p, i32 1, <$N x i1> %active, <$N x i32> %old)
  store <$N x i32> %new, ptr %to, align 4
  %i.1 = add i64 %i, 1
  %more = icmp ult i64 %i.1, %rows
  br i1 %more, label %look, label %done
done:
  ret void
}

define internal void @store_rows(ptr %w, ptr %row, i64 %rows, i32 %mode) nounwind {
entry:
  %mask = load i64, ptr %w
  %hosts.p = getelementptr i8, ptr %w, i64 $HOSTS
  %adjacent = icmp eq i32 %mode, 2
  %single = icmp eq i64 %rows, 1
  %line = and i1 %adjacent, %single
  br i1 %line, label %whole, label %look
whole:
  %first = load ptr, ptr %hosts.p
  %all = load <$N x i32>, ptr %row, align 4
  store <$N x i32> %all, ptr %first, align 1
  ret void
look:
  %left = phi i64 [ %mask, %entry ], [ %others, %part ]
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %do
do:
  %lane = call i64 @llvm.cttz.i64(i64 %left, i1 true)
  %less = sub i64 %left, 1
  %others = and i64 %left, %less
  %host.p = getelementptr i64, ptr %hosts.p, i64 %lane
  %host = load ptr, ptr %host.p
  %from = getelementptr i32, ptr %row, i64 %lane
  br label %part
part:
  %i = phi i64 [ 0, %do ], [ %i.1, %again ]
  %bytes = mul i64 %i, $ROW_BYTES
  %source = getelementptr i8, ptr %from, i64 %bytes
  %word = load i32, ptr %source, align 4
  %to = getelementptr i32, ptr %host, i64 %i
  store i32 %word, ptr %to, align 1
  %i.1 = add i64 %i, 1
  %more = icmp ult i64 %i.1, %rows
  br i1 %more, label %again, label %look
again:
  br label %part
done:
  ret void
}
"""
