"""Derivatives of functions at given arguments, by the names of ``torch.autograd.functional``."""

from __future__ import annotations

from ..array.gradients import gradients_at
from ..autograd.differentiation import MODE, Switch
from ..keywords import offered
from ..tensor import Tensor
from . import derivatives, jacobians
from .derivatives import moved_along
from .tracing import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Tensors: TypeAlias = Tensor | tuple[Tensor, ...]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(value: Any, what: str) -> tuple[Tensor, ...]:
    """One tensor of floats or complex numbers, or a tuple of such.

    Raises:
      TypeError: if it is something else.
    """
    found = value if isinstance(value, tuple) else (value,)
    for one in found:
        if not isinstance(one, Tensor):
            raise TypeError(f"{what} a tensor or a tuple of tensors, got {_said(value, one)}")
        if one.dtype.kind not in ("float", "complex"):
            raise TypeError(f"{what} of floats or complex numbers, got {one.dtype.name}")
    if not found:
        raise TypeError(f"{what} a tensor or a tuple of tensors, got an empty tuple")
    return found


def _said(value: object, one: object) -> str:
    return f"a {type(one).__name__}" if value is one else f"a tuple with a {type(one).__name__}"


def _like(single: bool, found: Any) -> Any:
    return found[0] if single else tuple(found)


def _seen(func: Callable[..., Any], strict: bool, number: bool = False) -> Callable[..., Any]:
    """The function, with a look at what it returns.

    Args:
      func: of a person.
      strict: whether it is an error that a result does not depend on an argument.
      number: whether it returns one real number, in a tensor; this one does without axes.
    """

    def looked_at(*args: Tensor) -> Any:
        result = func(*args)
        roots = _tuple(result, f"{name_of(func)} returns")
        if number and (len(roots) != 1 or roots[0].numel() != 1 or roots[0].is_complex()):
            raise ValueError(f"{name_of(func)} returns one real number, got {[one.shape for one in roots]}")
        if strict:
            _all_reached(roots, args, func)
        return roots[0].reshape(()) if number else result

    return looked_at


def _all_reached(roots: tuple[Tensor, ...], args: tuple[Tensor, ...], func: object) -> None:
    """Looks whether each result depends on each argument.

    Raises:
      RuntimeError: if one does not.
    """
    nodes = [part for arg in args for part in arg._floats()]
    for place, root in enumerate(roots):
        found: set[int] = set()
        for part in root._floats():
            if part._wish is not False:
                found |= gradients_at(part, part.detach(), nodes, False).keys()
        for number, arg in enumerate(args):
            if not any(id(node) in found for node in arg._floats()):
                raise RuntimeError(f"strict: result {place} of {name_of(func)} does not depend on argument {number}")


def _vector(v: Any, like: Any, what: str, of: str) -> Any:
    """The vector that something is multiplied by: 1 where it is None, and the other side one real number.

    Raises:
      ValueError: if it is missing, or does not fit.
      TypeError: if it is neither a tensor nor a tuple of these.
    """
    wanted = _tuple(like, f"{of} is")
    if v is None:
        if isinstance(like, tuple) or like.numel() != 1 or like.is_complex():
            raise ValueError(f"v is to be given, as {what}; without it {of} is a single real number")
        return Tensor.ones_like(like).detach()
    given = _tuple(v, "v is")
    if [one.shape for one in given] != [one.shape for one in wanted]:
        raise ValueError(f"v has shapes {[one.shape for one in given]}, {of} {[one.shape for one in wanted]}")
    return tuple(given) if isinstance(like, tuple) else given[0]


def jacobian(
    func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The derivative of each element of what a function returns by each element of its arguments.

    Args:
      func: takes the inputs, and returns a tensor or a tuple of tensors.
      inputs: a tensor of floats, or a tuple of such.
      create_graph: whether the result can be differentiated.
      strict: whether it is an error that a result does not depend on an argument; else there are zeros.
      vectorize: all rows are computed at once, whatever this says.
      strategy: "reverse-mode" goes by gradients of results, "forward-mode" by directions of the arguments.

    Returns:
      A tensor of shape (\\*result.shape, \\*input.shape); a tuple of these, one for each input, if these are a tuple;
      and a tuple of that, one for each result, if the function returns a tuple.

    Raises:
      TypeError: if an argument or a result is no tensor of floats, or an argument is complex.
      ValueError: if there is no such strategy.
      RuntimeError: if ``strict``, and a result does not depend on an argument.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.functional import jacobian
      >>> [part.tolist() for part in jacobian(lambda x, y: x * y, (Tensor([1.0, 2.0]), Tensor(3.0)))]
      [[[3.0, 0.0], [0.0, 3.0]], [1.0, 2.0]]
    """
    starts = _tuple(inputs, "inputs are")
    return _matrix(_seen(func, strict), starts, isinstance(inputs, tuple), create_graph, strategy, "strategy")


def _matrix(
    func: Callable[..., Any], starts: tuple[Tensor, ...], several: bool, create_graph: bool, strategy: str, name: str
) -> Any:
    ways = {"reverse-mode": jacobians.jacrev, "forward-mode": jacobians.jacfwd}
    if strategy not in ways:
        raise ValueError(f"{name} is 'reverse-mode' or 'forward-mode', got {strategy!r}")
    with Switch(MODE, "recording", create_graph):
        return ways[strategy](func, tuple(range(len(starts))) if several else 0)(*starts)


def hessian(
    func: Callable[..., Any], inputs: Tensors, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function that returns one number.

    Args:
      func: takes the inputs, and returns a tensor of one element.
      inputs: a tensor of floats, or a tuple of such.
      create_graph: whether the result can be differentiated.
      strict: whether it is an error that the number, or a first derivative, does not depend on an argument.
      vectorize: all rows are computed at once, whatever this says.
      outer_jacobian_strategy: how first derivatives are differentiated: see :func:`jacobian`.

    Returns:
      A tensor of shape (\\*input.shape, \\*input.shape); if the inputs are a tuple, a tuple of tuples of tensors of
      shape (\\*input[i].shape, \\*input[j].shape).

    Raises:
      TypeError: if an argument or the result is no tensor of floats, or an argument is complex.
      ValueError: if the function returns more than one number, or there is no such strategy.
      RuntimeError: if ``strict``, and something does not depend on an argument.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.functional import hessian
      >>> hessian(lambda x: x.prod(), Tensor([1.0, 2.0, 3.0])).tolist()
      [[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    starts = _tuple(inputs, "inputs are")
    several = isinstance(inputs, tuple)
    inner = jacobians.jacrev(_seen(func, strict, number=True), tuple(range(len(starts))) if several else 0)
    slopes = _seen(inner, strict)
    return _matrix(slopes, starts, several, create_graph, outer_jacobian_strategy, "outer_jacobian_strategy")


def vjp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """What a function returns, and a vector times its Jacobian: the gradients at its arguments.

    Args:
      func: takes the inputs, and returns a tensor or a tuple of tensors.
      inputs: a tensor of floats or complex numbers, or a tuple of such.
      v: weights of the results, of their shapes; None for 1, where the function returns one real number.
      create_graph: whether what is returned can be differentiated.
      strict: whether it is an error that a result does not depend on an argument.

    Returns:
      ``(results, gradients)``; the gradients are as the inputs, a tensor or a tuple.

    Raises:
      TypeError: if an argument, a result or a weight is no tensor of floats or complex numbers.
      ValueError: if weights are missing or do not fit.
      RuntimeError: if ``strict``, and a result does not depend on an argument.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.functional import vjp
      >>> vjp(lambda x: x ** 2, Tensor([1.0, 3.0]), Tensor([1.0, 10.0]))
      (Tensor([1., 9.]), Tensor([ 2., 60.]))
    """
    starts = _tuple(inputs, "inputs are")
    with Switch(MODE, "recording", create_graph):
        result, pull = derivatives.vjp(_seen(func, strict), *starts)
        grads = pull(_vector(v, result, "weights of the results", f"what {name_of(func)} returns"))
    return result, _like(not isinstance(inputs, tuple), grads)


def jvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """What a function returns, and its Jacobian times a vector: how fast that changes along a direction.

    Args:
      func: takes the inputs, and returns a tensor or a tuple of tensors.
      inputs: a tensor of floats or complex numbers, or a tuple of such.
      v: the direction, of the shapes of the inputs; None for 1, where the input is one real number.
      create_graph: whether what is returned can be differentiated.
      strict: whether it is an error that a result does not depend on an argument.

    Returns:
      ``(results, speeds)``, of the same shapes.

    Raises:
      TypeError: if an argument, a result or a part of ``v`` is no tensor of floats or complex numbers.
      ValueError: if ``v`` is missing or does not fit.
      RuntimeError: if ``strict``, and a result does not depend on an argument.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.functional import jvp
      >>> jvp(lambda x: x ** 2, Tensor([1.0, 3.0]), Tensor([1.0, 0.5]))
      (Tensor([1., 9.]), Tensor([2., 3.]))
    """
    starts = _tuple(inputs, "inputs are")
    way = _vector(v, inputs, "a direction of the inputs", "the input")
    with Switch(MODE, "recording", create_graph):
        return moved_along(_seen(func, strict), starts, _tuple(way, "v is"), "jvp")


def vhp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Any]:  # fmt: skip
    """The number that a function returns, and a vector times its Hessian, by gradients of gradients.

    Args:
      func: takes the inputs, and returns a tensor of one element.
      inputs: a tensor of floats or complex numbers, or a tuple of such.
      v: the vector, of the shapes of the inputs; None for 1, where the input is one real number.
      create_graph: whether what is returned can be differentiated.
      strict: whether it is an error that the number, or a first derivative, does not depend on an argument.

    Returns:
      ``(number, product)``; the product is as the inputs, a tensor or a tuple.

    Raises:
      TypeError: if an argument, the result or a part of ``v`` is no tensor of floats or complex numbers.
      ValueError: if the function returns more than one number, or ``v`` is missing or does not fit.
      RuntimeError: if ``strict``, and something does not depend on an argument.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.functional import vhp
      >>> vhp(lambda x: x.prod(), Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 0.0, 0.0]))
      (Tensor(6.), Tensor([0., 3., 2.]))
    """
    starts, way, both = _second(func, inputs, v, strict)
    with Switch(MODE, "recording", create_graph):
        _, pull, value = derivatives.vjp(both, *starts, has_aux=True)
        return value, _like(not isinstance(inputs, tuple), pull(way))


def hvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Any]:  # fmt: skip
    """The number that a function returns, and its Hessian times a vector, by moving gradients along that.

    Args:
      func: takes the inputs, and returns a tensor of one element.
      inputs: a tensor of floats or complex numbers, or a tuple of such.
      v: the vector, of the shapes of the inputs; None for 1, where the input is one real number.
      create_graph: whether what is returned can be differentiated.
      strict: whether it is an error that the number, or a first derivative, does not depend on an argument.

    Returns:
      As :func:`vhp`.

    Raises:
      TypeError: if an argument, the result or a part of ``v`` is no tensor of floats or complex numbers.
      ValueError: if the function returns more than one number, or ``v`` is missing or does not fit.
      RuntimeError: if ``strict``, and something does not depend on an argument.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.functional import hvp
      >>> hvp(lambda x: x.prod(), Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 0.0, 0.0]))
      (Tensor(6.), Tensor([0., 3., 2.]))
    """
    starts, way, both = _second(func, inputs, v, strict)
    with Switch(MODE, "recording", create_graph):
        (_, value), (product, _) = moved_along(both, starts, way, "hvp")
        return value, _like(not isinstance(inputs, tuple), product)


def _second(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None, strict: bool
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Callable[..., tuple[tuple[Tensor, ...], Tensor]]]:
    """The inputs, the vector that a Hessian is multiplied by, and a function that returns first derivatives, and the
    number that they are of."""
    starts = _tuple(inputs, "inputs are")
    way = _tuple(_vector(v, inputs, "a vector like the inputs", "the input"), "v is")
    inner = derivatives.value_and_grad(_seen(func, strict, number=True), tuple(range(len(starts))))

    def both(*args: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        value, slopes = inner(*args)
        if strict:
            _all_reached(slopes, args, func)
        return slopes, value

    return starts, way, both


offered(globals(), __all__, "autograd.functional", dict.fromkeys(__all__, "any"))
