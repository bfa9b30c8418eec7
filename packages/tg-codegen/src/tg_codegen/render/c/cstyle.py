"""The C family: one renderer, whose dialect is a table.

:class:`CStyleFunction` writes one kernel statement by statement. What it is made of is held by its parts: words
(:mod:`~tg_codegen.render.c.terms`), conversions, arithmetic and memory; each asks the dialect where languages
differ. A value used once stands inside the expression that uses it; all others get a variable.

Example:
  >>> from tg_codegen.ir.uop import UOp, UOps
  >>> from tg_codegen.machine.target import Target
  >>> from tg_codegen.render.c.cstyle import CStyleRenderer
  >>> from tg_codegen.render.c.dialect import Dialect
  >>> from tg_dtype import dtypes
  >>> class PlainC(CStyleRenderer):
  ...     name = "PLAIN"
  ...     dialect = Dialect(language="C", scalars={dtypes.float32: "float"})
  >>> print(PlainC(Target()).render("nothing", [UOp(UOps.PARAM, dtypes.float32.ptr(), (), 0)]), end="")
  void nothing(const float* restrict data0) {
  }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import AddrSpace, DType, ImageDType, PtrDType, dtypes

from ...ir.facts import pointer_base
from ...ir.uop import UOp, UOps, is_alu
from ...machine.renderer import Renderer
from ..spelling import bare
from .arithmetic import CStyleArithmetic
from .conversion import CStyleConversion
from .dialect import Dialect, ImageAccess
from .memory import CStyleAccess
from .terms import CStyleTerms


class CStyleRenderer(Renderer):
    """Writes a language of the C family: a class of its own states the name and the dialect.

    Attributes:
      dialect: the language.
    """

    dialect: ClassVar[Dialect]

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return CStyleFunction(self.dialect, name, uops, self.target.fused_multiply_add).source()

    def supports_dtype(self, dtype: DType) -> bool:
        return dtypes.is_bool(dtype) or dtype.scalar() in self.dialect.scalars


class CStyleFunction:
    """One kernel while its text is being written.

    Args:
      dialect: the language.
      name: the kernel's.
      uops: the kernel, in order.
      fused: whether a * b + c is one instruction.
    """

    def __init__(self, dialect: Dialect, name: str, uops: Sequence[UOp], fused: bool) -> None:
        self._dialect, self._name, self._uops = dialect, name, uops
        self._terms = CStyleTerms(dialect, name, uops)
        self._text, self._facts = self._terms.text, self._terms.facts
        conversion = CStyleConversion(self._terms)
        self._arithmetic = CStyleArithmetic(self._terms, conversion, fused)
        self._memory = CStyleAccess(self._terms, conversion)
        self._images: ImageAccess | None = dialect.images(self._terms) if dialect.images is not None else None
        block = dialect.dynamic_memory
        self._block = block.places(uops) if block is not None else {}

    def source(self) -> str:
        """The whole text.

        Raises:
          ValueError: for a node that has no form in this language.
        """
        dialect, values = self._dialect, self._text.values
        parameters: list[str] = []
        for u in self._facts.params:
            values[u] = self._text.claim(f"data{u.arg}")
            parameters.append(self._parameter(u, values[u], len(parameters)))
        members = self._variables(parameters)
        parameters += dialect.inputs
        for u in self._uops:
            self._statement(u)
        head = dialect.kernel(self._name, ", ".join(parameters), self._facts.work_group())
        streaming = dialect.streaming if self._memory.streams else None
        dynamic = dialect.dynamic_memory if self._block else None
        return "\n".join([
            *(line for dtype, line in dialect.requires.items() if dtype in self._terms.used),
            *dialect.preamble,
            *(dynamic.preamble(self._name, self._block) if dynamic else ()),
            *(streaming.preamble if streaming else ()),
            *members, *self._terms.types.values(), *self._text.helpers.values(),
            f"{head} {{", *self._text.body, *(streaming.ending if streaming else ()), "}",
        ]) + "\n"  # fmt: skip

    def _parameter(self, u: UOp, name: str, number: int) -> str:
        if isinstance(u.dtype, ImageDType):
            return self._image_access(u).parameter(u.arg in self._facts.stored, name)
        const = "" if u.arg in self._facts.stored else "const "
        return self._dialect.parameter(f"{const}{self._terms.element_type(u)}", name, number)

    def _variables(self, parameters: list[str]) -> list[str]:
        """Names the variables, adds their parameters, and gives the definition of their struct if there is one."""
        claim, values, members = self._text.claim, self._text.values, []
        for u in (*self._facts.variables, *([self._facts.core] if self._facts.core is not None else [])):
            name = claim(u.arg.name if u.op is UOps.VAR else "core_id")
            if self._dialect.variables is None:
                values[u] = name
                parameters.append(f"const int {name}")
            else:
                values[u] = f"args.{name}"
                members.append(f"int {name};")
        if self._dialect.variables is None or not members:
            return []
        parameters.append(self._dialect.variables(len(parameters)))
        return [f"struct Args {{ {' '.join(members)} }};"]

    def _image_access(self, u: UOp) -> ImageAccess:
        if self._images is None:
            raise ValueError(f"{self._dialect.language}: it has no images, as {u!r} is")
        return self._images

    # statements

    def _statement(self, u: UOp) -> None:
        if is_alu(u):
            self._define(u, "alu", self._arithmetic.alu(u))
            return
        terms, text, values = self._terms, self._text, self._text.values
        match u.op:
            case UOps.PARAM | UOps.VAR:
                pass
            case UOps.CONST:
                if u.dtype.count > 1 and self._dialect.name_constants:
                    values[u] = terms.variable("c", u.dtype, terms.literal(u.arg, u.dtype))
            case UOps.SPECIAL:
                if u is not self._facts.core:
                    self._work_item(u)
            case UOps.AFTER:
                values[u] = values[u.src[0]]
            case UOps.SCRATCH:
                values[u] = text.claim(u.arg[0])
                text.line(f"{self._array(u, values[u])};")
            case UOps.ACC:
                values[u] = terms.variable("acc", u.dtype, terms.value(u.src[0]))
            case UOps.ASSIGN:
                text.line(f"{values[u.src[0]]} = {bare(terms.value(u.src[1]))};")
            case UOps.READ:
                values[u] = terms.variable("res", u.dtype, values[u.src[0]])
            case UOps.RANGE:
                self._loop(u)
            case UOps.IF:
                text.open(f"if ({bare(terms.value(u.src[0]))})")
            case UOps.ENDRANGE | UOps.ENDIF:
                text.close()
            case UOps.LOAD:
                access = self._image_access(u) if is_image_pointer(u.src[0]) else self._memory
                values[u] = terms.variable("val", u.dtype, access.load(u))
            case UOps.STORE:
                (self._image_access(u) if is_image_pointer(u.src[0]) else self._memory).store(u)
            case UOps.PREFETCH:
                self._memory.prefetch(u)
            case UOps.BARRIER:
                for line in self._dialect.barrier:
                    text.line(line)
            case UOps.VECTORIZE:
                self._define(u, "vec", terms.vector([terms.value(operand) for operand in u.src], u.dtype))
            case UOps.BROADCAST:
                lane = terms.atom(terms.value(u.src[0]), u.dtype.scalar())
                self._define(u, "vec", terms.vector([lane] * u.dtype.count, u.dtype))
            case UOps.GEP:
                self._define(u, "gep", self._lanes(u))
            case UOps.MATRIX:
                values[u] = terms.variable("acc", u.dtype, self._matrix(u))
            case _:
                raise ValueError(f"{self._dialect.language}: {u!r} has no form in a linear kernel")

    def _define(self, u: UOp, stem: str, expression: str) -> None:
        inside = self._text.stands_inside(u, expression)
        self._text.values[u] = expression if inside else self._terms.variable(stem, u.dtype, expression)

    def _work_item(self, u: UOp) -> None:
        name = u.arg[0]
        if self._dialect.work_item is None:
            raise ValueError(f"{self._dialect.language}: SPECIAL {name} has no meaning on a CPU")
        self._text.values[u] = self._text.claim(name)
        place = self._dialect.work_item(name[0], int(name[-1]))
        self._text.line(f"const int {self._text.values[u]} = {place};")

    def _array(self, u: UOp, name: str) -> str:
        kind, block = self._terms.element_type(u), self._dialect.dynamic_memory
        if u in self._block and block is not None:
            return block.array(kind, name, self._block[u])
        assert isinstance(u.dtype, PtrDType)
        space: AddrSpace = u.dtype.space
        return self._dialect.array(space, kind, name, u.arg[1])

    def _loop(self, u: UOp) -> None:
        terms, dialect = self._terms, self._dialect
        name = self._text.values[u] = self._text.claim(u.arg)
        step = f"{name} += {terms.value(u.src[2])}" if len(u.src) > 2 and u.src[2].arg != 1 else f"{name}++"
        start, end = terms.value(u.src[0]), terms.value(u.src[1])
        if dialect.short_loop:
            (least, _), (_, past) = (self._facts.bounds(bound) for bound in u.src[:2])
            if past - least < dialect.few:
                self._text.line(dialect.short_loop)
        self._text.open(f"for ({terms.type(u.dtype)} {name} = {bare(start)}; {name} < {end}; {step})")

    def _lanes(self, u: UOp) -> str:
        """A GEP."""
        dtype = u.src[0].dtype
        vectors = [self._terms.atom(self._terms.value(s), dtype) for s in u.src]
        if len(u.arg) == 1:
            source, lane = divmod(u.arg[0], dtype.count)
            return self._terms.lane_value(vectors[source], lane, dtype)
        return self._terms.shuffle(vectors, u.arg, dtype)

    def _matrix(self, u: UOp) -> str:
        if self._dialect.matrix is None:
            raise ValueError(f"{self._dialect.language}: {u.arg.name} has no form here")
        acc, a, b = (bare(self._terms.value(operand)) for operand in u.src)
        name = self._dialect.matrix(self._terms, u.arg, u.dtype, u.src[1].dtype, u.src[2].dtype)
        return f"{name}({acc}, {a}, {b})"


def is_image_pointer(pointer: UOp) -> bool:
    """Whether a pointer is an image."""
    return isinstance(pointer_base(pointer).dtype, ImageDType)
