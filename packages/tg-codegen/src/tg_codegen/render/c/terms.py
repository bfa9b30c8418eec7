"""Types, literals and variables of one kernel in a dialect of C.

* A scalar bool is the language's bool. A vector of bools is one of bools, or, where the dialect has masks, of signed
  bytes that are 0 or -1, so that it widens to a mask by sign extension. In memory a bool is an unsigned byte, and any
  nonzero byte is true.
* Anything that needs an operand twice is a helper function, defined before the kernel if it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tg_dtype import AddrSpace, ConstType, DType, PtrDType, dtypes

from ...ir.errors import EmitError
from ...ir.facts import element, kernel_facts, pointer_base
from ...ir.uop import UOp
from ..inlining import inlined
from ..spelling import bare, decimal, signed, stored
from ..text import Text, is_atom
from .dialect import Dialect


class CStyleTerms:
    """The words of one kernel.

    Args:
      dialect: the language.
      name: the kernel's.
      uops: the kernel.

    Attributes:
      types: definitions of types by name.
      used: scalar dtypes that have been written of.
    """

    def __init__(self, dialect: Dialect, name: str, uops: Sequence[UOp]) -> None:
        self.dialect = dialect
        self.facts = kernel_facts(uops)
        self.text = Text({*dialect.reserved, name}, inlined(uops, self.facts.uses))
        self.types: dict[str, str] = {}
        self.used: set[DType] = set()
        self._type_names: dict[DType, str] = {}

    def type(self, dtype: DType) -> str:
        """The type of a value in a register.

        Raises:
          ValueError: if the language cannot compute with it.
          EmitError: if there are no vectors of so many lanes.
        """
        found = self._type_names.get(dtype)
        if found is None:
            self.used.add(dtype.scalar())
            found = self._type_names[dtype] = self._vector_type(dtype) if dtype.count > 1 else self._scalar_type(dtype)
        return found

    def _scalar_type(self, dtype: DType) -> str:
        if dtypes.is_bool(dtype):
            return self.dialect.boolean
        found = self.dialect.scalars.get(dtype)
        if found is None:
            raise ValueError(f"{self.dialect.language}: {dtype.name} has no arithmetic here; it must be legalised")
        return found

    def _vector_type(self, dtype: DType) -> str:
        forms = self.dialect.vectors
        if forms.widths and dtype.count not in forms.widths:
            lanes = f"{dtype.name} has {dtype.count} lanes; there are vectors of {forms.widths}"
            raise EmitError(f"{self.dialect.language}: {lanes}")
        dtype = signed(dtype) if dtypes.is_bool(dtype) and forms.masks else dtype
        lane = self.type(dtype.scalar())
        name = forms.name(lane, dtype)
        return self.defined(name, forms.define(name, lane, dtype))

    def defined(self, name: str, definition: str) -> str:
        """The name of a type, which is defined before the kernel."""
        if definition:
            self.types.setdefault(name, definition)
        return name

    def space(self, pointer: UOp) -> AddrSpace:
        """Where a pointer points."""
        base = pointer_base(pointer).dtype
        assert isinstance(base, PtrDType)
        return base.space

    def qualifier(self, pointer: UOp) -> str:
        """The qualifier of what a pointer points to."""
        return self.dialect.spaces.get(self.space(pointer), "")

    def element_type(self, pointer: UOp) -> str:
        """The type of what a pointer points to, without its qualifier."""
        return self.type(stored(element(pointer)))

    # values

    def variable(self, stem: str, dtype: DType, text: str) -> str:
        """A new variable with this value."""
        name = self.text.numbered(stem)
        self.text.line(f"{self.type(dtype)} {name} = {bare(text)};")
        return name

    def atom(self, text: str, dtype: DType) -> str:
        """The text itself if repeating it costs nothing, else a variable that holds it."""
        return text if is_atom(text) else self.variable("x", dtype, text)

    def value(self, u: UOp) -> str:
        """What stands for a node as an operand."""
        found = self.text.values.get(u)
        return self.literal(u.arg, u.dtype) if found is None and u.is_const else self.text.values[u]

    def function(self, name: str, result: DType, parameters: Sequence[tuple[DType, str]], body: str) -> str:
        """The name of a helper function of values."""
        declared = ", ".join(f"{self.type(d)} {p}" for d, p in parameters)
        head = self.dialect.helper
        return self.text.helper(name, lambda: f"{head}{self.type(result)} tg_{name}({declared}) {{ {body} }}")

    def helper(self, name: str, result: DType, parameters: str, body: Callable[[], Sequence[str]]) -> str:
        """The name of a helper function of several lines, which are made on first use."""

        def define() -> str:
            lines = "\n  ".join(body())
            return f"{self.dialect.helper}{self.type(result)} tg_{name}({parameters}) {{\n  {lines}\n}}"

        return self.text.helper(name, define)

    def literal(self, value: ConstType, dtype: DType) -> str:
        """A constant; of a vector every lane."""
        if dtype.count > 1:
            return self.vector([self.literal(value, dtype.scalar())] * dtype.count, dtype)
        if dtypes.is_bool(dtype):
            return "1" if value else "0"
        if dtypes.is_float(dtype):
            self.used.add(dtype)
            return self.float_literal(float(value), dtype)
        number = int(value)
        suffix = ("u" if dtypes.is_unsigned(dtype) and dtype.bits >= 32 else "") + (
            self.dialect.long_suffix if dtype.bits == 64 else ""
        )
        if number == -(1 << 31) or number == -(1 << 63):  # the literal without its sign would not fit
            return f"({number + 1}{suffix} - 1)"
        return f"({number}{suffix})" if number < 0 else f"{number}{suffix}"

    def float_literal(self, value: float, dtype: DType) -> str:
        """A float, also one that is no number."""
        if value != value:
            text = self.dialect.non_finite(value, dtype)
        elif value in (float("inf"), float("-inf")):
            text = f"{'-' if value < 0 else ''}{self.dialect.non_finite(abs(value), dtype)}"
        else:
            text = decimal(value) + ("" if dtype is dtypes.float64 else "f")
        text = f"({text})" if text.startswith("-") else text
        return self.narrow(text, dtype)

    def narrow(self, text: str, dtype: DType) -> str:
        """Rounds an expression that the language may have widened (float16, small integers) to its dtype."""
        if dtype.count > 1:
            operators = self.dialect.vectors.operators
            wide = operators is None or dtype.scalar() not in operators.widened
        else:
            wide = dtype.bits >= 32 or dtypes.is_bool(dtype)
        return text if wide else f"({self.type(dtype)}){text if text.startswith('(') else f'({text})'}"

    # vectors

    def vector(self, lanes: Sequence[str], dtype: DType) -> str:
        """A vector of these scalars."""
        forms = self.dialect.vectors
        if dtypes.is_bool(dtype) and forms.masks:
            lanes = [self.pack_lane(lane) for lane in lanes]
        return forms.literal(self.type(dtype), [bare(lane) for lane in lanes])

    def pack_lane(self, text: str) -> str:
        """A scalar bool as a lane of a vector of bools."""
        if not self.dialect.vectors.masks:
            return text
        return {"0": "0", "1": "-1"}.get(text) or f"({self.dialect.scalars[dtypes.int8]})-{text}"

    def lane(self, vector: str, index: int) -> str:
        """One lane of a vector: something that can be read and assigned."""
        return self.dialect.vectors.lane(vector, index)

    def lane_value(self, vector: str, index: int, dtype: DType) -> str:
        """One lane of a vector of ``dtype`` as a scalar value."""
        text = self.dialect.vectors.lane(vector, index)
        return f"({text} != 0)" if dtypes.is_bool(dtype) and self.dialect.vectors.masks else text

    def shuffle(self, vectors: Sequence[str], lanes: Sequence[int], dtype: DType) -> str:
        """Several lanes of one or two vectors of ``dtype``, as a vector."""
        found = self.dialect.vectors.shuffle(self, vectors, lanes, dtype)
        if found is not None:
            return found
        places = (divmod(lane, dtype.count) for lane in lanes)
        values = [self.lane_value(vectors[source], lane, dtype) for source, lane in places]
        return self.vector(values, dtype.scalar().vec(len(lanes)))
