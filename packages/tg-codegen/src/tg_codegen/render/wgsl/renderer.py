"""WGSL, for WebGPU.

It resembles C too little to be a dialect of it: it declares, converts and addresses in another way, has neither vectors
that pay nor casts that wrap, and holds 64 bits in two words. So it has parts of its own, beside :mod:`~..text` and
:mod:`~..spelling`: words, conversions, arithmetic and memory, each of which says how it spells values.

Buffers are bindings ``@group(0) @binding(slot)``, all ``read_write`` (one buffer may stand behind several slots, which
WebGPU allows only where the access is the same); variables are members of the uniform ``args``, whose binding follows
the buffers'. Vectors are taken apart: WGSL has none wider than four lanes, and hardware gains nothing from these.

A shader has few storage buffers. Where a kernel has more than ``buffers``, the last binding holds several slots one
behind the other, as words: those that a comment line ``// packed: slot ...`` lists, each from the word that a member
of ``args`` tells. Another comment, ``// writes: slot ...``, tells which slots are stored to. A third, ``// groups``,
stands where a dimension of the grid may be larger than a launch allows: then workgroups are numbered through all
dimensions of the launch, and members of ``args`` tell the sizes of the grid. The members are in this order: the words,
the sizes, the variables.

Source: WebGPU Shading Language (W3C).

Example:
  >>> from tg_codegen.render.wgsl import WGSLRenderer
  >>> from tg_dtype import dtypes
  >>> WGSLRenderer().supports_dtype(dtypes.float64), WGSLRenderer(half=True).supports_dtype(dtypes.float16)
  (False, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import upper

from ...ir.uop import UOp, UOps, is_alu
from ...machine.renderer import Renderer
from ...machine.target import Target
from ...rewrite.scalarize import scalarize
from ..spelling import bare
from .arithmetic import WGSLArithmetic
from .conversion import WGSLConversion
from .memory import WGSLAccess
from .terms import SCALARS, WGSLTerms

MOST_GROUPS = 65535
"""Work-groups along a dimension on every device: *WebGPU*, "Limits", ``maxComputeWorkgroupsPerDimension``."""
_PLACES = {"g": "group", "l": "item"}


class WGSLRenderer(Renderer):
    """Writes WGSL.

    Args:
      target: the device; a modest one if omitted.
      half: whether the device has ``shader-f16``.
      buffers: most storage buffers of a shader.
      cast_half: whether ``bitcast`` takes ``vec2<f16>``, as the specification says; naga's does not.
    """

    name: ClassVar[str] = "WGSL"
    numbers_groups: ClassVar[bool] = True
    shifts: ClassVar[bool] = False

    def __init__(
        self, target: Target | None = None, *, half: bool = False, buffers: int = 8, cast_half: bool = True
    ) -> None:
        super().__init__(target or Target(
            kind="gpu", vector_bytes=4, registers=128, shared_bytes=16384, local_max=256,
            global_max=(MOST_GROUPS, MOST_GROUPS, MOST_GROUPS), max_params=buffers,
        ))  # fmt: skip
        self.half, self.buffers, self.cast_half = half, buffers, cast_half

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return WGSLFunction(name, self.written(uops), self).source()

    def written(self, uops: Sequence[UOp]) -> Sequence[UOp]:
        return scalarize(uops)

    def supports_dtype(self, dtype: DType) -> bool:
        scalar = dtype.scalar()
        if scalar is dtypes.float16:
            return self.half
        return dtypes.is_bool(scalar) or scalar in SCALARS

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        # The built-in functions may be off by 2**-11. Our EXP2 in arithmetic adds and subtracts a large constant to
        # round, which a compiler of WGSL may take away: so there is a helper for it.
        return super().supports_op(op, dtype) or (op is Ops.EXP2 and dtype.scalar() is dtypes.float32)

    @property
    def key(self) -> str:
        return f"{super().key}:half={self.half}:buffers={self.buffers}:cast_half={self.cast_half}"


class WGSLFunction:
    """One kernel while its text is being written."""

    def __init__(self, name: str, uops: Sequence[UOp], renderer: WGSLRenderer) -> None:
        self._uops = uops
        self._terms = WGSLTerms(uops)
        self._text, self._facts = self._terms.text, self._terms.facts
        self._name = self._text.claim(name)
        conversion = WGSLConversion(self._terms, renderer.cast_half)
        self._conversion = conversion
        self._arithmetic = WGSLArithmetic(self._terms, conversion, renderer.target.fused_multiply_add)
        self._memory = WGSLAccess(
            self._terms, conversion, self._name, renderer.buffers, renderer.target.shared_bytes)

    def source(self) -> str:
        """The whole text.

        Raises:
          ValueError: for a node that has no form in this language.
        """
        members: list[str] = []
        declared, notes = self._memory.declare(members)
        numbered = self._number_groups(notes, members)
        for u in self._facts.variables:
            name = self._text.claim(u.arg.name)
            self._text.values[u] = f"args.{name}"
            members.append(f"{name}: i32")
        for u in self._uops:
            self._statement(u)
        enable = ["enable f16;"] if dtypes.float16 in self._terms.used else []
        uniform = [
            f"struct Args {{ {', '.join(members)} }}",
            f"@group(0) @binding({len(declared)}) var<uniform> args: Args;",
        ] if members else []
        group = self._facts.work_group() or (1, 1, 1)
        inputs = ["@builtin(workgroup_id) group: vec3<u32>", "@builtin(local_invocation_id) item: vec3<u32>"]
        if numbered:
            inputs.append("@builtin(num_workgroups) groups: vec3<u32>")
        head = [
            *notes, *enable, *uniform, *declared, *self._memory.shared, *self._text.helpers.values(),
            f"@compute @workgroup_size({', '.join(map(str, group))})",
            f"fn {self._name}({', '.join(inputs)}) {{",
        ]  # fmt: skip
        return "\n".join([*head, *numbered, *self._text.body, "}"]) + "\n"

    def _number_groups(self, notes: list[str], members: list[str]) -> list[str]:
        """The statements that number workgroups through all dimensions, if one has more than a launch may."""
        if self._most_groups() <= MOST_GROUPS:
            return []
        notes.append("// groups")
        x, y, z = (self._text.claim(f"grid_{axis}") for axis in "xyz")
        members += [f"{name}: u32" for name in (x, y, z)]
        # The condition is the same for a whole workgroup, so barriers may follow.
        return [
            "  let number = (group.z * groups.y + group.y) * groups.x + group.x;",
            f"  if (number >= args.{x} * args.{y} * args.{z}) {{ return; }}",
            f"  let gx = number % args.{x};",
            f"  let gy = number / args.{x} % args.{y};",
            f"  let gz = number / (args.{x} * args.{y});",
        ]

    def _most_groups(self) -> int:
        """The most workgroups along one dimension that the grid may have."""
        sizes = [u.arg[1] for name, u in self._facts.specials.items() if name.startswith("gidx")]
        return max(map(upper, sizes), default=1)

    # statements

    def _statement(self, u: UOp) -> None:
        if is_alu(u):
            expression = self._arithmetic.alu(u)
            inside = self._text.stands_inside(u, expression)
            self._text.values[u] = expression if inside else self._terms.variable("alu", u.dtype, expression)
            return
        terms, text, values = self._terms, self._text, self._text.values
        match u.op:
            case UOps.PARAM | UOps.VAR | UOps.CONST | UOps.PREFETCH:
                pass
            case UOps.SPECIAL:
                self._work_item(u)
            case UOps.AFTER:
                values[u] = values[u.src[0]]
            case UOps.SCRATCH:
                self._memory.array(u)
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
                values[u] = terms.variable("val", u.dtype, self._memory.load(u))
            case UOps.STORE:
                self._memory.store(u)
            case UOps.BARRIER:
                text.line("workgroupBarrier();")
                text.line("storageBarrier();")
            case _:
                raise ValueError(f"WGSL: {u!r} has no form in a linear kernel")

    def _work_item(self, u: UOp) -> None:
        axis, dimension = u.arg[0][0], "xyz"[int(u.arg[0][-1])]
        name = self._text.values[u] = self._text.claim(u.arg[0])
        numbered = axis == "g" and self._most_groups() > MOST_GROUPS
        place = f"g{dimension}" if numbered else f"{_PLACES[axis]}.{dimension}"
        self._text.line(f"let {name}: i32 = i32({place});")

    def _loop(self, u: UOp) -> None:
        """A loop; its counter is an i32 also where the value has 64 bits, since no buffer is so large."""
        index, text = self._memory.index, self._text
        name = text.values[u] = text.claim(u.arg)
        start, end = index(u.src[0]), index(u.src[1])
        step = index(u.src[2]) if len(u.src) > 2 else "1i"
        counter = name if u.dtype.itemsize <= 4 else text.claim(f"{name}_low")
        text.open(f"for (var {counter}: i32 = {bare(start)}; {counter} < {end}; {counter} += {step})")
        if counter != name:
            text.line(f"let {name}: vec2<u32> = {self._conversion.cast(counter, dtypes.int32, u.dtype)};")
