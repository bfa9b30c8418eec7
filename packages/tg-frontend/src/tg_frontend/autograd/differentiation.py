"""Reverse-mode differentiation over the graph of applied functions, without recursion."""

from __future__ import annotations

from functools import partial
from threading import local
from typing import NamedTuple, TypeVar
from weakref import ref

from tg_dtype import DType
from tg_lazy import ANOMALY, LazyBuffer, Scope
from tg_lazy.graph.origin import BACKWARD

from ..memory.home import Clock
from .functions import UNRECORDED, Function, Grads, RowSparse, Same, summed
from .hooks import Registered, called_back, going
from .pairs import Pair, call_pairs, pairs_at, partners
from .recording import Recorded, recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from typing import Any, ClassVar, Protocol

    class Node(Protocol):
        """A tensor, as far as differentiation is concerned."""

        lazydata: LazyBuffer
        _wish: bool | None  # what was said of requires_grad
        _lazy: LazyBuffer  # of another version of the memory perhaps; shape and dtype are those of ``lazydata``
        _ctx: Function | None
        _parameter: bool
        _home: Any


V = TypeVar("V", LazyBuffer, Recorded)


class Precision(NamedTuple):
    """In which dtype products are computed, and on which devices: None for all."""

    dtype: DType
    device: str | None


class Mode(local):
    """Settings of what is computed and differentiated, for each thread its own.

    Attributes:
      precision: what operations cast their operands to; None if they do not.
      recording: whether functions are recorded for a later ``backward``.
      repeating: whether what runs is computed a second time, for a gradient: what it counts is counted already.
      told: whether the program ever said if layers are in training, in any thread.
      reached: called with each tensor that ``backward`` is about to give a gradient, while somebody wants to know.
    """

    precision: Precision | None = None
    recording = True
    repeating = False
    told: ClassVar[bool] = False
    reached: Callable[[Any], None] | None = None


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


class Severed:
    """Whether any tensor was ever cut off its graph in place: while none was, nobody looks for it.

    Attributes:
      any: the answer.
    """

    any = False


class Freed(Function):
    """What stands in a tensor's graph after its gradient was taken.

    Args:
      order: everything on which what was freed depended: the results, each after its operands.
      freed: the ids of those that are freed.
    """

    __slots__ = ("_ends",)

    def __init__(self, order: Sequence[Node], freed: Container[int]) -> None:
        self.parents = self.needs = ()
        self.stamp, self.wanted, self.learnt = 0, True, False
        self._ends: dict[int, ref[Node]] = {}
        ends: dict[int, Node] = {}
        for node in order:
            function: Any = node._ctx
            if type(function) is Freed:
                self._ends |= {key: end for key, end in function._ends.items() if end() is not None}
            for one in (node, *function.parents):
                if id(one) not in freed:
                    ends[id(one)] = one
        self._ends |= {key: ref(one) for key, one in ends.items()}

    def leads(self, node: Node, targets: Sequence[Node]) -> bool:
        """Whether a freed tensor may have depended on one of these: that one stayed, or was freed as well."""
        for target in targets:
            end = self._ends.get(id(target))
            if target is not node and (type(target._ctx) is Freed or (end is not None and end() is target)):
                return True
        return False

    def backward(self, grad: LazyBuffer) -> Grads:
        raise RuntimeError(
            "backward: this part of the graph was freed by an earlier backward(); "
            "call that one with retain_graph=True, or detach() what is carried over"
        )


def operands_first(root: Node, through_open: bool = False, ends: Container[int] = ()) -> list[Node]:
    """Every recorded tensor on which ``root`` depends, ``root`` included, each after its operands.

    Args:
      through_open: also where no gradient is required but the operands leave it open.
      ends: ids of tensors behind which nothing is looked at.
    """
    _ = root.lazydata  # and with it the graph of the newest version
    if is_leaf(root, through_open) or id(root) in ends:
        return []
    now = Clock.now
    waiting: dict[int, bool] = {}  # whether a node that was met waits for its operands
    done: list[Node] = []
    stack: list[Node] = [root]
    paired = Pair.any
    if paired:
        stack = [*_recorded(partners(root), through_open, ends), root]
    while stack:
        node = stack[-1]
        number = id(node)
        if number in waiting:
            stack.pop()
            if waiting[number]:
                waiting[number] = False
                done.append(node)
            continue
        waiting[number] = True
        function: Any = node._ctx
        parents = function.parents if function.stamp == now else operands(function)
        for parent in parents:
            context = parent._ctx
            if context is None or not (through_open or context.wanted):
                continue
            number = id(parent)
            if number not in waiting and number not in ends:
                stack.append(parent)
        if paired:  # both parts of a complex tensor come before what is computed from either
            others = [one for parent in parents for one in partners(parent)]
            stack.extend([one for one in _recorded(others, through_open, ends) if id(one) not in waiting])
    return done


def _recorded(nodes: Sequence[Node], through_open: bool, ends: Container[int]) -> list[Node]:
    """Those that differentiation goes through."""
    return [node for node in nodes if not is_leaf(node, through_open) and id(node) not in ends]


def everything(root: Node) -> tuple[list[Node], list[Node]]:
    """Every recorded tensor on which ``root`` depends, each after its operands; and where its graph ends.

    It also ends at a tensor that was told to require a gradient and was computed from what leaves that open.
    """
    order = operands_first(root, through_open=True)
    found: dict[int, Node] = {} if order else {id(root): root}
    for node in order:
        context = node._ctx
        assert context is not None
        if node._wish is True and not context.wanted:
            found[id(node)] = node
        found.update((id(p), p) for p in operands(context) if p._ctx is None)
    return order, list(found.values())


def depends_on_a_wish(root: Node) -> bool:
    """Whether a leaf on which ``root`` depends requires a gradient, whatever the tensors between them say."""
    if root._ctx is None:
        return root._wish is True
    for node in operands_first(root, through_open=True):
        assert node._ctx is not None
        if any(parent._ctx is None and parent._wish is True for parent in operands(node._ctx)):
            return True
    return False


def operands(function: Function) -> Sequence[Node]:
    """The operands of a function as they were when it was applied."""
    parents: Any = function.parents
    stamp = function.stamp
    if stamp == Clock.now:  # nothing at all was written since
        return parents  # type: ignore[no-any-return]
    for parent in parents:
        if parent._home is not None:
            _ = parent.lazydata  # and with it the graph of the newest version
    for parent in parents:
        context = parent._ctx
        if context is not None and context.renewed and context.since > stamp:
            parents = [_before(parent, stamp) for parent in parents]
            break
    if Severed.any:
        _check_severed(function, parents)
    return parents  # type: ignore[no-any-return]


def _before(node: Any, stamp: int) -> Any:
    """A tensor as it was before it was written with a gradient, or became a view, if that was later than ``stamp``."""
    while node._ctx is not None and node._ctx.renewed and node._ctx.since > stamp:
        node = node._ctx.before
        _ = node.lazydata  # and with it the graph of the newest version
    return node


def _check_severed(function: Function, parents: Sequence[Any]) -> None:
    """Raises a RuntimeError if an operand was cut off its graph after the function was applied to it."""
    for parent in parents:
        if getattr(parent, "_severed", 0) > function.stamp:
            raise RuntimeError(
                f"backward: an operand of {function.name}, of shape {parent.shape}, was cut off what it was computed "
                "from (detach_, replace) after it was used; detach() gives a tensor of its own"
            )


def is_leaf(node: Node, through_open: bool) -> bool:
    """Whether differentiation ends at ``node``."""
    return node._ctx is None or not (through_open or node._ctx.wanted)


def _open_needs(parents: Sequence[Node], on_the_way: Container[int]) -> tuple[bool, ...]:
    return tuple([
        id(p) in on_the_way and p._wish is not False and p.lazydata.dtype.kind == "float" for p in parents
    ])  # fmt: skip


def _leading(order: Sequence[Node], targets: Sequence[Node]) -> set[int]:
    """The targets and the nodes that depend on them, by id; ``order`` has each node after its operands.

    What was written as data may depend on them: its function says so when a gradient comes. So may what was freed.
    """
    found = {id(target) for target in targets}
    if Pair.any:
        found |= {id(one) for target in targets for one in partners(target)}
    for node in order:
        function: Any = node._ctx
        if (
            function is UNRECORDED
            or not found.isdisjoint(map(id, operands(function)))
            or (type(function) is Freed and function.leads(node, targets))
        ):
            found.add(id(node))
            if Pair.any:
                found |= {id(one) for one in partners(node)}
    return found


def differentiate(
    root: Node, seed: V, targets: Sequence[Node] | None, order: Sequence[Node], fill: bool = False, rows: bool = False
) -> list[tuple[Node, V]]:
    """The gradient of ``root``, weighted with ``seed``, at the leaves that require one, or at ``targets``.

    Args:
      root: what is differentiated.
      seed: of its shape and dtype. If it is a :class:`Recorded`, so are the gradients: they can be differentiated.
      targets: tensors, which may leave it open whether they require a gradient; None for the leaves.
      order: what :func:`operands_first` says of ``root``; through what leaves it open, if there are targets.
      fill: whether tensors in between that asked for it keep their gradient.
      rows: whether gradients may be row-sparse: :class:`RowSparse` in the place of nodes.

    Returns:
      The tensors that a gradient reaches, each with it; in the order in which the graph first meets them.

    Raises:
      RuntimeError: if a part of the graph was freed.
    """
    if not Registered.any:
        return _differentiate(root, seed, targets, order, fill, rows)
    with going():
        return _differentiate(root, seed, targets, order, fill, rows)


def _differentiate(
    root: Node, seed: V, targets: Sequence[Node] | None, order: Sequence[Node], fill: bool, rows: bool
) -> list[tuple[Node, V]]:
    through_open = targets is not None
    grads: dict[int, Any] = {id(root): seed}
    leaves: dict[int, Node] = {id(root): root} if is_leaf(root, through_open) else {}
    kept: dict[int, Any] = {}
    wanted = frozenset(id(t) for t in targets or ())
    leading = wanted if targets is None else _leading(order, targets)
    again = type(seed) is Recorded
    told = _told if ANOMALY.value and not again else None
    hooked, paired, called = Registered.any, Pair.any, set[Pair]()
    for node in reversed(order):
        if paired:
            call_pairs(node, grads, called)
        grad = grads.pop(id(node), None)
        if grad is None:
            continue
        if hooked:
            grad = called_back(node, grad, fill)
        if wanted and id(node) in wanted:
            kept[id(node)] = grad
        if type(grad) is RowSparse:
            grad = grad.dense()
        function: Any = node._ctx
        if targets is not None and type(function) is Freed and not function.leads(node, targets):
            continue
        parents: Any = operands(function)
        required = function.needs
        if through_open:
            function.needs = _open_needs(parents, leading)
        if again:
            parts = recorded(node, function, parents, grad)
        else:
            parts = function.backward(grad) if told is None else told(node, function, grad)
        stamp = function.stamp
        if stamp != Clock.now and not again:
            written: Any = (node, *function.parents)
            if any(one._home is not None and one._home.written > stamp for one in written):
                _check(node, function, grad, parts)
        for parent, part, need in zip(parents, parts, function.needs, strict=True):
            if part is not None and need:
                like = parent._lazy
                if part.shape != like.shape or part.dtype is not like.dtype:
                    raise RuntimeError(
                        f"the gradient of {function.name} has shape {part.shape} and dtype {part.dtype.name}; "
                        f"its operand has {like.shape} and {like.dtype.name}"
                    )
                number = id(parent)
                if called and not called.isdisjoint(pairs_at(parent)):
                    raise RuntimeError(
                        f"backward: the parts of a complex tensor of shape {like.shape} with a hook were computed "
                        "from one another after it was made; clone() it before register_hook"
                    )
                before = grads.get(number)
                if before is not None:
                    part = summed(before, part)
                grads[number] = part
                context = parent._ctx
                if context is None or not (through_open or context.wanted):
                    leaves[number] = parent
        function.needs = required
    if hooked:
        ends = {id(one): one for one in (*leaves.values(), *(targets or ())) if id(one) in grads}
        for end in list(ends.values()) if paired else ():
            more = {id(one): one for one in call_pairs(end, grads, called) if is_leaf(one, through_open)}
            ends, leaves = ends | more, leaves | more
        grads |= {key: called_back(one, grads[key], fill) for key, one in ends.items()}
    if targets is not None:
        kept |= {key: grads[key] for key in wanted if key in grads}
        found = [(t, kept[id(t)]) for t in targets if id(t) in kept]
    else:
        found = [(leaf, grads[key]) for key, leaf in leaves.items() if key in grads]
    if rows or again:
        return found
    dense: Any = [(t, grad.dense() if type(grad) is RowSparse else grad) for t, grad in found]
    return dense  # type: ignore[no-any-return]


def _told(node: Node, function: Function, grad: LazyBuffer) -> Grads:
    """``function.backward(grad)``, whose nodes know of which function they are the gradient."""
    outer, BACKWARD.of = BACKWARD.of, (function.name, node.lazydata.origin)
    try:
        return function.backward(grad)
    finally:
        BACKWARD.of = outer


def _check(node: Node, function: Function, grad: LazyBuffer, parts: Grads) -> None:
    """Looks whether gradients are made of what was written to since the function was applied.

    Raises:
      RuntimeError: if they are.
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


def differentiate_again(
    root: Node, seed: Node, targets: Sequence[Node] | None, ends: Container[int] = (), fill: bool = False
) -> list[tuple[Node, Any]]:
    """As :func:`differentiate`; of tensors, and gives such, which can be differentiated.

    Args:
      root: what is differentiated.
      seed: of its shape and dtype. The results can be differentiated at it, too.
      targets: tensors, which may leave it open whether they require a gradient; None for the leaves.
      ends: ids of tensors behind which nothing is looked at.
      fill: whether tensors in between that asked for it keep their gradient.
    """
    order = operands_first(root, targets is not None, ends)
    with Switch(MODE, "recording", True), Switch(MODE, "repeating", True):
        found = differentiate(root, Recorded(seed), targets, order, fill)
        return [(node, grad.tensor._apply(Same())) for node, grad in found]


class Expansion:
    """Gradients that were computed without recording how; recorded when somebody differentiates them.

    Args:
      root: what was differentiated.
      seed: the weights of its elements.
      targets: at what.
    """

    __slots__ = ("_found", "root", "seed", "targets")

    def __init__(self, root: Node, seed: Node, targets: Sequence[Node]) -> None:
        self.root, self.seed, self.targets = root, seed, targets
        self._found: dict[int, Any] | None = None

    def recorded(self) -> dict[int, Any]:
        """The gradients by the ids of targets, recorded; those that none reaches are missing."""
        if self._found is None:
            found = differentiate_again(self.root, self.seed, self.targets)
            self._found = {id(node): grad for node, grad in found}
        return self._found


class Gradient(Function):
    """A gradient, as the operand of what is computed with it.

    Args:
      expansion: how it was computed.
      target: at what.
    """

    __slots__ = ("_expansion", "_parents", "_target")

    lasting = True

    def __init__(self, expansion: Expansion, target: Node) -> None:
        self._expansion, self._target = expansion, target
        self._parents: tuple[object, ...] | None = None
        self.stamp = Clock.now
        self.wanted = any(tensor._wish is True for tensor in (expansion.root, expansion.seed))
        self.needs, self.learnt = (self.wanted,), False

    @property
    def parents(self) -> tuple[object, ...]:  # type: ignore[override]
        """The same gradient, recorded."""
        if self._parents is None:
            self._parents = (self._expansion.recorded()[id(self._target)],)
        return self._parents

    def backward(self, grad: LazyBuffer) -> Grads:
        return (grad,)


def free_between(root: Node, targets: Sequence[Node]) -> None:
    """Frees what a gradient of ``root`` at targets goes through: of what requires one, without the targets.

    A target that depends on another one is gone through.
    """
    order = operands_first(root, through_open=True)
    leading = _leading(order, targets)
    found = []
    for node in order:
        context = node._ctx
        if context is not None and context.wanted and any(id(parent) in leading for parent in operands(context)):
            found.append(node)
    free(found, order)


def free(freed: Sequence[Node], order: Sequence[Node]) -> None:
    """Drops the graph of tensors, and with it the intermediate results that only it kept.

    Args:
      freed: the tensors.
      order: everything on which they depend, as :func:`operands_first` has it through what leaves it open.
    """
    if freed:
        gone = Freed(order, {id(node) for node in freed})
        for node in freed:
            node._ctx = gone
