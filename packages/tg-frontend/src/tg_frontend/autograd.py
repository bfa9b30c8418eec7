"""Reverse-mode differentiation over the graph of applied functions, without recursion."""

from __future__ import annotations

from functools import partial
from threading import local

from tg_lazy import LazyBuffer, Ops, Scope

from .function import Function, Grads, Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from typing import Any, Protocol

    class Node(Protocol):
        """A tensor, as far as differentiation is concerned."""

        lazydata: LazyBuffer
        requires_grad: bool | None
        _ctx: Function | None
        _home: Any


class Mode(local):
    """Settings of differentiation, for each thread its own.

    Attributes:
      recording: whether functions are recorded for a later ``backward``.
      repeating: whether what runs is computed a second time, for a gradient: what it counts is counted already.
    """

    recording = True
    repeating = False


MODE = Mode()


class Switch(Scope):
    """Sets an attribute inside a ``with`` block or for the calls of a decorated function, then puts it back."""

    __slots__ = ("_name", "_owner", "_value")

    def __init__(self, owner: Any, name: str, value: object) -> None:
        super().__init__()
        self._owner, self._name, self._value = owner, name, value

    def restorer(self) -> Callable[[], object]:
        """Sets the attribute to what it is now."""
        return partial(setattr, self._owner, self._name, getattr(self._owner, self._name))

    def change(self) -> None:
        """Sets the attribute."""
        setattr(self._owner, self._name, self._value)


class Freed(Function):
    """What stands in a tensor's graph after its gradient was taken."""

    __slots__ = ()

    def backward(self, grad: LazyBuffer) -> Grads:
        raise RuntimeError(
            "backward: this part of the graph was freed by an earlier backward(); "
            "call that one with retain_graph=True, or detach() what is carried over"
        )


FREED = Freed()
FREED.parents = FREED.needs = ()
FREED.stamp, FREED.wanted = 0, True


def operands_first(root: Node, through_open: bool = False, ends: Container[int] = ()) -> list[Node]:
    """Every recorded tensor on which ``root`` depends, ``root`` included, each after its operands.

    Args:
      through_open: also where no gradient is required but the operands leave it open.
      ends: ids of tensors behind which nothing is looked at.
    """
    seen: set[int] = set()
    done: list[Node] = []
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            done.append(node)
            continue
        if is_leaf(node, through_open) or id(node) in seen or id(node) in ends:
            continue
        seen.add(id(node))
        stack.append((node, True))
        assert node._ctx is not None
        stack.extend((parent, False) for parent in operands(node._ctx) if parent._ctx is not None)
    return done


def open_leaves(root: Node) -> list[Node]:
    """The tensors at which the graph of ``root`` ends that leave open whether they require a gradient."""
    found: dict[int, Node] = {}
    for node in operands_first(root, through_open=True):
        assert node._ctx is not None
        found.update((id(p), p) for p in operands(node._ctx) if p._ctx is None and p.requires_grad is None)
    return list(found.values())


def operands(function: Function) -> Sequence[Node]:
    """The operands of a function as they were when it was applied."""
    parents: Any = function.parents
    stamp = function.stamp
    for parent in parents:
        if parent._home is not None:
            _ = parent.lazydata  # and with it the graph of the newest version
    for parent in parents:
        if type(parent._ctx) is Seen and parent._ctx.since > stamp:
            return [_before(parent, stamp) for parent in parents]
    return parents  # type: ignore[no-any-return]


def _before(node: Any, stamp: int) -> Any:
    """A tensor as it was before it was written with a gradient, if that was later than ``stamp``."""
    while type(node._ctx) is Seen and node._ctx.since > stamp:
        node = node._ctx.before
    return node


def is_leaf(node: Node, through_open: bool) -> bool:
    """Whether differentiation ends at ``node``."""
    return node._ctx is None or not (through_open or node._ctx.wanted)


def _open_needs(parents: Sequence[Node]) -> tuple[bool, ...]:
    return tuple([p.requires_grad is not False and p.lazydata.dtype.kind == "float" for p in parents])


def differentiate(
    root: Node, seed: LazyBuffer, targets: Sequence[Node] | None = None, ends: Container[int] = ()
) -> list[tuple[Node, LazyBuffer]]:
    """The gradient of ``root``, weighted with ``seed``, at the leaves that require one, or at ``targets``.

    Targets may leave it open whether they require one. Behind tensors of which the ids are ``ends`` no gradient flows.

    Returns:
      The tensors that a gradient reaches, each with it; in the order in which the graph first meets them.

    Raises:
      RuntimeError: a part of the graph was freed.
    """
    through_open = targets is not None
    grads: dict[int, LazyBuffer] = {id(root): seed}
    leaves: dict[int, Node] = {id(root): root} if is_leaf(root, through_open) else {}
    kept: dict[int, LazyBuffer] = {}
    wanted = frozenset(id(t) for t in targets or ())
    for node in reversed(operands_first(root, through_open, ends)):
        grad = grads.pop(id(node), None)
        if grad is None:
            continue
        if id(node) in wanted:
            kept[id(node)] = grad
        function = node._ctx
        assert function is not None
        parents = operands(function)
        required = function.needs
        if through_open:
            function.needs = _open_needs(parents)
        parts = function.backward(grad)
        stamp = function.stamp
        written: Any = (node, *function.parents)
        if any(one._home is not None and one._home.written > stamp for one in written):
            _check(node, function, grad, parts)
        for parent, part, need in zip(parents, parts, function.needs, strict=True):
            if part is not None and need:
                _deposit(function, parent, part, grads)
                if is_leaf(parent, through_open):
                    leaves[id(parent)] = parent
        function.needs = required
    if targets is not None:
        kept |= {key: grads[key] for key in wanted if key in grads}
        return [(t, kept[id(t)]) for t in targets if id(t) in kept]
    return [(leaf, grads[key]) for key, leaf in leaves.items() if key in grads]


def _check(node: Node, function: Function, grad: LazyBuffer, parts: Grads) -> None:
    """Looks whether gradients are made of what was written to since the function was applied.

    Raises:
      RuntimeError: they are.
    """
    kept = {value.base for value in function.saved()}
    gone = {base for base in kept if base.ended}
    stack = [part.base for part, need in zip(parts, function.needs, strict=True) if part is not None and need]
    seen = {grad.base} if grad.base not in gone else set()
    while stack:
        base = stack.pop()
        if base in gone:
            raise RuntimeError(
                f"backward: an operand or the result of {function.name}, which gave shape {node.lazydata.shape}, was "
                "written to in place after it was used"
            )
        if base not in seen and base not in kept:
            stack.extend(src.base for src in base.srcs)
        seen.add(base)


def _deposit(function: Function, parent: Node, part: LazyBuffer, grads: dict[int, LazyBuffer]) -> None:
    like = parent.lazydata
    if part.shape != like.shape or part.dtype is not like.dtype:
        raise RuntimeError(
            f"the gradient of {function.name} has shape {part.shape} and dtype {part.dtype.name}; "
            f"its operand has {like.shape} and {like.dtype.name}"
        )
    before = grads.get(id(parent))
    grads[id(parent)] = part if before is None else before.alu(Ops.ADD, part)


def free(root: Node) -> None:
    """Drops the graph behind ``root``, and with it the intermediate results that only it kept."""
    for node in operands_first(root):
        node._ctx = FREED
