"""Gradients of a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from warnings import warn_explicit
from weakref import ref

from tg_lazy import LazyBuffer
from tg_lazy.graph.origin import caller

from ..autograd.differentiation import (
    MODE,
    Expansion,
    Gradient,
    Mode,
    Switch,
    differentiate,
    differentiate_again,
    everything,
    free,
    free_between,
    operands_first,
)
from ..autograd.functions import UNRECORDED, Add, Cast, Same
from ..autograd.hooks import Handle, Registered, accumulated, hooks_of
from ..memory.home import Lineage
from .base import B
from .writing import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def no_grad(cls: type[object]) -> Switch:
    """A ``with`` block (or decorator) in which nothing is recorded for gradients, in this thread.

    Example:
      >>> from tg_frontend import Tensor
      >>> w = Tensor([1.0], requires_grad=True)
      >>> with Tensor.no_grad():
      ...     (w * 2).requires_grad
      False
    """
    return Switch(MODE, "recording", False)


def enable_grad(cls: type[object]) -> Switch:
    """A ``with`` block (or decorator) in which gradients are recorded again, inside of :meth:`no_grad`.

    Example:
      >>> from tg_frontend import Tensor
      >>> w = Tensor([1.0], requires_grad=True)
      >>> with Tensor.no_grad(), Tensor.enable_grad():
      ...     (w * 2).requires_grad
      True
    """
    return Switch(MODE, "recording", True)


def set_grad_enabled(cls: type[object], mode: bool) -> Switch:
    """:meth:`enable_grad` or :meth:`no_grad`, by ``mode``.

    Raises:
      TypeError: if ``mode`` is no bool.

    Example:
      >>> from tg_frontend import Tensor
      >>> w = Tensor([1.0], requires_grad=True)
      >>> with Tensor.set_grad_enabled(False):
      ...     (w * 2).requires_grad
      False
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_grad_enabled: True or False is wanted, got {mode!r}")
    return Switch(MODE, "recording", mode)


def register_hook(x: B, function: Callable[[B], B | None]) -> Handle:
    """Calls ``function`` with the gradient of this tensor, whenever one is computed and all of it is known.

    If it returns a tensor, that takes the gradient's place: for what is before this tensor, and for ``grad``. It must
    not write to its argument.

    Returns:
      A handle, whose ``remove()`` ends that.

    Raises:
      RuntimeError: if this tensor refuses a gradient.
      TypeError: if the function cannot be called.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> handle = x.register_hook(lambda grad: grad * 10)
      >>> _ = x.square().sum().backward()
      >>> x.grad
      Tensor([20., 40.])
      >>> handle.remove()
    """
    if not callable(function):
        raise TypeError(f"register_hook: a function of the gradient is wanted, got {function!r}")
    if x._wish is False:
        raise RuntimeError(f"register_hook: a tensor of shape {x.shape} that refuses a gradient never gets one")
    return Handle(hooks_of(x).functions, function)


def register_post_accumulate_grad_hook(x: B, function: Callable[[B], None]) -> Handle:
    """Calls ``function`` with this tensor, a leaf, whenever :meth:`backward` has added to its ``grad``.

    There an optimiser may step, and the gradient may go, before those of other tensors are known.

    Returns:
      A handle, whose ``remove()`` ends that.

    Raises:
      RuntimeError: if this tensor is no leaf, or refuses a gradient.
      TypeError: if the function cannot be called.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
      >>> _ = x.square().sum().backward()
      Tensor([2., 4.])
      >>> handle.remove()
    """
    what = "register_post_accumulate_grad_hook"
    if not callable(function):
        raise TypeError(f"{what}: a function of the tensor is wanted, got {function!r}")
    if x._wish is False or not x.is_leaf:
        raise RuntimeError(f"{what}: a leaf that may get a gradient is wanted; this tensor of shape {x.shape} is none")
    return Handle(hooks_of(x).after, function)


def retain_grad(x: B) -> B:
    """Lets ``backward`` leave the gradient of this tensor in ``grad``, though it is no leaf. Returns it.

    Raises:
      RuntimeError: if this tensor refuses a gradient.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> y = (x * 3).retain_grad()
      >>> _ = y.square().sum().backward()
      >>> y.grad
      Tensor([ 6., 12.])
    """
    if x._wish is False:
        raise RuntimeError(f"retain_grad: a tensor of shape {x.shape} that refuses a gradient never gets one")
    hooks_of(x).kept[0] = True
    return x


def train(cls: type[object], mode: bool = True) -> Switch:
    """A ``with`` block (or decorator) in which :attr:`training` is ``mode``: dropout drops, BatchNorm learns.

    Example:
      >>> from tg_frontend import Tensor
      >>> with Tensor.train():
      ...     Tensor.training
      True
      >>> Tensor.training
      False
    """
    Mode.told = True
    return Switch(cls, "training", mode)


def in_training(x: B, what: str) -> bool:
    """Whether layers behave as in training; it warns where nobody ever said so and a gradient is wanted.

    Args:
      x: a tensor that requires a gradient where somebody trains.
      what: the layer that asks, as messages call it.
    """
    training: bool = type(x).training
    if not (training or Mode.told) and MODE.recording and x._wish:
        Mode.told = True
        warn_explicit(
            f"{what} behaves as in inference, which is the default, though a gradient is wanted: "
            "call model.train(), or train inside `with Tensor.train():`; model.eval() says that it is meant",
            UserWarning, *caller(),
        )  # fmt: skip
    return training


def requires_grad_(x: B, requires_grad: bool = True) -> B:
    """Says whether ``backward`` is to give this tensor a ``grad``. Returns it.

    Raises:
      TypeError: if the elements are not floats.
      RuntimeError: when set to False, of what was computed from tensors that require a gradient.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([2.0]).requires_grad_()
      >>> _ = (x * x).backward()
      >>> x.grad
      Tensor([4.])
    """
    x._wish = requires_grad
    return x


def detach(x: B) -> B:
    """The same elements, cut off from the graph: no gradient flows through. They share their memory.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([2.0], requires_grad=True)
      >>> _ = (x * x.detach()).backward()
      >>> x.grad
      Tensor([2.])
    """
    out = x._wrap(x.lazydata)
    out._home, out._place, out._cut = x._memory(), x._place, Lineage(ref(out))
    return out


def _seed(x: B, gradient: B | None, what: str) -> B:
    _ = x.lazydata  # and with it the graph of the newest version
    if x._wish is False:
        raise RuntimeError(
            f"{what}: this tensor of shape {x.shape} depends on nothing that requires a gradient; "
            "set requires_grad=True on the leaves before computing, outside of Tensor.no_grad()"
        )
    if gradient is None:
        if x.shape != () and x.numel() != 1:
            raise ValueError(f"{what}: a tensor of shape {x.shape} needs a gradient argument of that shape")
        return x._wrap(x.lazydata.const(1, x.dtype, x.shape, x.device))
    if gradient.shape != x.shape or gradient.device != x.device:
        raise ValueError(
            f"{what}: the gradient has shape {gradient.shape} on {gradient.device}, "
            f"the tensor {x.shape} on {x.device}"
        )
    return gradient if gradient.dtype is x.dtype else gradient._apply(Cast(x.dtype))


def add_to_grads(found: Sequence[tuple[Any, Any]]) -> None:
    """What :meth:`backward` does with the gradients of leaves; nothing with that of one that refuses it by now.

    Args:
      found: leaves, each with its gradient: a tensor that may be differentiated takes the place of ``grad``, with that
        added to it; a node, or rows of one, is added to the memory of ``grad``.
    """
    left = {id(leaf) for leaf, _ in found}
    for leaf, grad in found:
        left.discard(id(leaf))
        if leaf._wants_grad is False:  # it did not when it was used
            continue
        if MODE.reached is not None:
            MODE.reached(leaf)
        if isinstance(grad, type(leaf)):
            leaf.grad = grad if leaf.grad is None else leaf.grad._apply(Add(), grad)
        elif leaf.grad is None:
            leaf.grad = leaf._value(grad)
        else:
            accumulate(leaf.grad, grad)
        accumulated(leaf, left)


def backward_to(whole: B, seed: B, targets: Sequence[B], create_graph: bool) -> None:
    """Adds the gradient of a tensor to ``grad`` of others, leaves or not.

    Args:
      whole: what is differentiated.
      seed: weight of each element.
      targets: the tensors, of one node each.
      create_graph: whether the gradients can be differentiated.
    """
    found: Any
    if create_graph:
        found = differentiate_again(whole, seed, targets, fill=True)
    else:
        found = differentiate(whole, seed.lazydata, targets, operands_first(whole, True), fill=True, rows=True)
    add_to_grads([(node, value) for node, value in found if not node.retains_grad])  # or it has it already


def backward(
    x: B, gradient: B | None = None, retain_graph: bool | None = None, create_graph: bool = False,
    inputs: B | Sequence[B] | None = None,
) -> B:
    """Adds to ``grad`` of every leaf that requires one the gradient of this tensor. Returns this tensor.

    A ``grad`` that is there is added to in place, as PyTorch does: who holds it sees the sum.

    Where no tensor says that it requires a gradient, the parameters of layers get one. The graph is freed, so that
    intermediate results may go, unless ``retain_graph``. With ``create_graph`` each ``grad`` can be differentiated in
    turn; then one that is there is not added to in place, but replaced by the sum.

    Args:
      gradient: weight of each element, of this tensor's shape; 1 if this is a single element.
      retain_graph: whether the graph stays; if not given, it does with ``create_graph``.
      create_graph: whether it is recorded how the gradients are computed.
      inputs: the tensors whose ``grad`` is added to, leaves or not, in place of every leaf that requires a gradient.

    Raises:
      RuntimeError: if nothing requires a gradient, or the graph was freed already; if an input refuses a gradient.
      ValueError: if ``gradient`` is missing or has another shape, or ``inputs`` is empty.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0, 2.0], requires_grad=True)
      >>> _ = (x * x).sum().backward()
      >>> x.grad.tolist()
      [2.0, 4.0]
      >>> y = Tensor(3.0, requires_grad=True)
      >>> _ = (y ** 3).backward(create_graph=True)
      >>> y.grad.item(), y.grad.gradient(y)[0].item()
      (27.0, 18.0)
    """
    if inputs is not None:
        return _backward_at(x, _seed(x, gradient, "backward"), inputs, retain_graph, create_graph)
    # parameters of layers want a gradient, unless they were told otherwise
    whole, leaves = everything(x)
    order = whole
    learnt = [leaf for leaf in leaves if leaf._wish is None and leaf._parameter]
    targets: list[B] | None = None
    if learnt or any(node._ctx is UNRECORDED for node in order):
        targets = [*learnt, *(leaf for leaf in leaves if leaf._wish is True)]  # type: ignore[list-item]
    elif x._wish is None:
        raise RuntimeError(
            f"backward: this tensor of shape {x.shape} depends on nothing that requires a gradient; "
            "set requires_grad=True on the leaves before computing, outside of Tensor.no_grad(). Without that, "
            "realize() and a backward() before this one make a result a leaf"
        )
    else:
        order = [node for node in order if node._ctx is not None and node._ctx.wanted]
    seed = _seed(x, gradient, "backward")
    if create_graph:
        add_to_grads(differentiate_again(x, seed, targets, fill=True))
        if retain_graph is False:
            free([node for node in whole if node._ctx is not None and node._ctx.wanted], whole)
        return x
    add_to_grads(differentiate(x, seed.lazydata, targets, order, fill=True, rows=True))
    if not retain_graph:
        free([node for node in order if node._ctx is not None and node._ctx.wanted], whole)
        x._let_go()
    return x


def _backward_at(x: B, seed: B, inputs: Any, retain_graph: bool | None, create_graph: bool) -> B:
    """:meth:`backward` to some tensors alone."""
    targets = list(inputs) if isinstance(inputs, Iterable) and not hasattr(inputs, "_floats") else [inputs]
    if not targets:
        raise ValueError("backward: inputs is empty; leave it out for every leaf")
    for place, one in enumerate(targets):
        if one._wish is False or one.dtype.kind not in ("float", "complex"):
            raise RuntimeError(f"backward: inputs[{place}], of shape {one.shape} and {one.dtype.name}, has no gradient")
    nodes = list({id(part): part for one in targets for part in one._floats()}.values())
    backward_to(x, seed, nodes, create_graph)
    if not (create_graph if retain_graph is None else retain_graph):
        free_between(x, nodes)
    return x


def gradient(
    x: B,
    *targets: B,
    gradient: B | None = None,
    materialize_grads: bool = False,
    create_graph: bool = True,
) -> list[B]:
    """The gradient of this tensor at ``targets``, which may be intermediate results. Frees and changes nothing.

    What is returned can be differentiated in turn, to any order; that costs nothing until somebody does. It keeps the
    graph of this tensor, unless ``create_graph`` is False, :meth:`detach` cuts it off, or it is realised and nothing
    requires a gradient.

    Targets need not require a gradient; they must not refuse one (``requires_grad=False``). From a tensor that
    leaves it open and is realised, or is read and comes from no parameter of a layer, no gradient flows to what it was
    computed from.

    Args:
      gradient: weight of each element, of this tensor's shape; 1 if this is a single element.
      materialize_grads: at a target on which this tensor does not depend the gradient is zeros, not an error.
      create_graph: whether the gradients can be differentiated.

    Raises:
      RuntimeError: if a target refuses a gradient, or this tensor does not depend on it (see ``materialize_grads``).
      ValueError: if ``gradient`` is missing or has another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor(3.0)
      >>> y = x * x
      >>> [g.item() for g in (y * y).gradient(x, y)]
      [108.0, 18.0]
      >>> (x ** 3).gradient(x)[0].gradient(x)[0].item()
      18.0
    """
    seed = _seed(x, gradient, "gradient")
    for position, target in enumerate(targets):
        if target._wish is False or target.dtype.kind not in ("float", "complex"):
            raise RuntimeError(
                f"gradient: target {position}, of shape {target.shape} and {target.dtype.name}, has no gradient"
            )
    nodes = [part for target in targets for part in target._floats()]
    found = gradients_at(x, seed, nodes, create_graph)
    for position, target in enumerate(targets):
        if not materialize_grads and not any(id(part) in found for part in target._floats()):
            raise RuntimeError(
                f"gradient: nothing depends on target {position}, of shape {target.shape}; "
                "with materialize_grads=True its gradient is zeros"
            )
    for node in nodes:
        if id(node) not in found:
            found[id(node)] = x._value(LazyBuffer.const(0, node.dtype, node.shape, node.device))
    return [target._of_floats([found[id(part)] for part in target._floats()]) for target in targets]


def gradients_at(x: B, seed: B, nodes: Sequence[B], create_graph: bool) -> dict[int, B]:
    """The gradient of a tensor at tensors of one node each, by their ids; those that none reaches are missing.

    Args:
      x: what is differentiated.
      seed: weight of each element, of its shape and dtype.
      nodes: at what.
      create_graph: whether the gradients can be differentiated, if gradients are recorded here.
    """
    if not (create_graph and MODE.recording):
        return _values(x, differentiate(x, seed.lazydata, nodes, operands_first(x, True), rows=True))
    seed = seed._apply(Same())  # as it is now: later writes are none of it
    order = operands_first(x, True)
    how = Expansion(x, seed, nodes)
    hooked = Registered.any and any(getattr(node, "_hooks", None) is not None for node in (*order, *nodes))
    if hooked or any(node._ctx is not None and node._ctx.asks for node in order):
        reached = how.recorded()  # now, so that functions of a person's own are called once
        found = _values(x, [(node, reached[id(node)].lazydata) for node in nodes if id(node) in reached])
    else:
        found = _values(x, differentiate(x, seed.lazydata, nodes, order, rows=True))
    for node in nodes:
        if id(node) in found:
            grad = found[id(node)]
            grad._ctx = Gradient(how, node)
            grad._wants_grad = True if grad._ctx.wanted else None
    return found


def _values(x: B, found: Sequence[tuple[Any, Any]]) -> dict[int, B]:
    """Tensors of gradients, by the ids of what they are at."""
    return {id(node): x._value(grad) for node, grad in found}
