"""Functions traced on placeholders: what they compute, without computing it."""

from __future__ import annotations

from contextlib import ExitStack

from tg_lazy import LazyBuffer

from ..autograd.differentiation import Switch, operands, operands_first
from ..memory.realization import TRACING, Moves, forget_assigns, live
from ..ops.streams import DRAWING
from ..tensor import Tensor
from .tree import form, leaves, tensor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any
    from weakref import ref

    from ..memory.home import Memory


def name_of(function: Any) -> str:
    """The name of a function, for messages."""
    return getattr(function, "__qualname__", type(function).__name__)


def placeholders(like: Sequence[tuple[tuple[int, ...], Tensor]]) -> list[Tensor]:
    """Tensors without a value, each of a shape and of the dtype and device of a tensor.

    A gradient may be wanted of those that are floats, also through what is written in place.
    """
    out = []
    for shape, tensor in like:
        lazy = LazyBuffer.empty(shape, tensor.dtype, tensor.device)
        floating = tensor.dtype.kind == "float"
        place = Tensor._wrap(lazy, None if floating else False)
        if floating:
            place._parameter = True
        out.append(place)
    return out


def trace(what: str, function: Callable[..., Any], args: Sequence[Any], given: Sequence[Tensor]) -> Any:
    """What a function returns for arguments made of placeholders.

    Args:
      what: what calls it, for messages.
      function: is called once.
      args: its arguments.
      given: the placeholders in them.

    Raises:
      RuntimeError: if it asks for a value, draws random numbers, or writes in place to what was there before.
    """
    unknown = (*TRACING.unknown, *(tensor.lazydata for tensor in given))
    before, outer, outer_noted = _Before(), TRACING.written, TRACING.noted
    drawn: list[LazyBuffer] = []
    written: list[Memory] = []
    noted: list[ref[LazyBuffer]] = []
    try:
        with ExitStack() as stack:
            for owner, name, value in (
                (TRACING, "unknown", unknown), (TRACING, "what", what), (TRACING, "written", written),
                (TRACING, "noted", noted), (DRAWING, "into", drawn), (DRAWING, "again", None),
            ):  # fmt: skip
                stack.enter_context(Switch(owner, name, value))
            result = function(*args)
        if drawn:
            raise RuntimeError(
                f"{what}: the function draws random numbers, which would be the same ones in every step: draw them "
                "before, and pass them step by step"
            )
        for memory in written:
            if before.had(memory):
                raise RuntimeError(
                    f"{what}: the function writes in place to a tensor of shape {memory.root.shape} that was there "
                    "before: return the new value"
                )
    except BaseException:
        before.restore()
        forget_assigns(noted)
        raise
    finally:
        origin = _origin(function)
        for tensor in given:  # of what the function leaves elsewhere nobody can ask for a value
            tensor.lazydata.stale = origin
    if outer is not None:
        outer += written
    if outer_noted is not None:
        outer_noted += noted
    return result


class _Before:
    """Every tensor of now, and the memory that it has now."""

    def __init__(self) -> None:
        self._seen: list[Any] = [(t, t._lazy, t._home, t._place, t._cut) for t in live() if isinstance(t, Tensor)]
        self._homes = {
            id(home): (home, home.root, home.base, home.direct) for *_, home, _, _ in self._seen if home is not None
        }  # fmt: skip
        lines = [line for *_, home, _, cut in self._seen for line in (home, cut) if line is not None]
        self._lines = {id(line): (line, line.node, line.computed) for line in lines}

    def had(self, memory: Memory) -> bool:
        """Whether a memory is one of these tensors', or was made for one of them since."""
        return id(memory) in self._homes or any(memory.holds(tensor._home) for tensor, *_ in self._seen)

    def restore(self) -> None:
        """Gives every tensor the memory that it had, whatever was assigned to it since."""
        for home, root, base, direct in self._homes.values():
            if home.base is not base:
                home.root, home.base, home.direct = root, base, direct
        for line, node, computed in self._lines.values():
            line.node, line.computed = node, computed
        for tensor, lazy, home, place, cut in self._seen:
            if tensor._home is not home or (home is not None and tensor._lazy is not lazy):
                tensor._lazy, tensor._home, tensor._place, tensor._cut = lazy, home, place, cut
        Moves.number += 1


def _origin(function: Any) -> tuple[str, int]:
    code = getattr(function, "__code__", None)
    return ("a function", 0) if code is None else (code.co_filename, code.co_firstlineno)


def closed_over(results: Sequence[Tensor], given: Sequence[Tensor], there: dict[int, Any]) -> list[Tensor]:
    """The tensors that a function computed with beside its arguments, and that may get a gradient.

    Args:
      results: what it returned.
      given: its arguments.
      there: by id, the tensors from before the call.
    """
    ends = {**there, **{id(tensor): tensor for tensor in given}}
    found: dict[int, Any] = {}
    for root in results:
        for node in operands_first(root, True, ends):
            assert node._ctx is not None
            found |= {id(parent): parent for parent in operands(node._ctx) if id(parent) in there}
        if id(root) in there:
            found[id(root)] = root
    arguments = {id(tensor) for tensor in given}
    return [
        tensor for key, tensor in found.items()
        if key not in arguments and tensor._wish is not False and tensor.dtype.kind == "float"
    ]  # fmt: skip


def there_now() -> dict[int, Any]:
    """The tensors that exist, by id."""
    return {id(tensor): tensor for tensor in live()}


def next_carry(what: str, init: Any, carry: Any, before: Sequence[Tensor]) -> list[Tensor]:
    """The carry that a function returned, checked to be like the one that it got.

    Args:
      what: what calls it, for messages.
      init: the tree of the carry that it got.
      carry: what it returned.
      before: the tensors that it got.

    Raises:
      TypeError: if its form or a dtype is another one.
      ValueError: if a shape or a device is.
    """
    if form(init) != form(carry):
        raise TypeError(f"{what}: the carry has the form {form(init)}, and the function returns one of {form(carry)}")
    out = []
    for (name, value), old in zip(leaves(carry, "carry"), before, strict=True):
        if isinstance(value, (bool, int, float)):
            value = old.full_like(value)
        new = tensor_of(value, name, what)
        if new.shape != old.shape:
            shapes = f"{name} has shape {old.shape}, and the function returns it with shape {new.shape}"
            raise ValueError(f"{what}: {shapes}")
        if new.dtype is not old.dtype:
            now = new.dtype.name
            raise TypeError(f"{what}: {name} is {old.dtype.name}, and the function returns it as {now}: cast it")
        if new.device != old.device:
            raise ValueError(f"{what}: {name} is on {old.device}, and the function returns it on {new.device}")
        out.append(new)
    return out


def same_device(what: str, tensors: Sequence[tuple[str, Tensor]]) -> None:
    """Looks whether tensors, each with a name for messages, are on one device.

    Raises:
      ValueError: if they are not.
    """
    for name, tensor in tensors:
        if tensor.device != tensors[0][1].device:
            first = tensors[0]
            raise ValueError(f"{what}: {first[0]} is on {first[1].device}, {name} on {tensor.device}")


def numeric(what: str, tensors: Sequence[tuple[str, Tensor]]) -> None:
    """Looks whether the sizes of tensors, each with a name for messages, are numbers.

    Raises:
      ValueError: if they are not.
    """
    for name, tensor in tensors:
        if not tensor.lazydata.st.numeric:
            raise ValueError(f"{what}: {name} has the symbolic shape {tensor.shape}; sizes must be numbers")
