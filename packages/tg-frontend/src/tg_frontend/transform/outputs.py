"""Gradients of what was computed already, by the names of ``torch.autograd``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from warnings import warn

from tg_lazy import LazyBuffer

from ..array.gradients import backward_to, gradients_at
from ..autograd.differentiation import MODE, Switch, free_between
from ..autograd.functions import Function, Grads, Same
from ..keywords import offered
from ..tensor import Tensor
from .derivatives import outside
from .vectorization import vmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Tensors: TypeAlias = Tensor | Iterable[Tensor]
    Weights: TypeAlias = Tensor | Sequence[Tensor | None] | None

__all__ = ["backward", "grad"]


def _listed(tensors: Tensors, what: str) -> list[Tensor]:
    """One tensor, or several.

    Raises:
      TypeError: if it is something else.
      ValueError: if there is none.
    """
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors) if isinstance(tensors, Iterable) else None
    if found is None:
        raise TypeError(f"{what} is a tensor or a sequence of tensors, got a {type(tensors).__name__}")
    for place, one in enumerate(found):
        if not isinstance(one, Tensor):
            raise TypeError(f"{what}[{place}] is a tensor, got a {type(one).__name__}")
    if not found:
        raise ValueError(f"{what} has no tensor")
    return found


def _targets(inputs: Tensors, what: str) -> list[Tensor]:
    """At what gradients are wanted.

    Raises:
      RuntimeError: if one refuses a gradient, or has other elements than floats and complex numbers.
    """
    found = _listed(inputs, "inputs")
    for place, one in enumerate(found):
        if one._wish is False or one.dtype.kind not in ("float", "complex"):
            raise RuntimeError(
                f"{what}: inputs[{place}], of shape {one.shape} and {one.dtype.name}, requires no gradient"
            )
    return found


def _weighted(roots: Sequence[Tensor], weights: Weights, names: tuple[str, str], batched: bool) -> list[Tensor]:
    """The weights of outputs: 1 where there is none and the output is one real number."""
    of, what = names
    given = [weights] * len(roots) if weights is None else [weights] if isinstance(weights, Tensor) else list(weights)
    if len(given) != len(roots):
        raise ValueError(f"{len(roots)} tensors in {of}, and {len(given)} in {what}")
    found = []
    for place, (root, weight) in enumerate(zip(roots, given, strict=True)):
        if root.dtype.kind not in ("float", "complex") or root._wish is False:
            raise RuntimeError(
                f"autograd.{'grad' if of == 'outputs' else 'backward'}: {of}[{place}], of shape {root.shape} and "
                f"{root.dtype.name}, depends on nothing that requires a gradient"
            )
        if weight is None:
            if batched or root.is_complex() or (root.shape != () and root.numel() != 1):
                raise ValueError(
                    f"{of}[{place}], of shape {root.shape} and {root.dtype.name}, needs {what}: "
                    "without them it is one real number"
                )
            weight = Tensor.ones(*root.shape, dtype=root.dtype, device=root.device).detach()
        if not isinstance(weight, Tensor):
            raise TypeError(f"{what}[{place}] is a tensor or None, got a {type(weight).__name__}")
        if weight.shape[batched:] != root.shape or (batched and weight.ndim == 0) or weight.device != root.device:
            also = "(number, *shape) of " if batched else ""
            raise ValueError(
                f"{what}[{place}] has shape {weight.shape} on {weight.device}, "
                f"for {also}{of}[{place}] of shape {root.shape} on {root.device}"
            )
        if weight.is_complex() != root.is_complex():
            raise ValueError(f"{what}[{place}] is of {weight.dtype.name}, {of}[{place}] of {root.dtype.name}")
        found.append(weight.cast(root.dtype))
    return found


def _parts(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [part for one in tensors for part in one._floats()]


class _Weighted(Function):
    """The sum of tensors with weights. Its gradient is asked for, its value is not: it stands for none.

    The weights are no operands, so that a gradient reaches none of them; gradients of gradients do.

    Args:
      weights: of the elements of each operand.
    """

    __slots__ = ("_weights",)

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self._weights = weights

    def forward(self, *values: LazyBuffer) -> LazyBuffer:
        return LazyBuffer.const(0, values[0].dtype, (), values[0].device)

    def backward(self, grad: LazyBuffer) -> Grads:
        return tuple(weight.lazydata for weight in self._weights)

    def derive(self, grad: LazyBuffer, operands: Callable[[str, int], LazyBuffer]) -> Grads:
        kind: Any = type(grad)
        return tuple(kind(weight) for weight in self._weights)


def _one(roots: Sequence[Tensor], weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """One tensor and its weights, in the place of several of one node each."""
    if len(roots) == 1:
        return roots[0], weights[0]
    with Switch(MODE, "recording", True):
        weights = [weight._apply(Same()) for weight in weights]  # as they are now: later writes are none of them
        whole = roots[0]._apply(_Weighted(weights), *roots[1:])
    wanted = any(weight._wish is True for weight in weights)
    return whole, Tensor.ones(dtype=whole.dtype, device=whole.device, requires_grad=wanted or None)


def grad(
    outputs: Tensors, inputs: Tensors, grad_outputs: Weights = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of outputs at inputs, summed over the outputs. It leaves ``grad`` of all tensors as it is.

    Inputs may leave it open whether they require a gradient, and may be intermediate results. That of a complex tensor
    is dL/dRe + i dL/dIm, as PyTorch's.

    Args:
      outputs: a tensor or several, computed from the inputs.
      inputs: a tensor or several.
      grad_outputs: weights of the outputs, of their shapes; None for 1, where an output is one real number.
      retain_graph: whether what was computed between inputs and outputs can be differentiated once more; if not given,
        it can with ``create_graph``.
      create_graph: whether the gradients can be differentiated.
      only_inputs: of older programs; always True.
      allow_unused: whether None is returned for inputs on which no output depends; if not given, it is an error, but
        with ``materialize_grads``.
      is_grads_batched: weights have shape (number, \\*output.shape), gradients (number, \\*input.shape): all at once.
      materialize_grads: whether zeros are returned for inputs on which no output depends.

    Returns:
      A gradient for each input, of its shape; None where there is none (see ``allow_unused``).

    Raises:
      RuntimeError: if an input or an output does not require a gradient, no output depends on an input (see
        ``allow_unused``), or the graph was freed.
      ValueError: if weights are missing or do not fit, or ``allow_unused=False`` with ``materialize_grads``.
      TypeError: if something is no tensor.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.outputs import grad
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> (slope,) = grad((x ** 3).sum(), x, create_graph=True)
      >>> slope.tolist(), grad(slope.square().sum(), x)[0].tolist()
      ([3.0, 12.0], [36.0, 288.0])
    """
    if not only_inputs:
        warn("autograd.grad: only_inputs=False has no effect: grad() never adds to grad", FutureWarning, stacklevel=3)
    if materialize_grads and allow_unused is False:
        raise ValueError("allow_unused=False with materialize_grads=True, which gives zeros for what is unused")
    targets = _targets(inputs, "autograd.grad")
    roots = _listed(outputs, "outputs")
    weights = _parts(_weighted(roots, grad_outputs, ("outputs", "grad_outputs"), is_grads_batched))
    nodes, roots = _parts(targets), _parts(roots)
    found = (_batched if is_grads_batched else _at)(roots, weights, nodes, create_graph)
    for place, target in enumerate(targets):
        if not (allow_unused or materialize_grads) and not any(id(part) in found for part in target._floats()):
            raise RuntimeError(
                f"autograd.grad: no output depends on inputs[{place}], of shape {target.shape}; "
                "allow_unused=True gives None there, materialize_grads=True zeros"
            )
    if not (create_graph if retain_graph is None else retain_graph):
        for root in roots:
            free_between(root, nodes)
    more = weights[0].shape[:1] if is_grads_batched else ()
    out: list[Any] = []
    for target in targets:
        parts = [found.get(id(part)) for part in target._floats()]
        if not materialize_grads and all(part is None for part in parts):
            out.append(None)
            continue
        zeros = Tensor.zeros(*more, *target.shape, dtype=target._floats()[0].dtype, device=target.device).detach()
        out.append(target._of_floats([zeros if part is None else part for part in parts]))
    return tuple(out)


def _at(
    roots: Sequence[Tensor], weights: Sequence[Tensor], nodes: Sequence[Tensor], create_graph: bool
) -> dict[int, Tensor]:
    whole, seed = _one(roots, weights)
    with Switch(MODE, "recording", create_graph):
        return gradients_at(whole, seed, nodes, create_graph)


def _batched(
    roots: Sequence[Tensor], weights: Sequence[Tensor], nodes: Sequence[Tensor], create_graph: bool
) -> dict[int, Tensor]:
    """Gradients for many weights, by the ids of nodes."""
    reached: list[int] = []

    def once(*each: Tensor) -> tuple[Tensor, ...]:
        found = _at(roots, each, nodes, True)
        reached[:] = found
        return tuple(found.values())

    rows = vmap(once)(*weights)
    with Switch(MODE, "recording", create_graph):
        return {number: outside(row) for number, row in zip(reached, rows, strict=True)}


def backward(
    tensors: Tensors, grad_tensors: Weights = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:  # fmt: skip
    """Adds to ``grad`` of leaves the gradients of tensors, summed over these: ``Tensor.backward`` of several.

    Args:
      tensors: a tensor or several.
      grad_tensors: their weights, of their shapes; None for 1, where a tensor is one real number.
      retain_graph: whether the graph stays; if not given, it does with ``create_graph``.
      create_graph: whether the gradients can be differentiated.
      inputs: the tensors whose ``grad`` is added to; every leaf that requires a gradient if None.

    Raises:
      RuntimeError: if none of them depends on what requires a gradient, one of them or an input refuses that, or the
        graph was freed.
      ValueError: if weights are missing or do not fit, or there are no inputs in a sequence of them.
      TypeError: if something is no tensor.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.outputs import backward
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> backward([x.sum(), x.square()], [None, Tensor([1.0, 10.0])])
      >>> x.grad
      Tensor([ 3., 41.])
    """
    targets = None if inputs is None else _targets(inputs, "autograd.backward")
    roots = _listed(tensors, "tensors")
    weights = _parts(_weighted(roots, grad_tensors, ("tensors", "grad_tensors"), False))
    roots = _parts(roots)
    if targets is None:
        whole, seed = _one(roots, weights)
        whole.backward(seed, retain_graph, create_graph)
        return
    nodes = list({id(node): node for node in _parts(targets)}.values())
    whole, seed = _one(roots, weights)
    backward_to(whole, seed, nodes, create_graph)
    if not (create_graph if retain_graph is None else retain_graph):
        for root in roots:
            free_between(root, nodes)


offered(globals(), __all__, "autograd", dict.fromkeys(__all__, "any"))
