"""Functions of a person's own that see gradients on their way back."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple
from weakref import ref

from tg_lazy import LazyBuffer

from .functions import Became

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_numbers = count()


class Hooks(NamedTuple):
    """What is called with the gradient of a tensor, once all of it is known.

    Attributes:
      functions: by number; what one returns, if it returns something, takes the gradient's place.
      kept: whether ``backward`` leaves the gradient in ``grad``, though the tensor is no leaf.
      after: by number, what is called with the tensor once ``backward`` has added to its ``grad``.
      owner: refers to the tensor that they are of, where they are seen to at the newest version of its memory.
    """

    functions: dict[int, Callable[[Any], Any]]
    kept: list[bool]
    after: dict[int, Callable[[Any], Any]]
    owner: ref[Any] | None = None


class Registered:
    """Whether any tensor ever had hooks: while none had, nobody looks for them.

    Attributes:
      any: the answer.
    """

    any = False


class Handle:
    """A hook of a tensor, to be removed.

    Args:
      functions: the tensor's hooks.
      function: the hook, which is added to them.
    """

    __slots__ = ("_functions", "_number")

    def __init__(self, functions: dict[int, Callable[[Any], Any]], function: Callable[[Any], Any]) -> None:
        self._functions, self._number = functions, next(_numbers)
        functions[self._number] = function

    def remove(self) -> None:
        """Removes the hook; nothing, if it is removed already."""
        self._functions.pop(self._number, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def hooks_of(tensor: Any) -> Hooks:
    """The hooks of a tensor, to be added to."""
    hooks: Hooks | None = getattr(tensor, "_hooks", None)
    if hooks is None:
        hooks = tensor._hooks = Hooks({}, [False], {})
    Registered.any = True
    share_hooks(tensor)
    return hooks


def share_hooks(tensor: Any) -> None:
    """Has the hooks of a tensor that was written to seen to where gradients of its views arrive, too.

    Its views are then views of the newest version of the memory, as the tensor itself is: there all of its gradient is
    known.
    """
    hooks: Hooks | None = getattr(tensor, "_hooks", None) if Registered.any else None
    if hooks is None:
        return
    _ = tensor.lazydata  # and with it the graph of the newest version
    line, context = tensor._cut or tensor._home, tensor._ctx
    if line is None or line.node is None or context is None or line.owner is None or line.owner() is not tensor:
        return
    if context.parents and context.parents[0] is line.node and line.node._lazy.shape == tensor._lazy.shape:
        line.node._hooks = hooks._replace(after={}, owner=ref(tensor))


def _shared(tensor: Any, hooks: Hooks) -> Any:
    """The newest version of the memory that sees to these hooks; None where the tensor does."""
    parents: tuple[Any, ...] = () if tensor._ctx is None or hooks.owner is not None else tensor._ctx.parents
    there: Hooks | None = getattr(parents[0], "_hooks", None) if parents else None
    newer = there is not None and there.owner is not None and there.functions is hooks.functions
    return parents[0] if newer else None


def leave_hooks(tensor: Any) -> bool:
    """Leaves the functions to a stand-in for a tensor that is about to be written: they see the gradient as of now.

    Returns:
      Whether there are any.
    """
    hooks: Hooks | None = getattr(tensor, "_hooks", None) if Registered.any else None
    if hooks is None or tensor._ctx is None:
        return False
    version = _shared(tensor, hooks)
    if version is not None:  # which becomes an older one
        version._hooks = Hooks(hooks.functions, [False], {})
        tensor._hooks = Hooks({}, hooks.kept, hooks.after)
        return False
    if not hooks.functions:
        return False
    lazy = tensor.lazydata
    before = tensor._wrap(LazyBuffer.const(0, lazy.dtype, lazy.shape, lazy.device), tensor._wants_grad)
    before._ctx, before._hooks = tensor._ctx, Hooks(hooks.functions, [False], {})
    became = Became()  # in front of what the tensor was before earlier writes
    became.before, became.since = before, before._ctx.since if before._ctx.renewed else 0
    tensor._ctx = before._apply(became)._ctx
    tensor._hooks = Hooks({}, hooks.kept, hooks.after)
    return True


def follow_hooks(view: Any, before: Any) -> None:
    """Leaves the functions of a view to what stands for it as it was before its memory was written by another name."""
    hooks: Hooks | None = getattr(view, "_hooks", None) if Registered.any else None
    if hooks is None or not hooks.functions:
        return
    line = view._cut or view._home
    if line is not None and line.owner is not None and line.owner() is view:  # it is no view
        return
    before._hooks = Hooks(hooks.functions, [False], {})
    view._hooks = Hooks({}, hooks.kept, hooks.after)


def accumulated(tensor: Any) -> None:
    """Calls what waits for ``grad`` of a tensor to be complete."""
    hooks: Hooks | None = getattr(tensor, "_hooks", None) if Registered.any else None
    if hooks is not None:
        for function in list(hooks.after.values()):
            function(tensor)


def called_back(tensor: Any, grad: Any, fill: bool) -> Any:
    """The gradient of a tensor as its hooks leave it.

    Args:
      tensor: the tensor.
      grad: a node, or a value that records itself.
      fill: whether ``grad`` of the tensor is to be set, if it asked for that and is no leaf.

    Raises:
      TypeError: if a hook returns something else than None or a tensor.
      ValueError: if it returns a tensor of another shape, dtype or device.
    """
    hooks: Hooks | None = getattr(tensor, "_hooks", None)
    if hooks is None or _shared(tensor, hooks) is not None:
        return grad
    recorded = hasattr(grad, "tensor")
    seen = grad.tensor if recorded else type(tensor)._value(grad)
    for function in list(hooks.functions.values()):
        other = function(seen)
        if other is None:
            continue
        if not isinstance(other, type(seen)):
            raise TypeError(f"a hook returned a {type(other).__name__}; it returns a tensor, or None")
        if (other.shape, other.dtype, other.device) != (seen.shape, seen.dtype, seen.device):
            raise ValueError(
                f"a hook returned a gradient of shape {other.shape}, {other.dtype.name} on {other.device} "
                f"for one of shape {seen.shape}, {seen.dtype.name} on {seen.device}"
            )
        seen = other
    if fill and hooks.kept[0] and tensor._ctx is not None:
        owner = tensor if hooks.owner is None else hooks.owner()
        if owner is not None:
            owner.grad = seen if owner.grad is None else owner.grad + seen
    return type(grad)(seen) if recorded else seen._row_sparse() or seen.lazydata
