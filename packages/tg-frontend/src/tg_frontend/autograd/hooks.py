"""Functions of a person's own that see gradients on their way back."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from threading import local
from typing import NamedTuple
from weakref import ref

from tg_lazy import LazyBuffer

from .functions import Became
from .pairs import After, Half, Pair, check_returned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
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


class Handles:
    """Hooks of several tensors that belong together, to be removed.

    Args:
      handles: theirs.
    """

    __slots__ = ("_handles",)

    def __init__(self, handles: Sequence[Handle | Handles]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Removes them; nothing, if they are removed already."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def pair_up(z: Any, function: Callable[[Any], Any]) -> Handles:
    """Registers a hook of a complex tensor."""
    pair, handles = Pair(function, z._parts), []
    for place, part in enumerate(z._parts):
        hooks = hooks_of(part)
        handles.append(Handle(hooks.functions, Half(pair, place)))
        version = _shared(part, hooks)
        pair.nodes[place] = part if version is None else version
    Pair.any = True
    return Handles(handles)


def _hold(node: Any, hooks: Hooks) -> None:
    """Lets a node see to hooks."""
    node._hooks = hooks
    for one in hooks.functions.values():
        if type(one) is Half:
            one.pair.nodes[one.place] = node


class Several:
    """A hook of several tensors.

    Args:
      function: is called with a list of their gradients, None where there is none, once all that there are are known;
        or with the first of them alone.
      count: how many tensors there are.
      first: whether it is called with the first gradient alone.
    """

    __slots__ = ("_count", "_first", "_function", "_seen")

    def __init__(self, function: Callable[[Any], None], count: int, first: bool) -> None:
        self._function, self._count, self._first = function, count, first
        self._seen: dict[int, Any] = {}

    def at(self, place: int, grad: Any) -> None:
        """Takes the gradient of the tensor in a place."""
        if not self._seen:
            _GOING.waiting.append(self)
            if self._first:
                self._function(grad)
        self._seen[place] = grad

    def end(self, reached: bool) -> None:
        """Ends with a gradient that was computed: ``reached`` says that it was not given up."""
        seen, self._seen = self._seen, {}
        if reached and not self._first:
            self._function([seen.get(place) for place in range(self._count)])


class _Going(local):
    """Gradients that are being computed in this thread.

    Attributes:
      depth: how many, within one another.
      waiting: hooks of several tensors that saw a gradient.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.waiting: list[Several] = []


_GOING = _Going()


@contextmanager
def going() -> Iterator[None]:
    """A gradient is computed in this block: hooks of several tensors are called at the end of the outermost one."""
    _GOING.depth += 1
    reached = False
    try:
        yield
        reached = True
    finally:
        _GOING.depth -= 1
        if _GOING.depth == 0:
            waiting, _GOING.waiting = _GOING.waiting, []
            for one in waiting:
                one.end(reached)


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
        _hold(line.node, hooks._replace(after={}, owner=ref(tensor)))


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
        _hold(version, Hooks(hooks.functions, [False], {}))
        tensor._hooks = Hooks({}, hooks.kept, hooks.after)
        return False
    if not hooks.functions:
        return False
    lazy = tensor.lazydata
    before = tensor._wrap(LazyBuffer.const(0, lazy.dtype, lazy.shape, lazy.device), tensor._wants_grad)
    before._ctx = tensor._ctx
    _hold(before, Hooks(hooks.functions, [False], {}))
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
    _hold(before, Hooks(hooks.functions, [False], {}))
    view._hooks = Hooks({}, hooks.kept, hooks.after)


def accumulated(tensor: Any, left: Container[int]) -> None:
    """Calls what waits for ``grad`` of a tensor to be complete.

    Args:
      tensor: the tensor.
      left: the ids of those whose ``grad`` is added to after this.
    """
    hooks: Hooks | None = getattr(tensor, "_hooks", None) if Registered.any else None
    if hooks is not None:
        for function in list(hooks.after.values()):
            function(left if isinstance(function, After) else tensor)


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
        check_returned(other, seen)
        seen = other
    if fill and hooks.kept[0] and tensor._ctx is not None:
        owner = tensor if hooks.owner is None else hooks.owner()
        if owner is not None:
            owner.grad = seen if owner.grad is None else owner.grad + seen
    return type(grad)(seen) if recorded else seen._row_sparse() or seen.lazydata
