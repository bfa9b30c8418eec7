"""The table of UOps: what each of them takes, holds and is, and the groups of them that follow from it.

One :class:`UOps` member and one frozen :class:`UOpSpec` row each. The verifier checks nodes against their row, the text
form prints and reads an argument as its row says, and groups of UOps (:data:`EFFECTS`, :data:`REGIONS`, …) are computed
from the rows and never typed by hand.

What a row cannot say:

The ASSIGNs of a LOOP are the last effects of its body and happen together: every value that they need is computed
before the first of them. A value that uses an ACC directly belongs to the body of the LOOP that assigns it (or, where
it initialises another ACC, to that ACC's place) and is never moved out of it.

Where a gate is false nothing is read or written. An index counts elements of the pointer's base dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, Flag, auto
from types import MappingProxyType
from typing import NamedTuple

from tg_dtype import fast_members


@fast_members
class UOps(Enum):
    """Structure and memory operations of kernels; :data:`SPEC` has a row for each."""

    # without operands, in the order in which a linear kernel begins with them
    PARAM = auto()
    VAR = auto()
    SPECIAL = auto()
    SCRATCH = auto()
    CONST = auto()
    # loops and conditions
    RANGE = auto()
    LOOP = auto()
    IF = auto()
    ENDRANGE = auto()
    ENDIF = auto()
    # registers
    ACC = auto()
    ASSIGN = auto()
    READ = auto()
    # memory
    AFTER = auto()
    LOAD = auto()
    STORE = auto()
    PREFETCH = auto()
    BARRIER = auto()
    # lanes
    VECTORIZE = auto()
    BROADCAST = auto()
    GEP = auto()
    # arithmetic that is not elementwise, or has no operation in the graph
    SCALE = auto()
    MATRIX = auto()
    # the whole kernel
    SINK = auto()


STREAM = "stream"
"""The argument of a STORE that goes past the caches, if the target can."""
SPECIALS = ("core_id", "gidx0", "gidx1", "gidx2", "lidx0", "lidx1", "lidx2")
"""The names of a SPECIAL: the number of a CPU's thread, of a work-group along x, y, z, of a work-item in its group."""


class Operand(Enum):
    """What may stand as an operand; the value completes "is not ..."."""

    VALUE = "a value"
    SAME = "a value of the node's dtype"
    LIKE_FIRST = "a value of the first operand's dtype"
    LANE = "a scalar of the dtype of the node's lanes"
    LANES = "a value with lanes of the dtype of the node's"
    BOOL = "a bool"
    GATE = "a bool, or one for each lane that is read or written"
    INDEX = "an int32 or int64 scalar"
    STEP = "a value of the node's dtype, and greater than 0"
    POINTER = "a pointer to an argument or to scratch"
    ELEMENTS = "one or more elements of what the pointer points to"
    RANGE = "a RANGE"
    IF = "an IF"
    ACC = "an ACC"
    EFFECT = "an effect"


class Arg(Enum):
    """What the argument of a node is; the value completes "is not ..."."""

    NONE = "left out"
    CONSTANT = "a value of the dtype, which all lanes have"
    SLOT = "the number of a buffer"
    VARIABLE = "a tg_shape.Variable"
    ARRAY = "a name and the size that the pointer's dtype states"
    SPECIAL = f"a name among {', '.join(SPECIALS)}, and how many values it has"
    NAME = "a name"
    NUMBER = "a number, or a number and a lane"
    LABEL = "left out, or a number that tells it from its like"
    HINT = f"left out, or {STREAM!r}"
    LANES = "lanes of the operands, one for each of the node's"
    INSTRUCTION = "a MatrixInstruction whose fragments the operands are"


class Result(Enum):
    """Which dtype a node has; the value completes "is not ..."."""

    EFFECT = "void, as an effect has no value"
    VALUE = "the dtype of a value"
    VECTOR = "a vector"
    LANES = "a vector with a lane for each operand"
    FLOAT = "a float"
    INDEX = "int32 or int64"
    FIRST = "the first operand's dtype"
    ELEMENTS = "the dtype of one or more elements of what the pointer points to"
    GLOBAL = "a pointer to global memory"
    OWN = "a pointer to local memory or registers"


class Trait(Flag):
    """Facts about a UOp from which groups are computed."""

    NONE = 0
    REGION = auto()  # structured form: holds the effects that it runs
    OPENS = auto()  # linear form: begins a region
    CLOSES = auto()  # linear form: ends one
    STRUCTURED = auto()  # in the structured form alone
    COORDINATE = auto()  # an integer known without reading memory: what addresses are made of
    POINTER = auto()  # where memory begins
    ACCESS = auto()  # names an element of memory
    TRANSFER = auto()  # moves elements between memory and registers
    REGISTER = auto()  # the value of a register
    LANE_MOVE = auto()  # takes vectors apart and puts them together
    UNPACKED = auto()  # each of its lanes is there as a scalar
    NO_INSTRUCTION = auto()  # takes no instruction, or none that shows


class UOpSpec(NamedTuple):
    """One row of the table.

    Attributes:
      operands: the operands that there always are, by name.
      arg: what the argument is.
      result: which dtype the node has.
      traits: flags from which groups are computed.
      meaning: one line of semantics.
      optional: operands that may follow, all or none.
      rest: name and kind of any number of operands at the end.
    """

    operands: Mapping[str, Operand]
    arg: Arg
    result: Result
    traits: Trait
    meaning: str
    optional: Mapping[str, Operand] = MappingProxyType({})
    rest: tuple[str, Operand] | None = None

    def named(self, count: int) -> list[tuple[str, Operand]] | None:
        """Name and kind of each of ``count`` operands; None if the UOp does not take so many."""
        found = [*self.operands.items()]
        if count != len(found):
            found += self.optional.items()
        if self.rest is not None:
            found += [self.rest] * (count - len(found))
        return found if len(found) == count else None

    def kinds(self) -> frozenset[Operand]:
        """All kinds of operands that it can have."""
        rest = () if self.rest is None else self.rest[1:]
        return frozenset((*self.operands.values(), *self.optional.values(), *rest))

    def signature(self) -> str:
        """The operands as text.

        >>> SPEC[UOps.LOAD].signature(), SPEC[UOps.LOOP].signature()
        ('(pointer, index[, gate, alternative])', '(range, *effects)')
        """
        text = ", ".join(self.operands)
        if self.optional:
            text += f"[, {', '.join(self.optional)}]"
        if self.rest is not None:
            text += f"{', ' if text else ''}*{self.rest[0]}"
        return f"({text})"


_A, _O, _R, _T = Arg, Operand, Result, Trait
_EFFECTS = ("effects", Operand.EFFECT)

SPEC: dict[UOps, UOpSpec] = {
    UOps.PARAM: UOpSpec({}, _A.SLOT, _R.GLOBAL, _T.POINTER | _T.NO_INSTRUCTION,
                        "the kernel's buffer argument of that slot"),
    UOps.VAR: UOpSpec({}, _A.VARIABLE, _R.INDEX, _T.COORDINATE | _T.NO_INSTRUCTION, "a scalar argument"),
    UOps.SPECIAL: UOpSpec({}, _A.SPECIAL, _R.INDEX, _T.COORDINATE | _T.NO_INSTRUCTION,
                          "which thread, work-group or work-item this is: at least 0, less than the size"),
    UOps.SCRATCH: UOpSpec({}, _A.ARRAY, _R.OWN, _T.POINTER | _T.NO_INSTRUCTION,
                          "an array private to a thread (REG) or a work-group (LOCAL)"),
    UOps.CONST: UOpSpec({}, _A.CONSTANT, _R.VALUE, _T.COORDINATE | _T.UNPACKED | _T.NO_INSTRUCTION,
                        "that value in every lane"),
    UOps.RANGE: UOpSpec({"start": _O.SAME, "end": _O.SAME}, _A.NAME, _R.INDEX, _T.OPENS | _T.COORDINATE,
                        "a loop's counter, of a name unique in the kernel", {"step": _O.STEP}),
    UOps.LOOP: UOpSpec({"range": _O.RANGE}, _A.NONE, _R.EFFECT, _T.REGION | _T.STRUCTURED,
                       "run the effects for every value of the range, in order", rest=_EFFECTS),
    UOps.IF: UOpSpec({"condition": _O.BOOL}, _A.LABEL, _R.EFFECT, _T.REGION | _T.OPENS,
                     "run the effects if the condition holds; in the linear form, all up to the ENDIF", rest=_EFFECTS),
    UOps.ENDRANGE: UOpSpec({"range": _O.RANGE}, _A.NONE, _R.EFFECT, _T.CLOSES | _T.NO_INSTRUCTION,
                           "end of a RANGE's loop"),
    UOps.ENDIF: UOpSpec({"if": _O.IF}, _A.NONE, _R.EFFECT, _T.CLOSES | _T.NO_INSTRUCTION, "end of an IF"),
    UOps.ACC: UOpSpec({"initial": _O.VALUE}, _A.NUMBER, _R.FIRST, _T.REGISTER | _T.NO_INSTRUCTION,
                      "a register, set to its initial value where the outer ranges are open; its present value",
                      rest=("ranges", _O.RANGE)),
    UOps.ASSIGN: UOpSpec({"register": _O.ACC, "value": _O.LIKE_FIRST}, _A.NONE, _R.EFFECT, _T.NO_INSTRUCTION,
                         "set the register"),
    UOps.READ: UOpSpec({"register": _O.ACC}, _A.NONE, _R.FIRST, _T.REGISTER | _T.NO_INSTRUCTION,
                       "the register's value once the effect has run; in the linear form also the value right here",
                       {"effect": _O.EFFECT}),
    UOps.AFTER: UOpSpec({"pointer": _O.POINTER}, _A.NONE, _R.FIRST, _T.POINTER | _T.NO_INSTRUCTION,
                        "the pointer, usable once the effects have run", rest=_EFFECTS),
    UOps.LOAD: UOpSpec({"pointer": _O.POINTER, "index": _O.INDEX}, _A.NONE, _R.ELEMENTS, _T.ACCESS | _T.TRANSFER,
                       "consecutive elements; the alternative where the gate is false",
                       {"gate": _O.GATE, "alternative": _O.SAME}),
    UOps.STORE: UOpSpec({"pointer": _O.POINTER, "index": _O.INDEX, "value": _O.ELEMENTS}, _A.HINT, _R.EFFECT,
                        _T.ACCESS | _T.TRANSFER, "write consecutive elements where the gate is true",
                        {"gate": _O.GATE}),
    UOps.PREFETCH: UOpSpec({"pointer": _O.POINTER, "index": _O.INDEX}, _A.NONE, _R.EFFECT, _T.ACCESS,
                           "the element's cache line will be read soon; it need not exist"),
    UOps.BARRIER: UOpSpec({}, _A.LABEL, _R.EFFECT, _T.NONE, "wait for the work-group, once the effects have run",
                          rest=_EFFECTS),
    UOps.VECTORIZE: UOpSpec({}, _A.NONE, _R.LANES, _T.LANE_MOVE | _T.UNPACKED, "a vector of these lanes",
                            rest=("lanes", _O.LANE)),
    UOps.BROADCAST: UOpSpec({"lane": _O.LANE}, _A.NONE, _R.VECTOR, _T.LANE_MOVE | _T.UNPACKED | _T.NO_INSTRUCTION,
                            "a vector of equal lanes"),
    UOps.GEP: UOpSpec({"first": _O.LANES}, _A.LANES, _R.VALUE, _T.LANE_MOVE,
                      "those lanes, a scalar if there is one; the second's are counted after the first's",
                      {"second": _O.LIKE_FIRST}),
    UOps.SCALE: UOpSpec({"x": _O.SAME, "n": _O.SAME}, _A.NONE, _R.FLOAT, _T.NONE,
                        "x * 2**n, rounded once; n has the value of an integer"),
    UOps.MATRIX: UOpSpec({"sum": _O.VALUE, "a": _O.VALUE, "b": _O.VALUE}, _A.INSTRUCTION, _R.FIRST, _T.NONE,
                         "the sum with the products added; each operand is a thread's fragment of a matrix"),
    UOps.SINK: UOpSpec({}, _A.NONE, _R.EFFECT, _T.STRUCTURED, "the whole kernel", rest=_EFFECTS),
}  # fmt: skip


def group(trait: Trait) -> frozenset[UOps]:
    """The UOps whose row has every flag of ``trait``.

    >>> UOps.LOOP in group(Trait.REGION), UOps.RANGE in group(Trait.REGION)
    (True, False)
    """
    return frozenset(op for op, row in SPEC.items() if row.traits & trait == trait)


EFFECTS = frozenset(op for op, row in SPEC.items() if row.result is Result.EFFECT)
LEAVES = tuple(op for op, row in SPEC.items() if not row.kinds())
"""What has no operands, in the order in which a linear kernel begins with it."""
WAITS = frozenset(op for op, row in SPEC.items() if Operand.EFFECT in row.kinds()) - EFFECTS
"""What is there once an effect has run."""
LISTS = frozenset(op for op, row in SPEC.items() if row.rest == _EFFECTS)
"""What takes any number of effects."""
REGIONS = group(Trait.REGION)
OPENS = group(Trait.OPENS)
CLOSES = group(Trait.CLOSES)
STRUCTURED = group(Trait.STRUCTURED)
COORDINATES = group(Trait.COORDINATE)
POINTERS = group(Trait.POINTER)
ARRAYS = POINTERS.intersection(LEAVES)
"""Memory itself: what is behind every pointer."""
ACCESSES = group(Trait.ACCESS)
TRANSFERS = group(Trait.TRANSFER)
REGISTERS = group(Trait.REGISTER)
LANE_MOVES = group(Trait.LANE_MOVE)
UNPACKED = group(Trait.UNPACKED)
NO_INSTRUCTION = group(Trait.NO_INSTRUCTION)
