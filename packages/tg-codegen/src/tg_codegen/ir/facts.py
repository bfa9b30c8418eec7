"""Facts about a linear kernel that every renderer needs: its arguments, its uses, its address arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from tg_dtype import DType, dtypes
from tg_lazy import ALU, ON_INTEGERS, Ops

from .bounds import Bounds
from .spec import ACCESSES, COORDINATES, OPENS, STREAM
from .uop import UOp, UOps

LEAST_STREAMED = 16
"""Bytes of a vector that is stored past the caches, at the least: x86 has such a store for a vector of 16 bytes
(MOVNTPS), AArch64 for a pair of 8 (STNP)."""
_CONTROL = frozenset({*OPENS, UOps.AFTER})  # operands bound loops, decide, or are pointers


@dataclass(slots=True)
class KernelFacts:
    """What can be said of a linear kernel before any text is written.

    Attributes:
      params: PARAM nodes in slot order.
      variables: VAR nodes sorted by the variable's name.
      core: the SPECIAL node ``core_id``, if the kernel uses it.
      specials: the other SPECIAL nodes by name.
      uses: how often each node stands as an operand.
      address: integer nodes made from coordinates alone that serve only to address, to gate or to bound a loop, and
        are not seen to overflow. The lowering chooses a dtype that holds its own; a program's positions that are a
        gather's index wrap around where they leave theirs.
      divisors: for each integer of one lane, a number that divides the value (0 for the constant 0): what alignment
        follows from.
      stored: slots that are written.
      lanes: the widest vector in the kernel, 1 if it has none.
      bounds: of integer nodes.
    """

    params: tuple[UOp, ...] = ()
    variables: tuple[UOp, ...] = ()
    core: UOp | None = None
    specials: dict[str, UOp] = field(default_factory=dict)
    uses: dict[UOp, int] = field(default_factory=dict)
    address: frozenset[UOp] = frozenset()
    divisors: dict[UOp, int] = field(default_factory=dict)
    stored: frozenset[int] = frozenset()
    lanes: int = 1
    bounds: Bounds = field(default_factory=Bounds)

    def divides_safely(self, divisor: UOp) -> bool:
        """Whether every lane of an integer is seen to be neither 0 nor -1, so that dividing by it needs no guard."""
        low, high = self.bounds(divisor)
        return low > 0 or high < -1

    def streamed(self, store: UOp) -> bool:
        """Whether a STORE goes past the caches: one of vectors that are aligned to their size where the buffer is."""
        value = store.src[2].dtype
        by = self.divisors[store.src[1]] * value.scalar().itemsize
        wide = value.itemsize >= LEAST_STREAMED and not value.itemsize & (value.itemsize - 1)
        return store.arg == STREAM and wide and by % value.itemsize == 0 and pointer_base(store.src[0]).op is UOps.PARAM

    def work_group(self) -> tuple[int, int, int] | None:
        """Work-items along x, y, z, or None if the kernel asks for no ``lidx``."""
        sizes = [self.specials[f"lidx{axis}"].arg[1] if f"lidx{axis}" in self.specials else 1 for axis in range(3)]
        return (sizes[0], sizes[1], sizes[2]) if any(name.startswith("lidx") for name in self.specials) else None


def kernel_facts(uops: Sequence[UOp]) -> KernelFacts:
    """Reads the facts off a linear kernel.

    Raises:
      ValueError: if two PARAM nodes share a slot, or two VAR nodes a name.
    """
    facts = KernelFacts()
    params: dict[int, UOp] = {}
    variables: dict[str, UOp] = {}
    stored = set()
    uses, divisors, lanes = facts.uses, facts.divisors, 1
    for u in uops:
        for operand in u.src:
            uses[operand] = uses.get(operand, 0) + 1
        dtype = u.dtype
        if dtype.count > lanes:
            lanes = dtype.count
        elif dtype.count == 1 and dtypes.is_int(dtype):
            divisors[u] = _divisor(u, divisors)
        if u.op in ALU:
            continue
        if u.op is UOps.PARAM:
            if params.setdefault(u.arg, u) is not u:
                raise ValueError(f"PARAM: slot {u.arg} is both {params[u.arg].dtype.name} and {u.dtype.name}")
        elif u.op is UOps.VAR:
            if variables.setdefault(u.arg.name, u) is not u:
                raise ValueError(f"VAR: {u.arg.name} is defined twice")
        elif u.op is UOps.SPECIAL:
            if u.arg[0] == "core_id":
                facts.core = u
            else:
                facts.specials[u.arg[0]] = u
        elif u.op is UOps.STORE:
            base = pointer_base(u.src[0])
            if base.op is UOps.PARAM:
                stored.add(base.arg)
    facts.lanes = lanes
    facts.params = tuple(params[slot] for slot in sorted(params))
    facts.variables = tuple(variables[name] for name in sorted(variables))
    facts.stored = frozenset(stored)
    facts.address = frozenset(u for u in _address(uops) if not facts.bounds.wraps(u))
    return facts


def _address(uops: Sequence[UOp]) -> frozenset[UOp]:
    made_of_coordinates: set[UOp] = set()
    for u in uops:
        if u.dtype.count != 1 or dtypes.is_float(u.dtype):
            continue
        if u.op in COORDINATES or (
            u.op in ON_INTEGERS and made_of_coordinates.issuperset([s for s in u.src if s.op is not UOps.CONST])
        ):
            made_of_coordinates.add(u)
    holds_data: set[UOp] = set()
    for u in reversed(uops):
        if u.op in ACCESSES:
            holds_data.update(u.src[3:4] if u.op is UOps.LOAD else u.src[2:3])
        elif u.op not in _CONTROL and (u not in made_of_coordinates or u in holds_data):
            holds_data.update(u.src)
    return frozenset(u for u in made_of_coordinates - holds_data if u.op in ALU)


def pointer_base(u: UOp) -> UOp:
    """The PARAM or SCRATCH behind a pointer."""
    while u.op is UOps.AFTER:
        u = u.src[0]
    return u


def accessed(access: UOp) -> tuple[UOp | None, range]:
    """The elements that a LOAD reads or a STORE writes, counted from an index (None: from the beginning)."""
    index, count = access.src[1], (access.src[2] if access.op is UOps.STORE else access).dtype.count
    base: UOp | None = index
    first = 0
    if index.is_const:
        base, first = None, int(index.arg)
    elif index.op is Ops.ADD and index.src[1].is_const and index.dtype.count == 1:
        base, first = index.src[0], int(index.src[1].arg)
    return base, range(first, first + count)


def element(pointer: UOp) -> DType:
    """The scalar dtype that is read through a pointer."""
    return pointer.dtype.element


def _divisor(u: UOp, known: dict[UOp, int]) -> int:
    """A number that divides the value of an integer node, as large as is easily seen; 0 for the constant 0."""
    if u.is_const:
        return abs(int(u.arg))
    of = [abs(int(operand.arg)) if operand.is_const else known.get(operand, 1) for operand in u.src]
    if u.op is UOps.RANGE:
        return gcd(of[0], of[2] if len(of) > 2 else 1)
    if u.op in (Ops.ADD, Ops.SUB):
        return gcd(of[0], of[1])
    if u.op is Ops.MUL:
        return of[0] * of[1]
    if u.op is Ops.MULACC:
        return gcd(of[0] * of[1], of[2])
    if u.op is Ops.SHL and u.src[1].is_const:
        return of[0] << int(u.src[1].arg)
    return 1
