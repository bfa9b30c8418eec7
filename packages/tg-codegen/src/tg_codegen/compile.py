"""From a kernel AST to a rendered program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tg_dtype import AddrSpace, DType, ImageDType
from tg_lazy import LazyOp
from tg_lazy.ast import BufferArg
from tg_shape import Variable

from .emit.emitter import emit
from .emit.row_emitter import RowEmitter
from .fallback import fallbacks
from .ir.errors import EmitError
from .ir.program import BufferParam, ProgramSpec
from .ir.uop import UOp, UOps
from .linear.linearize import linearize
from .machine.limits import LEAST_SCRATCH_BYTES, MAX_STACK_BYTES, MAX_UOPS, broken_limits, scratch_bytes
from .machine.renderer import Renderer
from .machine.target import Target
from .nest.estimate import estimate
from .nest.launch_shape import groups, items
from .nest.lower import lower
from .nest.nest import Kind, Nest, NodeOp
from .nest.row_nest import RowNest
from .plan.actions import Action, ActionError, apply, noting
from .plan.heuristic import heuristic
from .plan.reuse_row_values import keep_rows
from .plan.row_blocks import fetching_ahead, split_rows, with_parts
from .plan.split_concat import split_pieces
from .plan.texels import spread_texels, whole_texels, writes_images
from .rewrite.pipelining import overlap
from .rewrite.rules import full_rewrite
from .rewrite.rules.legalize import unread


def compile_ast(
    ast: LazyOp, renderer: Renderer, *, actions: Sequence[Action] | None = None, name: str | None = None
) -> ProgramSpec:
    """Renders a kernel.

    Args:
      ast: a SINK of :mod:`tg_lazy.ast`.
      renderer: the language and machine.
      actions: optimisations to apply; None asks the heuristic, an empty sequence applies none.
      name: the function's name; by default one that tells the loops.

    Raises:
      InvalidAST: the AST breaks a rule.
      ActionError: an action does not fit the kernel.
      EmitError: the actions do not fit together. Where they are the heuristic's, this or whatever else they lead to is
        told by :mod:`tg_codegen.fallback`, and the plain kernel stands in.
    """
    nest = lower(ast)
    if actions is not None:
        return plain(nest, renderer, actions, name)
    try:
        spec = planned(nest, renderer, name)
        broken = broken_limits(spec, renderer)
        if not broken:
            return spec
        with noting(spec.actions):
            raise EmitError(f"kernel {spec.name} is beyond the machine's limits: {'; '.join(broken)}")
    except Exception as error:  # whatever it is: a planner's defects are not the user's
        instead = plain(nest, renderer, (), name)  # where this fails, too, the kernel itself cannot be rendered
        return replace(instead, fallback=fallbacks.tell(nest, error).error)


def planned(nest: Nest, renderer: Renderer, name: str | None = None) -> ProgramSpec:
    """Renders a kernel with the loops that the heuristic chooses.

    Partial last tiles and the parts that masks cut loops into are copies of the code, and multiply. A kernel that comes
    out far too long for a compiler is planned again with fewer copies by unrolled loops, which can be left out. Each
    copy has scratch of its own: where all of it is too much for a thread's stack, the arrays are planned smaller.
    """
    nest = keep_rows(nest, renderer.target)
    if has_images(nest, renderer):
        nest = whole_texels(nest)
        if writes_images(nest):
            return render_nest(apply(nest, spread_texels(nest)), renderer, name)
    target = renderer.target
    loops = with_loops(nest, target)
    spec = render_loops(loops, renderer, name)
    while (smaller := with_less(spec, target)) is not None:
        target, less = smaller, with_loops(nest, smaller)
        if less.log != loops.log:
            loops, spec = less, render_loops(less, renderer, name)
    return spec


def with_less(spec: ProgramSpec, target: Target) -> Target | None:
    """The target as a planner is to see it for a kernel that came out too large; None where it is not, or must be."""
    if len(spec.uops) > MAX_UOPS and target.copies > 1:
        return replace(target, copies=target.copies // 2)
    stack = scratch_bytes(spec, AddrSpace.REG) if target.kind == "cpu" else 0
    if stack > MAX_STACK_BYTES and target.scratch_bytes > LEAST_SCRATCH_BYTES:
        return replace(target, scratch_bytes=target.scratch_bytes // 2)
    return None


def with_loops(nest: Nest, target: Target) -> Nest | RowNest:
    """A kernel, or its parts, with the loops that the heuristic chooses."""
    if any(buffer.internal for buffer in nest.buffers):
        return planned_parts(split_rows(nest, target), target)
    pieces = split_pieces(nest, target)
    if pieces is not None:
        return planned_parts(pieces, target)
    actions = heuristic(nest, target)
    with noting(actions):
        return apply(nest, actions)


def render_loops(loops: Nest | RowNest, renderer: Renderer, name: str | None) -> ProgramSpec:
    """Renders a kernel whose loops are decided, in parts or not."""
    with noting(loops.log):
        return render_parts(loops, renderer, name) if isinstance(loops, RowNest) else render_nest(loops, renderer, name)


def plain(nest: Nest, renderer: Renderer, actions: Sequence[Action] = (), name: str | None = None) -> ProgramSpec:
    """Renders a kernel with the loops that it was stated with, changed by ``actions`` alone."""
    if has_images(nest, renderer):
        nest = whole_texels(nest)
        actions = [action for action in actions if str(action) not in nest.log]
    if any(buffer.internal for buffer in nest.buffers):
        return plain_rows(nest, renderer, actions, name)
    return render_nest(apply(nest, list(actions)), renderer, name)


def has_images(nest: Nest, renderer: Renderer) -> bool:
    """Whether a kernel reads or writes images.

    Raises:
      EmitError: it does, and the language has none.
    """
    found = any(isinstance(buffer.dtype, ImageDType) for buffer in nest.buffers)
    if found and not renderer.images:
        raise EmitError(f"{renderer.name} has no images, which the kernel reads or writes")
    return found


def plain_rows(nest: Nest, renderer: Renderer, actions: Sequence[Action], name: str | None = None) -> ProgramSpec:
    """Renders a kernel with internal buffers, each part with the loops that it was stated with.

    Raises:
      ActionError: actions are given: they do not say which part they are for.
      EmitError: the internal buffers share no rows.
    """
    if actions:
        raise ActionError("the parts of a kernel with internal buffers take no actions from outside")
    return render_parts(split_rows(nest, renderer.target), renderer, name)


def planned_parts(rows: RowNest, target: Target) -> RowNest:
    """The kernel with loops chosen for each part; where nothing is around the parts, each is divided among threads."""
    alone = replace(target, threads=1) if rows.shared else target
    parts, last = ([apply(part, heuristic(part, alone)) for part in some] for some in (rows.parts, rows.last))
    rows = with_parts(rows, parts, last)
    return fetching_ahead(rows, target) if rows.scratch else rows


def render_parts(rows: RowNest, renderer: Renderer, name: str | None = None) -> ProgramSpec:
    """Renders a kernel in parts whose loops are decided."""
    emitter = RowEmitter(rows, renderer.target)
    divided = emitter.threaded() is not None or any(a.kind is Kind.THREAD for part in rows.parts for a in part.axes)
    threads = renderer.target.threads if divided else 1
    return _rendered(emitter.kernel(), replace(rows.whole, log=rows.log), renderer, name, threads)


def render_nest(nest: Nest, renderer: Renderer, name: str | None = None) -> ProgramSpec:
    """Renders a kernel whose loops are decided."""
    threads = renderer.target.threads if any(a.kind is Kind.THREAD for a in nest.axes) else 1
    return _rendered(emit(nest, renderer.target), nest, renderer, name, threads)


def _rendered(sink: UOp, nest: Nest, renderer: Renderer, name: str | None, threads: int) -> ProgramSpec:
    name = name or kernel_name(nest)
    if renderer.target.kind == "cpu":
        sink = overlap(sink)
    uops = with_every_param(linearize(full_rewrite(sink, renderer)), nest, renderer)
    return ProgramSpec(
        name=name,
        src=renderer.render(name, uops),
        uops=uops,
        buffers=buffer_params(nest),
        vars=tuple(sorted(kernel_variables(uops), key=lambda v: v.name)),
        global_size=groups(nest, renderer.target.global_max).full_sizes(),
        local_size=items(nest).full_sizes(),  # type: ignore[arg-type]
        threads=threads,
        estimates=estimate(nest),
        actions=nest.log,
    )


def with_every_param(uops: list[UOp], nest: Nest, renderer: Renderer) -> tuple[UOp, ...]:
    """The list with a PARAM for each slot, also where simplification left none: the caller passes every buffer."""
    arguments = enumerate(b for b in nest.buffers if not b.internal)
    params = (UOp(UOps.PARAM, _argument(b, renderer), (), slot) for slot, b in arguments)
    present = {u.arg: u for u in uops if u.op is UOps.PARAM}
    return (*(present.get(u.arg, u) for u in params), *(u for u in uops if u.op is not UOps.PARAM))


def _argument(buffer: BufferArg, renderer: Renderer) -> DType:
    """The pointer under which a buffer is passed, if nothing in the kernel says it."""
    image = isinstance(buffer.dtype, ImageDType)
    return (buffer.dtype if image else unread(buffer.dtype, renderer)).ptr(buffer.size)


def kernel_name(nest: Nest) -> str:
    """A name that tells the loops: ``r`` for reductions, ``e`` otherwise, then the extents."""
    letter = "r" if any(n.op is NodeOp.REDUCE for n in nest.nodes()) else "e"
    extents = [a.extent if isinstance(a.extent, int) else "_".join(sorted(v.name for v in a.extent.variables()))
               for a in nest.axes]
    return "_".join([letter, *map(str, extents)])


def buffer_params(nest: Nest) -> tuple[BufferParam, ...]:
    """The kernel's buffers and what it does with them."""
    written = {s.slot for s in nest.stores}
    read = {n.arg[0] for n in nest.nodes() if n.op in (NodeOp.LOAD, NodeOp.GATHER)}
    return tuple(
        BufferParam(slot, b.dtype, b.size, slot in written, slot in read)
        for slot, b in enumerate(nest.buffers) if not b.internal)


def kernel_variables(uops: Sequence[UOp]) -> list[Variable]:
    """The symbolic variables that the kernel takes."""
    return [u.arg for u in uops if u.op is UOps.VAR]
