"""From a kernel AST to a rendered program, in one straight line.

A kernel is lowered to loops; a list of actions is taken on it, first on its loops, then on the structured UOps that
they are emitted as; rewriting makes what the language can say, and the result is put in order and rendered. Which
actions is the heuristic's choice, the search's (:mod:`tg_codegen.search.beam`), or the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tg_dtype import DType, ImageDType
from tg_lazy import LazyOp
from tg_lazy.ast import BufferArg
from tg_shape import Variable

from .emit.kernel import emit
from .fallback import fallbacks
from .ir.errors import EmitError
from .ir.program import BufferParam, ProgramSpec
from .ir.shares import Shares, shares
from .ir.uop import UOp, UOps
from .linear.linearize import linearize
from .linear.scheduling import scheduled
from .machine.limits import LEAST_SCRATCH_BYTES, MAX_STACK_BYTES, MAX_UOPS, broken_limits, stack_bytes
from .machine.renderer import Renderer
from .machine.target import Target
from .nest.estimate import estimate
from .nest.kernel import Kernel
from .nest.launch_shape import launch_sizes
from .nest.lower import lower
from .nest.nest import Nest
from .nest.parts import stated
from .nest.spec import READS, NodeOp
from .plan.actions import Action, noting
from .plan.draft import Draft
from .plan.heuristic import heuristic
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
      InvalidAST: if the AST breaks a rule.
      ActionError: if an action does not fit the kernel.
      EmitError: if the actions do not fit together. Where they are the heuristic's, this or whatever else they lead to
        is told by :mod:`tg_codegen.fallback`, and the plain kernel stands in.
    """
    kernel = stated(lower(ast))
    if actions is not None:
        return render_kernel(kernel, renderer, actions, name)
    try:
        return planned(kernel, renderer, name)
    except Exception as error:  # whatever it is: a planner's defects are not the user's
        instead = render_kernel(kernel, renderer, (), name)  # where this fails, too, the kernel cannot be rendered
        return replace(instead, fallback=fallbacks.tell(kernel, error).error)


def planned(kernel: Kernel, renderer: Renderer, name: str | None = None) -> ProgramSpec:
    """Renders a kernel with the actions that the heuristic chooses.

    Partial last tiles and the parts that masks cut loops into are copies of the code, and multiply. A kernel that comes
    out far too long for a compiler is planned again with fewer copies by unrolled loops, which can be left out. Each
    copy has scratch of its own: where all of it is too much for a thread's stack, the arrays are planned smaller.

    Raises:
      EmitError: if the actions do not fit together, or the kernel is beyond the machine's limits.
    """
    target: Target | None = renderer.target
    draft, spec = begun(kernel, renderer), None
    while target is not None:
        with noting(draft.actions):
            heuristic(draft, target)
            if spec is None or spec.actions != tuple(map(str, draft.actions)):
                spec = rendered(draft, renderer, name)
        target, draft = with_less(spec, target), begun(kernel, renderer)
    assert spec is not None, "the heuristic is asked at least once"
    broken = broken_limits(spec, renderer)
    if broken:
        with noting(spec.actions):
            raise EmitError(f"kernel {spec.name} is beyond the machine's limits: {'; '.join(broken)}")
    return spec


def with_less(spec: ProgramSpec, target: Target) -> Target | None:
    """The target as a planner is to see it for a kernel that came out too large; None where it is not, or must be."""
    if len(spec.uops) > MAX_UOPS and target.copies > 1:
        return replace(target, copies=target.copies // 2)
    if stack_bytes(spec, target) > MAX_STACK_BYTES and target.scratch_bytes > LEAST_SCRATCH_BYTES:
        return replace(target, scratch_bytes=target.scratch_bytes // 2)
    return None


def render_kernel(
    kernel: Kernel, renderer: Renderer, actions: Sequence[Action] = (), name: str | None = None
) -> ProgramSpec:
    """Renders a kernel changed by ``actions``.

    Args:
      kernel: the kernel as it was stated.
      renderer: the language and machine.
      actions: what is done to it, in order: first what changes its loops, then what changes their structured form.
      name: the function's name; by default one that tells the loops.

    Raises:
      ActionError: if an action does not fit the kernel.
      EmitError: if the actions do not fit together.
    """
    draft = begun(kernel, renderer)
    with noting(actions):
        draft.take(actions)
        return rendered(draft, renderer, name)


def begun(kernel: Kernel, renderer: Renderer) -> Draft:
    """A kernel on which no action was taken yet.

    Raises:
      EmitError: if it reads or writes an image, and the language has none.
    """
    require_images(kernel.whole, renderer)
    return Draft(kernel, renderer.target, emit)


def rendered(draft: Draft, renderer: Renderer, name: str | None = None) -> ProgramSpec:
    """The program of a kernel on which all actions were taken.

    Raises:
      EmitError: if the actions do not fit together.
    """
    kernel = draft.kernel
    listed = scheduled(linearize(full_rewrite(draft.sink, renderer)), renderer.target)
    uops = with_every_param(listed, kernel.whole, renderer)
    name = name or kernel_name(kernel.outline)
    global_size, local_size = launch_sizes(kernel.parts[0], renderer.target)
    threads = renderer.target.threads if kernel.threaded else 1
    return ProgramSpec(
        name=name,
        src=renderer.render(name, uops),
        uops=uops,
        buffers=buffer_params(kernel.whole, shares(uops, threads) if renderer.target.awake else {}),
        vars=tuple(sorted(kernel_variables(uops), key=lambda v: v.name)),
        global_size=global_size,  # type: ignore[arg-type]
        local_size=local_size,  # type: ignore[arg-type]
        threads=threads,
        estimates=estimate(kernel.whole),
        actions=tuple(map(str, draft.actions)),
    )


def require_images(nest: Nest, renderer: Renderer) -> None:
    """Refuses images where a language has none.

    Raises:
      EmitError: if the kernel reads or writes one.
    """
    if not renderer.images and any(isinstance(buffer.dtype, ImageDType) for buffer in nest.buffers):
        raise EmitError(f"{renderer.name} has no images, which the kernel reads or writes")


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


def buffer_params(nest: Nest, touched: Mapping[int, Shares]) -> tuple[BufferParam, ...]:
    """The kernel's buffers, what it does with them, and what each thread touches of them."""
    written = {s.slot for s in nest.stores}
    read = {n.arg[0] for n in nest.nodes() if n.op in READS}
    read |= {s.slot for s in nest.stores if s.update is not None}
    return tuple(
        BufferParam(slot, b.dtype, b.size, slot in written, slot in read, touched.get(slot, ()))
        for slot, b in enumerate(nest.buffers) if not b.internal)


def kernel_variables(uops: Sequence[UOp]) -> list[Variable]:
    """The symbolic variables that the kernel takes."""
    return [u.arg for u in uops if u.op is UOps.VAR]
