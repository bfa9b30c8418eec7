"""Derivatives of functions; they can be differentiated in turn."""

from __future__ import annotations

from functools import wraps

from ..autograd.differentiation import MODE, Gradient, Switch, depends_on_a_wish
from ..autograd.recording import stand_in
from ..tensor import Tensor
from .tracing import name_of
from .tree import fill_tensors, map_tensors, tensors_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def opened_one(tensor: Tensor, what: str) -> Tensor:
    """An argument for the function that is differentiated: the gradient of the outside flows through it.

    Raises:
      TypeError: if its elements are not floats.
    """
    if tensor.dtype.kind != "float":
        raise TypeError(f"{what}: an argument of {tensor.dtype.name} has no derivative; only floats have")
    out: Tensor = stand_in(tensor, tensor.lazydata, always=True)
    out._part()
    if not MODE.recording:
        assert out._ctx is not None
        out._ctx.parents = (tensor.detach(),)
        out._ctx.wanted, out._ctx.needs = False, (False,)
    out._wants_grad = True
    return out


def outside(root: Tensor) -> Tensor:
    """A result, as others are to see it: it requires a gradient if something outside of the function does."""
    if root.dtype.kind != "float" or not MODE.recording:
        return root.detach()
    out: Tensor = stand_in(root, root.lazydata)
    out._part()
    if out._ctx is not None:
        out._ctx.wanted = depends_on_a_wish(root)
        out._ctx.needs = (out._ctx.wanted,)
        out._wants_grad = True if out._ctx.wanted else None
    return out


def gradients(root: Tensor, seed: Tensor | None, inside: Sequence[Tensor]) -> list[Tensor]:
    """The gradient at arguments; zeros at those on which nothing depends."""
    if root._wish is False or root.dtype.kind != "float":
        return [Tensor.zeros_like(tensor) for tensor in inside]
    found = root.gradient(*inside, gradient=seed, materialize_grads=True, create_graph=MODE.recording)
    wanted: bool | None = None
    for grad in found:
        if isinstance(grad._ctx, Gradient):
            if wanted is None:
                wanted = depends_on_a_wish(root) or (seed is not None and seed._wish is True)
            grad._ctx.wanted, grad._ctx.needs = wanted, (wanted,)
            grad._wants_grad = True if wanted else None
    return found


def called(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    with Switch(MODE, "recording", True):
        return function(*args, **kwargs)


def chosen(argnums: int | Sequence[int], args: Sequence[Any], what: str) -> list[int]:
    """Places of arguments.

    Raises:
      IndexError: if there is no such argument.
    """
    places = [argnums] if isinstance(argnums, int) else list(argnums)
    for place in places:
        if not -len(args) <= place < len(args):
            raise IndexError(f"{what}: argnums={argnums}, but the function was called with {len(args)} arguments")
    return [place % len(args) for place in places]


def opened_at(args: Sequence[Any], places: Sequence[int], what: str) -> tuple[list[Any], list[Tensor]]:
    """Arguments, the chosen ones as the function is to see them; and the tensors in these.

    Raises:
      TypeError: if there is no tensor in one, or one of other elements than floats.
    """
    for place in places:
        if not tensors_in(args[place]):
            raise TypeError(f"{what}: argument {place} holds no tensor, but a {type(args[place]).__name__}")
    opened = [map_tensors(arg, lambda t: opened_one(t, what)) if i in places else arg for i, arg in enumerate(args)]
    return opened, [leaf for place in places for leaf in tensors_in(opened[place])]


def _with_aux(result: Any, has_aux: bool, function: object, what: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(f"{what}: with has_aux=True {name_of(function)} is to return (result, aux)")
    return result


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that returns ``(value, gradients)`` of a function of tensors that returns one number.

    Arguments may be lists, tuples and dicts of tensors; what is returned is nested like them.

    Args:
      function: returns a tensor of one element; with ``has_aux`` a pair of that and anything.
      argnums: the place of the argument at which the gradient is taken, or several places.
      has_aux: whether the value that is returned is ``(value, aux)``.

    Raises:
      TypeError: when called, if the function returns something else, or an argument holds no tensors of floats.
      ValueError: when called, if the function returns more than one element.
      IndexError: when called, if there is no such argument.

    Example:
      >>> from tg_frontend import Tensor, value_and_grad
      >>> value, slope = value_and_grad(lambda x: (x ** 2).sum())(Tensor([1.0, 2.0]))
      >>> value.item(), slope.tolist()
      (5.0, [2.0, 4.0])
    """
    return _value_and_grad(function, argnums, has_aux, "value_and_grad")


def _value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, what: str
) -> Callable[..., tuple[Any, Any]]:
    @wraps(function, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        places = chosen(argnums, args, what)
        opened, inside = opened_at(args, places, what)
        value, aux = _with_aux(called(function, opened, kwargs), has_aux, function, what)
        if not isinstance(value, Tensor):
            raise TypeError(f"{what}: {name_of(function)} returned a {type(value).__name__}, not a tensor")
        if value.numel() != 1:
            raise ValueError(f"{what}: {name_of(function)} returned a tensor of shape {value.shape}, not one number")
        rest = iter(gradients(value, None, inside))
        grads = tuple(map_tensors(args[place], lambda _: next(rest)) for place in places)
        out: Any = outside(value)
        if has_aux:
            out = out, map_tensors(aux, outside)
        return out, grads[0] if isinstance(argnums, int) else grads

    return wrapper


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of a function of tensors that returns one number.

    Arguments may be lists, tuples and dicts of tensors; what is returned is nested like them.

    Args:
      function: returns a tensor of one element; with ``has_aux`` a pair of that and anything.
      argnums: the place of the argument at which the gradient is taken, or several places.
      has_aux: whether ``(gradient, aux)`` is returned.

    Raises:
      TypeError: when called, if the function returns something else, or an argument holds no tensors of floats.
      ValueError: when called, if the function returns more than one element.
      IndexError: when called, if there is no such argument.

    Example:
      >>> from tg_frontend import Tensor, grad
      >>> cube = lambda x: x ** 3
      >>> grad(cube)(Tensor(2.0)).item(), grad(grad(cube))(Tensor(2.0)).item()
      (12.0, 12.0)
    """
    both = _value_and_grad(function, argnums, has_aux, "grad")

    @wraps(function, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """What a function returns, and a function from weights of that to the gradients at its arguments.

    The weights are nested like what the function returns, the gradients, in a tuple, like the arguments. They can be
    asked for any number of times.

    Args:
      function: returns tensors; with ``has_aux`` a pair of these and anything.
      primals: its arguments: tensors of floats, in lists, tuples and dicts perhaps.
      has_aux: whether ``(results, gradients, aux)`` is returned.

    Raises:
      TypeError: if an argument or a result holds no tensors, or an argument has other elements than floats.
      ValueError: if the weights that are given later do not fit the results.

    Example:
      >>> from tg_frontend import Tensor, vjp
      >>> value, gradients = vjp(lambda x, y: x * y, Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
      >>> [grad.tolist() for grad in gradients(Tensor([1.0, 10.0]))]
      [[3.0, 40.0], [1.0, 20.0]]
    """
    opened, inside = opened_at(primals, range(len(primals)), "vjp")
    result, aux = _with_aux(called(function, opened, {}), has_aux, function, "vjp")
    roots = results(result, function, "vjp")

    def gradients(weights: Any) -> tuple[Any, ...]:
        given = tensors_in(weights)
        if [weight.shape for weight in given] != [root.shape for root in roots]:
            raise ValueError(
                f"vjp: weights of shapes {[weight.shape for weight in given]} "
                f"for results of shapes {[root.shape for root in roots]}"
            )
        return tuple(fill_tensors(primals, _weighted(roots, given, inside)))

    out = map_tensors(result, outside)
    return (out, gradients, map_tensors(aux, outside)) if has_aux else (out, gradients)


def results(result: Any, function: object, what: str) -> list[Tensor]:
    roots = tensors_in(result)
    if not roots:
        raise TypeError(f"{what}: {name_of(function)} returned a {type(result).__name__}, not a tensor")
    return roots


def _weighted(roots: Sequence[Tensor], weights: Sequence[Tensor], inside: Sequence[Tensor]) -> list[Tensor]:
    """The gradient at arguments of results with weights."""
    if len(roots) == 1:
        return gradients(roots[0], weights[0], inside)
    with Switch(MODE, "recording", True):
        parts = [
            (root * weight).sum() for root, weight in zip(roots, weights, strict=True) if root.dtype.kind == "float"
        ]
        whole = parts[0] if len(parts) == 1 else Tensor.stack(*parts).sum() if parts else Tensor(0.0).detach()
    return gradients(whole, None, inside)


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """What a function returns, and how fast that changes when its arguments move along ``tangents``.

    It is the gradient, along its weights, of :func:`vjp`: nothing is computed that does not go into the result.

    Args:
      function: returns tensors.
      primals: its arguments: tensors of floats, in lists, tuples and dicts perhaps.
      tangents: directions, nested like the arguments and of their shapes.

    Raises:
      TypeError: if an argument or a result holds no tensors, or an argument has other elements than floats.
      ValueError: if the directions do not fit the arguments.

    Example:
      >>> from tg_frontend import Tensor, jvp
      >>> value, speed = jvp(lambda x: x ** 2, (Tensor([1.0, 3.0]),), (Tensor([1.0, 0.5]),))
      >>> value.tolist(), speed.tolist()
      ([1.0, 9.0], [2.0, 3.0])
    """
    return moved_along(function, primals, tangents, "jvp")


def moved_along(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], what: str
) -> tuple[Any, Any]:
    """:func:`jvp`, of which errors say that they are of ``what``."""
    ways, starts = tensors_in(list(tangents)), tensors_in(list(primals))
    if [way.shape for way in ways] != [start.shape for start in starts]:
        raise ValueError(
            f"{what}: tangents of shapes {[way.shape for way in ways]} "
            f"for arguments of shapes {[start.shape for start in starts]}"
        )
    opened, inside = opened_at(primals, range(len(primals)), what)
    result = called(function, opened, {})
    roots = results(result, function, what)
    recording = MODE.recording
    with Switch(MODE, "recording", True):
        smooth = [root for root in roots if root.dtype.kind == "float"]
        weights = [Tensor.full_like(root, 0.0, requires_grad=None) for root in smooth]
        slopes = _weighted(smooth, weights, inside) if smooth else []
        parts = [(slope * way.cast(slope.dtype)).sum() for slope, way in zip(slopes, ways, strict=False)]
        along = parts[0] if len(parts) == 1 else Tensor.stack(*parts).sum() if parts else None
        speeds = iter([] if along is None else gradients(along, None, weights))
    if not recording:
        speeds = iter([speed.detach() for speed in speeds])
    moved = [next(speeds) if root.dtype.kind == "float" else Tensor.zeros_like(root) for root in roots]
    return map_tensors(result, outside), fill_tensors(result, moved)


def hvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The gradient of a function that returns one number, and the Hessian times a vector: :func:`jvp` of :func:`grad`.

    Args:
      function: returns a tensor of one element.
      primals: its arguments: tensors of floats, in lists, tuples and dicts perhaps.
      tangents: the vector, nested like the arguments and of their shapes.

    Returns:
      Two tuples, nested like the arguments.

    Raises:
      TypeError: if the function returns no tensor, or an argument holds no tensors of floats.
      ValueError: if the function returns more than one element, or the vector does not fit the arguments.

    Example:
      >>> from tg_frontend import Tensor, hvp
      >>> _, (product,) = hvp(lambda x: x.prod(), (Tensor([1.0, 2.0, 3.0]),), (Tensor([1.0, 0.0, 0.0]),))
      >>> product.tolist()
      [0.0, 3.0, 2.0]
    """
    slopes = _value_and_grad(function, tuple(range(len(primals))), False, "hvp")
    return moved_along(lambda *args: slopes(*args)[1], primals, tangents, "hvp")
