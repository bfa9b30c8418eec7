"""What a record takes from outside of its arguments: memory, the tensors that show it, and the ways to them.

A record refers to memory. The function that it stands for refers to tensors, which may be given other memory, and to
names, which may be given other tensors. While a function is recorded an :class:`Observer` notes which memory its graphs
use; :class:`Outside` tells before each replay whether the function would still use the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from tg_lazy import LazyBuffer, Storage
from tg_lazy.ops import LEAVES, MEMORY
from tg_runtime import uncaptured
from tg_runtime.host.late_interrupts import finaliser

from ..memory.realization import Moves, live, reachable, realize_all
from ..tensor import Tensor
from .call import JitError
from .grads import Change
from .reach import Ways

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .grads import Needs
    from .reach import Reached


class Observer:
    """Looks at the graphs that a function computes while it is recorded.

    What was there before the call and is to have memory of its own is computed first, and not recorded: a replay that
    computed it again would undo what was assigned to it since.

    Args:
      newest: number of the last Storage that was there before the call.

    Attributes:
      storages: the memory from before the call that the graphs use.
      fused: values from before the call that are not in memory, and are computed by the record's kernels.
      reached: the tensors that ``backward`` was about to give a gradient, by number, each with the gradient that it had
        the first time.
    """

    def __init__(self, newest: int) -> None:
        self._newest = newest
        self._later: set[Storage] = set()
        self.storages: dict[Storage, None] = {}
        self.fused: dict[int, ref[LazyBuffer]] = {}
        self.reached: dict[int, Tensor | None] = {}
        tensors = live()
        self._tensors = {id(tensor): (ref(tensor), ref(tensor.lazydata.base)) for tensor in tensors}
        self._grads = {
            id(tensor): ref(tensor.grad) for tensor in tensors if isinstance(tensor, Tensor) and tensor.grad is not None
        }
        roots = [tensor.lazydata.base for tensor in tensors]
        waiting = reachable([root for root in roots if root.op not in LEAVES and not root.is_realized])
        self._before = {id(node): ref(node) for node in waiting if node.op not in LEAVES and not node.is_realized}

    def reach(self, tensor: Tensor) -> None:
        """Notes that ``backward`` is about to give a tensor a gradient, or to add to the one that it has.

        What is added to is put in memory first, and that is not recorded: each replay is to add to it.
        """
        if id(tensor) in self.reached:
            return
        grad = self.reached[id(tensor)] = tensor.grad
        if grad is not None and grad.is_sparse:
            if self._had(tensor, grad):
                raise JitError(
                    f"TinyJit: the row-sparse gradient of a tensor of shape {tensor.shape} from before the call would "
                    "grow with each replay: call zero_grad() before it, or make the gradient dense with to_dense()"
                )
            return
        if grad is not None and self.knew(grad) and not grad.lazydata.is_realized:
            with uncaptured():
                grad._memory().settle()
                realize_all([grad.lazydata])
            storage = grad.lazydata.storage
            assert storage is not None
            self._later.add(storage.root)

    def _had(self, tensor: Tensor, grad: Tensor) -> bool:
        """Whether a tensor had this gradient before the call."""
        weak = self._grads.get(id(tensor))
        return weak is not None and weak() is grad

    def look(self, outputs: Sequence[LazyBuffer]) -> None:
        """Notes what ``outputs`` use."""
        due = [node for node in reachable(outputs) if node.op in MEMORY and self.waits(node)]
        if due:
            realize_all(due)
            self._later.update(node.storage.root for node in due if node.storage is not None)
        for node in reachable(outputs):
            storage = node.storage
            if storage is None:
                if self.waits(node):
                    self.fused[id(node)] = self._before[id(node)]
            elif self.was_there(storage.root):
                self.storages[storage.root] = None

    def used(self) -> list[LazyBuffer]:
        """Of :attr:`fused` what the function found, and did not make itself.

        Equal graphs are one node: of constants and variables alone the function may have built what somebody built
        before it. It is a value from before if a tensor from before holds it.
        """
        nodes = [node for one in self.fused.values() if (node := one()) is not None]
        held = {tensor.lazydata.base for tensor in live() if isinstance(tensor, Tensor) and self.knew(tensor)}
        return [node for node in nodes if node in held or not _needs_no_memory(node)]

    def waits(self, node: LazyBuffer) -> bool:
        """Whether a node is older than the call and not in memory yet."""
        known = self._before.get(id(node))
        return known is not None and known() is node and not node.is_realized

    def knew(self, tensor: Tensor) -> bool:
        """Whether a tensor is older than the call."""
        known = self._tensors.get(id(tensor))
        return known is not None and known[0]() is tensor

    def gradients(self) -> list[Change]:
        """What the call did to the ``grad`` of tensors that are older than the call, and what it took from there."""
        found: list[Change] = []
        for tensor in live():
            assert isinstance(tensor, Tensor)
            if not self.knew(tensor):
                continue
            weak, grad = self._grads.get(id(tensor)), tensor.grad
            before = None if weak is None else weak()
            changed = (weak is not None) is not (grad is not None) or (grad is not None and before is not grad)
            storages = [] if before is None else [node.storage for node in before._nodes()]
            used = any(storage is not None and storage.root in self.storages for storage in storages)
            if not (changed or used or id(tensor) in self.reached):
                continue
            if used:
                needs: Needs = before
            elif id(tensor) not in self.reached:
                needs = weak is not None
            else:  # what backward found there was put there by the call: what was there before it makes no difference
                needs = None if weak is not None or self.reached[id(tensor)] is not None else False
            found.append(Change(tensor, needs, changed, grad))
        return found

    def homes(self) -> set[int]:
        """The memories, by number, that tensors have which are older than the call."""
        return {
            id(home) for tensor in live() if isinstance(tensor, Tensor) and self.knew(tensor)
            and (home := tensor._home) is not None
        }  # fmt: skip

    def moved(self, tensor: Tensor) -> bool:
        """Whether a tensor is older than the call, and got other memory since."""
        base = tensor.lazydata.base
        if not self.knew(tensor) or self._tensors[id(tensor)][1]() is base:
            return False
        return base.storage is None or not self.was_there(base.storage.root)

    def was_there(self, storage: Storage) -> bool:
        """Whether memory is older than the call."""
        return storage.uid <= self._newest or storage in self._later


def _needs_no_memory(node: LazyBuffer) -> bool:
    return all(one.storage is None and one.op not in MEMORY for one in reachable([node]))


class Outside:
    """The memory from outside that a record uses, and whether the function would use the same now.

    Args:
      roots: the memory.
      fused: values that are not in memory, and are computed by the record's kernels.
      reached: what the function reached when it was recorded.
      constants: tensors of one number each that are no memory yet: where the function computed with them in Python, no
        kernel shows it.
      left: tensors that the function made and left somewhere, in memory that each replay writes: a call would put them
        there again where somebody took them away.
      after: what the function reached after it was recorded.

    Attributes:
      roots: the memory.
      moves: how often any tensor had been given other memory when it was looked whether one of these was; less than 0
        if one of them is gone since.
      ways: the steps on the way to tensors that must lead where they led; None if there are none.
    """

    def __init__(
        self,
        roots: Collection[Storage],
        fused: Collection[LazyBuffer],
        reached: Reached,
        constants: Collection[Tensor],
        left: Collection[Tensor],
        after: Reached,
    ) -> None:
        self.roots = frozenset(roots)
        self.moves = -1
        self._fused = [ref(node) for node in fused]
        self._holders: dict[Storage, list[ref[Tensor]]] = {root: [] for root in roots}
        self._inner = {s.root for node in reachable(list(fused)) if (s := node.storage) is not None}  # of those values
        self._unheld: list[tuple[ref[Tensor], ref[LazyBuffer]]] = []
        shown, known = set(fused), set(map(id, constants))
        found = []
        for tensor in live():
            assert isinstance(tensor, Tensor)
            storage, base = tensor.lazydata.storage, tensor.lazydata.base
            if storage is not None and storage.root in self._holders:
                self._holders[storage.root].append(ref(tensor, self._gone))
            elif base in shown or id(tensor) in known:  # results may be the same numbers, and change as they like
                self._unheld.append((ref(tensor, self._gone), ref(base)))
            else:
                continue
            found.append(tensor)
        self._wishes = [  # before the function and after it, which may set them itself
            (ref(tensor), (reached.wishes[id(tensor)], tensor._wants_grad))
            for tensor in found if id(tensor) in reached.wishes and tensor._ctx is None
        ]  # fmt: skip
        to_found = reached.steps_to([tensor for tensor in found if tensor in reached])
        to_left = after.steps_to([tensor for tensor in left if id(tensor) in after.tensors])
        ways = Ways(to_found, to_left)
        self.ways = ways if len(ways) else None
        self._left = [(ref(tensor), tensor.lazydata.storage) for tensor in left]
        self._look()

    @finaliser
    def _gone(self, _: ref[Tensor]) -> None:
        self.moves = -1

    def changed(self) -> str:
        """What the function would find changed, in words; nothing if it would use what the record uses."""
        if self.moves != Moves.number:
            why = self._look()
            if why:
                return why
        if self.ways is not None and not self.ways.same():
            return "an attribute, a variable or an element of a container is another object"
        return ""

    def _look(self) -> str:
        """Looks at the tensors, and remembers for which number of moves nothing had changed."""
        self.moves, moves = -2, Moves.number
        why = self._looked()
        if self.moves == -2 and not why:  # and nothing was lost meanwhile
            self.moves = moves
        return why

    def _looked(self) -> str:
        for root, refs in self._holders.items():
            holders = [tensor for one in refs if (tensor := one()) is not None]
            if not holders and root not in self._inner:
                return f"memory of {root.size} x {root.dtype.name} that it used is no tensor's any more"
            for tensor in holders:
                storage = tensor.lazydata.storage
                if storage is None or storage.root is not root:
                    lazy = tensor.lazydata
                    return f"a tensor of shape {lazy.shape}, {lazy.dtype.name}, that it used has other memory"
        for weak, value in self._unheld:
            holder = weak()
            if holder is not None and holder.lazydata.base is not value():
                return f"a tensor of shape {holder.shape} that it used, and that was not computed, has another value"
        for weak, wishes in self._wishes:
            leaf = weak()
            if leaf is not None and leaf._wants_grad not in wishes and leaf._ctx is None:
                return f"requires_grad of a tensor of shape {leaf.shape} that it used is {leaf._wants_grad}"
        for weak, storage in self._left:
            kept = weak()
            if kept is not None and kept.lazydata.storage is not storage:
                return f"a tensor of shape {kept.shape} that it left somewhere has other memory"
        for one in self._fused:
            node = one()
            if node is None or node.is_realized or node.stale is not None:
                return "a tensor that it used was not computed yet, and is now"
        return ""
