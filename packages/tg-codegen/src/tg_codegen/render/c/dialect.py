"""What a language of the C family is: a table of its words, and of the few forms in which it differs from C.

Whoever adds a language writes a :class:`Dialect`. Where the language has no vectors, :class:`Vectors` as it is makes
structs of them, worked on lane by lane; where it has, a table of its own says how they are spelled, and
:class:`Operators` how its operators treat them.

A form is a function of the texts that it is made of. Those that need more, a helper function or the name of a type, ask
for it through :class:`Terms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tg_dtype import AddrSpace, ConstType, DType
from tg_lazy import Ops

from ...ir.facts import KernelFacts
from ...ir.matrix import MatrixInstruction
from ...ir.uop import UOp
from ..spelling import bare, short
from ..text import Text

C_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool half uchar
    ushort uint ulong size_t kernel global local constant private class new delete this true false template operator
    namespace public protected typename using virtual throw try catch asm not and or xor min max abs exp2 log2 sin sqrt
    trunc fma select barrier main""".split()
)


class Terms(Protocol):
    """What the forms of a dialect may ask of the kernel that is being written.

    Attributes:
      facts: what is known of the kernel.
      text: what has been written of it.
    """

    facts: KernelFacts
    text: Text

    def type(self, dtype: DType) -> str:
        """The type of a value in a register."""

    def defined(self, name: str, definition: str) -> str:
        """The name of a type, which is defined before the kernel."""

    def literal(self, value: ConstType, dtype: DType) -> str:
        """A constant; of a vector every lane."""

    def narrow(self, text: str, dtype: DType) -> str:
        """Rounds an expression that the language may have widened (float16, small integers) to its dtype."""

    def value(self, u: UOp) -> str:
        """What stands for a node as an operand."""

    def atom(self, text: str, dtype: DType) -> str:
        """The text itself if repeating it costs nothing, else a variable that holds it."""

    def function(self, name: str, result: DType, parameters: Sequence[tuple[DType, str]], body: str) -> str:
        """The name of a helper function of values."""

    def helper(self, name: str, result: DType, parameters: str, body: Callable[[], Sequence[str]]) -> str:
        """The name of a helper function of several lines, which are made on first use."""

    def vector(self, lanes: Sequence[str], dtype: DType) -> str:
        """A vector of these scalars."""

    def lane_value(self, vector: str, index: int, dtype: DType) -> str:
        """One lane of a vector of ``dtype`` as a scalar value."""

    def shuffle(self, vectors: Sequence[str], lanes: Sequence[int], dtype: DType) -> str:
        """Several lanes of one or two vectors of ``dtype``, as a vector."""


class ImageAccess(Protocol):
    """How a language reads and writes the images among a kernel's arguments."""

    def parameter(self, written: bool, name: str) -> str:
        """The declaration of an argument."""

    def load(self, u: UOp) -> str:
        """What a LOAD reads."""

    def store(self, u: UOp) -> None:
        """Writes the lines of a STORE."""


Builtin = Callable[[Terms, DType, Sequence[str]], str]
"""How an op of a dtype is computed from operands by a function of the language."""
Builtins = Mapping[tuple[Ops, DType], Builtin]
WorkGroup = tuple[int, int, int]


def call(name: str) -> Builtin:
    """An op that a function of the language does."""
    return lambda terms, dtype, v: f"{name}({', '.join(map(bare, v))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """How a language's own operators and functions treat vectors.

    Attributes:
      convert: the vector of a type that has the values of another: from the type and the text.
      reinterpret: the vector of a type that has the bits of another: from the type and the text.
      select: of a dtype, what makes ``mask ? a : b`` of the texts of the three.
      byte_masks: whether ``select`` takes masks of signed bytes, not of lanes as wide as the operands'.
      number: an integer as the second operand of an operator.
      false_byte: what bools in memory are compared with, where that is no ``number``.
      takes_scalars: whether an operator takes a scalar of the same dtype beside a vector.
      negates_unsigned: whether unary minus takes vectors of unsigned integers.
      builtins: functions of the language for vectors, by the dtype of a lane.
      widened: dtypes whose vectors compilers may compute in wider ones.
      lane_by_lane: whether an op of a dtype is done on each lane alone; the last argument tells of a division that its
        divisor may be 0 or -1. Without masks that holds for all ops of bools.
      cast_lane_by_lane: whether a conversion is.
    """

    convert: Callable[[str, str], str]
    reinterpret: Callable[[str, str], str]
    select: Callable[[Terms, DType], Callable[[str, str, str], str]]
    byte_masks: bool = False
    number: Callable[[Terms, int, DType], str]
    false_byte: str = ""
    takes_scalars: bool = True
    negates_unsigned: bool = True
    builtins: Builtins
    widened: frozenset[DType] = frozenset()
    lane_by_lane: Callable[[Ops, DType, bool], bool] = lambda op, dtype, guarded: False
    cast_lane_by_lane: Callable[[DType, DType], bool] = lambda src, dst: False


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """How vectors are spelled: by default as structs, which are read and written lane by lane.

    Attributes:
      widths: the numbers of lanes that there are; any if empty.
      name: the name of a type, from that of a lane.
      define: the definition of that type from its name and that of a lane; empty if the language has it.
      literal: a vector of these lanes, from the type.
      lane: one lane: something that can be read and assigned.
      masks: whether a vector of bools is one of signed bytes that are 0 or -1. Otherwise it is one of bools.
      shuffle: as :meth:`Terms.shuffle`, where there is a form for it.
      whole: whether consecutive elements are read and written as one: from their dtype, where they are, and a number
        that divides the index of the first. Otherwise lane by lane.
      load: what is read at a pointer and an index, from the dtype and the qualifier of its address space.
      store: the statement that writes there.
      whole_if_all: whether a load whose lanes have gates is worth a test that all of them are open.
      operators: how the language computes with vectors; None if lane by lane.
    """

    widths: tuple[int, ...] = ()
    name: Callable[[str, DType], str] = lambda lane, dtype: short(dtype)
    define: Callable[[str, str, DType], str] = (
        lambda name, lane, dtype: f"typedef struct {{ {lane} v[{dtype.count}]; }} {name};")
    literal: Callable[[str, Sequence[str]], str] = lambda kind, lanes: f"({kind}){{{{{', '.join(lanes)}}}}}"
    lane: Callable[[str, int], str] = lambda vector, index: f"{vector}.v[{index}]"
    masks: bool = False
    shuffle: Callable[[Terms, Sequence[str], Sequence[int], DType], str | None] = (
        lambda terms, vectors, lanes, dtype: None)
    whole: Callable[[DType, AddrSpace, int], bool] = lambda memory, space, divisor: False
    load: Callable[[Terms, DType, str, str, str], str] = (
        lambda terms, memory, space, pointer, index: f"*(const {space}{terms.type(memory)}*)({pointer} + {index})")
    store: Callable[[Terms, DType, str, str, str, str], str] = (
        lambda terms, memory, space, pointer, index, value:
            f"*({space}{terms.type(memory)}*)({pointer} + {index}) = {value};")
    whole_if_all: bool = False
    operators: Operators | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """Stores of whole vectors past the caches, which want them aligned to their size.

    Attributes:
      preamble: lines before a kernel that has any.
      misaligned: whether a pointer is not aligned as every vector wants it.
      store: the statement, from the vector's type, the place and the value.
      ending: lines after everything else in a kernel that has any.
    """

    preamble: tuple[str, ...]
    misaligned: Callable[[str], str]
    store: Callable[[str, str, str], str]
    ending: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicMemory:
    """Memory shared by a work-group in one block whose size a launch states, for kernels that may not declare it.

    Attributes:
      places: where each array of a kernel begins in the block; empty if the kernel can declare them.
      preamble: lines before a kernel that has a block, from its name and these places.
      array: the declaration of an array, from the type of an element, its name and where it begins.
    """

    places: Callable[[Sequence[UOp]], dict[UOp, int]]
    preamble: Callable[[str, dict[UOp, int]], Sequence[str]]
    array: Callable[[str, str, int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A language of the C family; what is not stated is as in C.

    Attributes:
      language: its name, for messages.
      scalars: the types of scalars. Dtypes that are not here must be legalised, but for bools.
      boolean: the type of a bool.
      kernel: the head of the kernel, from its name, its parameters and its work-group (None if it asks for none).
      parameter: the declaration of a buffer, from the type of an element (with ``const`` where nothing is stored), its
        name and its number among the parameters.
      variables: the declaration of the struct ``args`` of all variables, from its number among the parameters; None if
        each variable is a parameter.
      inputs: parameters after all others.
      work_item: a work-item's place: from ``g`` (of its group among all) or ``l`` (in its group) and the dimension.
      reserved: identifiers that mean something.
      preamble: lines before everything else.
      requires: lines before even these, if the kernel has values of a dtype.
      helper: what stands before a helper function.
      long_suffix: what marks a literal of 64 bits.
      name_constants: whether a constant vector is worth a variable.
      non_finite: NaN and infinity.
      builtins: functions of the language, by the op and the dtype of scalars. A MULACC is done so where the target
        fuses, and an op that is not here by an operator.
      exact_operands: ops whose functions are overloaded: an operand that C widens is cast to its dtype.
      cast: a conversion that is not done as usual; None of all others.
      reinterpret: the scalar of a type that has the bits of another; None if a helper function has to do it.
      pun: the body of that helper: the bits of ``x``, from the types of ``x`` and of the result.
      matrix: the name of a function ``(acc, a, b)`` that does a matrix instruction, from it and these three's dtypes.
      vectors: how vectors are spelled.
      spaces: the qualifiers of what a pointer points to.
      array: the declaration of an array, from where it is, its type, its name and its size.
      dynamic_memory: what is done with more shared memory than a kernel may declare.
      barrier: lines that let a work-group's items wait for each other.
      prefetch: the statement that says that an element will be read soon, from the pointer, the index and the size of
        an element in bytes.
      streaming: stores past the caches.
      short_loop: a line before loops that are known to have fewer than ``few`` iterations.
      few: the fewest iterations of a loop that is not short.
      one_gate: whether a load all of whose lanes have one gate tests it once.
      images: how images are read and written; None if there are none.
    """

    language: str
    scalars: Mapping[DType, str]
    boolean: str = "bool"
    # the whole text
    kernel: Callable[[str, str, WorkGroup | None], str] = lambda name, parameters, group: f"void {name}({parameters})"
    parameter: Callable[[str, str, int], str] = lambda kind, name, number: f"{kind}* restrict {name}"
    variables: Callable[[int], str] | None = None
    inputs: tuple[str, ...] = ()
    work_item: Callable[[str, int], str] | None = None
    reserved: frozenset[str] = C_KEYWORDS
    preamble: tuple[str, ...] = ()
    requires: Mapping[DType, str] = field(default_factory=dict)
    helper: str = "static inline "
    # values
    long_suffix: str = "ll"
    name_constants: bool = True
    non_finite: Callable[[float, DType], str] = lambda value, dtype: "NAN" if value != value else "INFINITY"
    builtins: Builtins = field(default_factory=dict)
    exact_operands: frozenset[Ops] = frozenset()
    cast: Callable[[Terms, str, DType, DType], str | None] = lambda terms, x, src, dst: None
    reinterpret: Callable[[str, str], str] | None = None
    pun: Callable[[str, str], str] = lambda src, dst: f"union {{ {src} a; {dst} b; }} u; u.a = x; return u.b;"
    matrix: Callable[[Terms, MatrixInstruction, DType, DType, DType], str] | None = None
    vectors: Vectors = Vectors()
    # memory
    spaces: Mapping[AddrSpace, str] = field(default_factory=dict)
    array: Callable[[AddrSpace, str, str, int], str] = lambda space, kind, name, size: f"{kind} {name}[{size}]"
    dynamic_memory: DynamicMemory | None = None
    barrier: tuple[str, ...] = ()
    prefetch: Callable[[str, str, int], str] | None = None
    streaming: Streaming | None = None
    short_loop: str = ""
    few: int = 0
    one_gate: bool = False
    images: Callable[[Terms], ImageAccess] | None = None
