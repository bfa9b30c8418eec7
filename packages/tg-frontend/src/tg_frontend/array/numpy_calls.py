"""Functions of numpy that are no methods here, called with tensors: numpy computes on the elements, on the host.

Tensors go in as arrays that cannot be written: a function that tries to write into its argument fails, where it would
write into a copy. What it is known to write into (``out``, the first argument of ``np.put``) goes in as an array of its
own, whose elements are assigned to the tensor afterwards, so that numpy's rules of casting and broadcasting hold.
Arrays that come out are tensors again, beside the first one that went in, and share no memory with it. What is no array
of numbers (a dtype, a string, dates) comes out as numpy gives it.
"""

from __future__ import annotations

from tg_dtype import interop

from ..host import coerce, transfer
from ..memory import disk
from .base import Base
from .lending import wants_gradient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from typing import Any

_SMOOTH = "fcO"
"""Kinds of numpy's dtypes whose elements a gradient may flow to."""


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors among arguments, in order."""
    if isinstance(value, Base):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_of(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_of(part)


def has_no_tensor(value: Any) -> bool:
    """Whether there is an array among arguments that no tensor can be made of: text, dates, objects, long doubles."""
    if type(value) in (list, tuple):
        return any(map(has_no_tensor, value))
    if type(value) is dict:
        return any(map(has_no_tensor, value.values()))
    return transfer.is_array(value) and not _is_of_numbers(value)


def _is_of_numbers(array: Any) -> bool:
    """Whether a dtype here is that of an array."""
    try:
        interop.from_numpy_name(array.dtype.name)
    except TypeError:
        return False
    return True


def on_host(name: str, function: Callable[..., Any], args: Any, kwargs: Any, written: Any, beside: Any) -> Any:
    """What a function of numpy gives for the elements of tensors.

    Args:
      name: of the function, for errors.
      function: takes arrays for the tensors in ``args`` and ``kwargs``.
      args: its arguments by position.
      kwargs: those by name.
      written: the arguments that it writes into; tensors among them are assigned to.
      beside: a tensor, on whose device the results are.

    Returns:
      What the function gives, with tensors for arrays of numbers.

    Raises:
      RuntimeError: if a tensor requires a gradient that would not flow to the result, or to what is written.
      TypeError: if the function writes into another argument that is a tensor.
    """
    wanting = next((x for x in tensors_of([args, kwargs]) if wants_gradient(x)), None)
    targets = list(tensors_of(written))
    if wanting is not None and _some(written):
        raise RuntimeError(_lost(name, wanting, "what is written to memory"))
    call = _Call(targets)
    try:
        found = function(*call.arrays(args), **call.arrays(kwargs))
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise TypeError(
            f"{name}: numpy would write into an argument that is a tensor, of whose elements it has a copy; "
            "give what it returns to a tensor's assign()"
        ) from error
    call.write()
    if wanting is not None and _is_smooth(found):
        raise RuntimeError(_lost(name, wanting, "what numpy computes on the host"))
    return call.tensors(found, beside)


def check_written(name: str, target: Any, value: Any) -> None:
    """Refuses numbers, also in lists, that are to be written into a tensor whose dtype has them not.

    Args:
      name: of the function.
      target: what is written into.
      value: what is written; arrays and tensors are cast, as those that are written by an index.

    Raises:
      OverflowError: if an integer dtype has no such number.
      ValueError: if a NaN is to become an integer.
    """
    if not isinstance(target, Base) or target.dtype.kind not in ("int", "uint"):
        return
    value = transfer.number_of(value)
    if isinstance(value, (list, tuple, range)):
        value = transfer.flatten(value)[0]
    elif not isinstance(value, (bool, int, float, complex)):
        return
    coerce.check_fits(value, target.dtype, name)


def check_flow(name: str, found: Any, given: Iterable[Any], slopeless: Container[str]) -> None:
    """Refuses floats through which the gradients that tensors require do not flow.

    Args:
      name: of the function.
      found: its results.
      given: the tensors that it was given.
      slopeless: names of functions whose floats need not depend on what they are given.

    Raises:
      RuntimeError: if a gradient would be lost.
    """
    if name in slopeless:
        return
    wanting = next(filter(wants_gradient, given), None)
    if wanting is None:
        return
    for out in tensors_of(found):
        if out.dtype.kind in ("float", "complex") and not wants_gradient(out):
            raise RuntimeError(_lost(name, wanting, "this function"))


def _some(written: Any) -> bool:
    return any(part is not None for part in (written if isinstance(written, (list, tuple)) else (written,)))


def _lost(name: str, x: Any, where: str) -> str:
    """What is said where a gradient would be lost."""
    return (
        f"{name}: the gradient that a tensor of shape {x.shape} requires does not flow through {where}; use methods of "
        "Tensor, or detach() it"
    )


def _is_smooth(value: Any) -> bool:
    """Whether results hold floats."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_smooth, value))
    if isinstance(value, dict):
        return _is_smooth(list(value.values()))
    if isinstance(value, (float, complex)):
        return True
    return _holds_elements(value) and value.dtype.kind in _SMOOTH


def _holds_elements(value: Any) -> bool:
    """Whether a result is an array or a scalar of numpy's."""
    return not isinstance(value, type) and hasattr(value, "dtype") and hasattr(value, "__array_interface__")


class _Call:
    """Arrays for tensors in one call, and tensors for the arrays that it gives."""

    def __init__(self, targets: list[Any]) -> None:
        self._targets = {id(x): (x, x.numpy()) for x in targets}
        self._given: list[Any] = []

    def arrays(self, value: Any) -> Any:
        """Arguments with arrays for tensors."""
        if isinstance(value, Base):
            if id(value) in self._targets:
                return self._targets[id(value)][1]
            array = value.numpy()  # type: ignore[attr-defined]
            array.flags.writeable = False
            return array
        if type(value) in (list, tuple):
            return type(value)(map(self.arrays, value))
        if type(value) is dict:
            return {key: self.arrays(part) for key, part in value.items()}
        if transfer.is_array(value):
            self._given.append(value)
        return value

    def write(self) -> None:
        """Gives the tensors that were written into their new elements."""
        for x, array in self._targets.values():
            x.assign(array)

    def tensors(self, value: Any, beside: Any) -> Any:
        """Results with tensors for arrays of numbers."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.tensors(part, beside) for part in value))
        if type(value) in (list, tuple):
            return type(value)(self.tensors(part, beside) for part in value)
        for x, array in self._targets.values():
            if value is array:
                return x
        if not transfer.is_array(value) or any(value is array for array in self._given) or not _is_of_numbers(value):
            return value
        device = disk.HOST if transfer.runs_nothing(beside.device) else beside.device
        return type(beside)(value, device=device)
