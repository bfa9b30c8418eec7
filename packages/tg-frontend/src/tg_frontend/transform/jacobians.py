"""Matrices of derivatives: a gradient, or a direction, for each element, all at once."""

from __future__ import annotations

from functools import wraps

from ..autograd.differentiation import MODE, Switch
from ..tensor import Tensor
from .derivatives import called, chosen, gradients, moved_along, opened_at, outside, results
from .tree import leaves, map_tensors, tensors_in
from .vectorization import vmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _units(tensor: Tensor) -> Tensor:
    """A tensor for each element of one, with a 1 there and 0 elsewhere: shape (numel, *shape)."""
    count = tensor.numel()
    if not isinstance(count, int):
        raise ValueError(f"jacobian: a symbolic size, in shape {tensor.shape}")
    return Tensor.eye(count, dtype=tensor.dtype, device=tensor.device).reshape(count, *tensor.shape).detach()


def _no_complex(trees: Sequence[Any], what: str) -> None:
    """Sees to it that derivatives are wanted at real numbers: those at complex ones are two for each element.

    Raises:
      TypeError: if there is a complex tensor.
    """
    for _, leaf in leaves(list(trees), "arguments"):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise TypeError(f"{what}: derivatives at complex numbers; take them at .real and .imag")


def jacrev(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the derivative of each result by each element of arguments, by gradients of results.

    It takes a gradient for each element of the results, all at once (:func:`vmap`): right for few results.

    Args:
      function: returns tensors, in lists, tuples and dicts perhaps.
      argnums: the place of the argument by which derivatives are taken, or several places.

    Returns:
      A function that returns, nested like the results, and in each place nested like the arguments (in a tuple of
      these, if there are several ``argnums``), tensors of shape (\\*result.shape, \\*argument.shape).

    Raises:
      TypeError: when called, if the function returns no tensor of floats, or an argument holds none.
      IndexError: when called, if there is no such argument.

    Example:
      >>> from tg_frontend import Tensor, jacrev
      >>> jacrev(lambda x: x.cumsum() ** 2)(Tensor([1.0, 2.0])).tolist()
      [[2.0, 0.0], [6.0, 6.0]]
    """

    @wraps(function, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = chosen(argnums, args, "jacrev")
        _no_complex([args[place] for place in places], "jacrev")
        opened, inside = opened_at(args, places, "jacrev")
        result = called(function, opened, kwargs)
        for root in results(result, function, "jacrev"):
            if root.dtype.kind != "float":
                raise TypeError(f"jacrev: a result of {root.dtype.name} has no derivative; only floats have")

        def rows(root: Tensor) -> Any:
            with Switch(MODE, "recording", True):
                found = vmap(lambda weight: tuple(gradients(root, weight, inside)))(_units(root))
            made = iter([
                outside(rows.reshape(*root.shape, *tensor.shape))
                for rows, tensor in zip(found, inside, strict=True)
            ])  # fmt: skip
            trees = tuple(map_tensors(args[place], lambda _: next(made)) for place in places)
            return trees[0] if isinstance(argnums, int) else trees

        return map_tensors(result, rows)

    return wrapper


def jacfwd(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The same as :func:`jacrev`, by moving along each element of the arguments (as ``jvp``): right for few of them.

    Args:
      function: returns tensors, in lists, tuples and dicts perhaps.
      argnums: the place of the argument by which derivatives are taken, or several places.

    Returns:
      As :func:`jacrev`.

    Raises:
      TypeError: when called, if the function returns no tensor, or an argument holds none of floats.
      IndexError: when called, if there is no such argument.

    Example:
      >>> from tg_frontend import Tensor, jacfwd
      >>> jacfwd(lambda x: x.cumsum() ** 2)(Tensor([1.0, 2.0])).tolist()
      [[2.0, 0.0], [6.0, 6.0]]
    """

    @wraps(function, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = chosen(argnums, args, "jacfwd")
        starts = [args[place] for place in places]
        _no_complex(starts, "jacfwd")

        def among(*moving: Any) -> Any:
            whole = list(args)
            for place, tree in zip(places, moving, strict=True):
                whole[place] = tree
            return function(*whole, **kwargs)

        columns = []  # for each tensor in the arguments, the results
        for number, tensor in enumerate(tensors_in(starts)):
            def along(way: Tensor, number: int = number) -> Any:
                ways = [
                    way if i == number else Tensor.zeros_like(other).detach()
                    for i, other in enumerate(tensors_in(starts))
                ]  # fmt: skip
                return moved_along(among, starts, ways, "jacfwd")[1]

            columns.append((tensor, vmap(along)(_units(tensor))))
        if not columns:
            opened_at(args, places, "jacfwd")  # which says what is wrong
        flat = [[_turned(part, tensor) for part in tensors_in(column)] for tensor, column in columns]

        def row(number: int) -> Any:
            made = iter([column[number] for column in flat])
            trees = tuple(map_tensors(start, lambda _: next(made)) for start in starts)
            return trees[0] if isinstance(argnums, int) else trees

        numbers = iter(range(len(flat[0])))
        return map_tensors(columns[0][1], lambda _: row(next(numbers)))

    return wrapper


def _turned(columns: Tensor, tensor: Tensor) -> Tensor:
    """From shape (numel, *result) to (*result, *argument)."""
    return columns.permute(*range(1, columns.ndim), 0).reshape(*columns.shape[1:], *tensor.shape)


def jacobian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The same as :func:`jacrev`.

    Example:
      >>> from tg_frontend import Tensor, jacobian
      >>> jacobian(lambda x: x * x)(Tensor([1.0, 2.0])).tolist()
      [[2.0, 0.0], [0.0, 4.0]]
    """
    return jacrev(function, argnums)


def hessian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of results: :func:`jacfwd` of :func:`jacrev`.

    Args:
      function: returns tensors, in lists, tuples and dicts perhaps.
      argnums: the place of the argument by which derivatives are taken, or several places.

    Returns:
      A function that returns, nested like the results, then twice like the arguments, tensors of shape
      (\\*result.shape, \\*argument.shape, \\*argument.shape).

    Raises:
      TypeError: when called, if the function returns no tensor of floats, or an argument holds none.
      IndexError: when called, if there is no such argument.

    Example:
      >>> from tg_frontend import Tensor, hessian
      >>> hessian(lambda x: x.prod())(Tensor([1.0, 2.0, 3.0])).tolist()
      [[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    return jacfwd(jacrev(function, argnums), argnums)
