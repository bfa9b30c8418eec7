"""The ground under Tensor: which memory it sees, and how; the newest version of it, and who shares it."""

from __future__ import annotations

from tg_lazy import LazyBuffer, Ops
from tg_lazy.graph.lazybuffer import graph_lock
from tg_lazy.ops import LEAVES
from tg_lazy.trackers import writes_once
from tg_shape import View

from ..autograd.functions import Function, Seen
from ..host import transfer
from ..memory.home import Memory, proxy
from ..memory.realization import Moves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

_VIEW = Ops.VIEW


class Sharing:
    """What a tensor holds, and its place among those that share memory."""

    # _home: the memory, once a view shares it or it was written; _place: how a view sees the memory, while _lazy, whose
    # base is only where the value comes from, does not tell; _cut: no gradient flows to the memory
    __slots__ = ("__weakref__", "_ctx", "_cut", "_home", "_lazy", "_parameter", "_place", "_wants_grad", "grad")

    _lazy: LazyBuffer
    _wants_grad: bool | None
    _parameter: bool  # set where a layer made this to be learnt, and nowhere else
    grad: Self | None
    _ctx: Function | None
    _home: Memory | None
    _place: LazyBuffer | None
    _cut: bool

    @property
    def lazydata(self) -> LazyBuffer:
        """The graph of this tensor; of memory that was assigned to, also through a view, the newest version."""
        lazy, home = self._lazy, self._home
        if home is not None and home.base is not (lazy.srcs[0] if lazy.op is _VIEW else lazy):
            return self._follow(home)
        return lazy

    @lazydata.setter
    def lazydata(self, lazy: LazyBuffer) -> None:
        self._lazy, self._home, self._place = lazy, None, None
        Moves.number += 1

    def _part(self) -> None:
        """Parts this new tensor from those that have the same node."""
        self._home, self._place = Memory.apart(self._lazy), proxy(self._lazy.shape)

    def _share_with(self, operands: Sequence[LazyBuffer]) -> None:
        """Parts this new result from operands, if it is seen in a node of theirs, and from a smaller node of its own.

        Repeated elements are converted before they are repeated, for example: what was computed is no memory of these.
        """
        lazy = self._lazy
        base = lazy.base
        if any(operand.base is base for operand in operands) or not (base.op in LEAVES or writes_once(lazy.st)):
            self._part()

    def _memory(self) -> Memory:
        """The memory of this tensor and its views."""
        home = self._home
        if home is None:
            with graph_lock:
                home = self._home
                if home is None:
                    lazy = self._lazy
                    home = Memory.of(lazy)
                    if not home.direct:
                        self._place = proxy(lazy.shape)
                    self._home = home
        return home

    def _owns(self) -> bool:
        """Whether the memory is there, and may be written where it is."""
        home = self._home
        return (home is None or home.direct) and transfer.is_own(self.lazydata)

    def _lend(self) -> None:
        """Sees to it that the memory is this tensor's alone, which is about to be handed out to be written."""
        home = self._home
        if (home is not None and not home.direct) or self.lazydata.base.shared:
            self._memory().settle()

    def _show(self, out: Self, function: Function) -> None:
        """Makes ``out``, which ``function`` gave, a view of this tensor's memory; or not, if it cannot be one."""
        home, place = self._home or self._memory(), self._place
        if place is not None:
            place = function.forward(place)
        if len((place or out._lazy).st.views) > 1:
            out._part()
        else:
            out._home, out._place, out._cut = home, place, self._cut

    def _show_strided(
        self, out: Self, strides: Callable[[tuple[int, ...]], tuple[int, ...]], offset: Callable[[tuple[int, ...]], int]
    ) -> Self:
        """Makes ``out``, of elements of this tensor, a view of its memory.

        Args:
          strides: from this tensor's strides to those of ``out``.
          offset: from this tensor's strides to how far the first element of ``out`` is from that of this tensor.
        """
        home = self._memory()
        seen = self._place or self.lazydata
        view = seen.st.views[-1]
        if len(seen.st.views) > 1 or view.mask is not None or not seen.st.numeric:
            out._part()
            return out
        steps: Any = view.strides
        out._home, out._cut = home, self._cut
        out._place = seen.seen_through(View(out._lazy.shape, strides(steps), view.offset + offset(steps)))
        return out

    def _follow(self, home: Memory) -> LazyBuffer:
        """Looks at the newest version of the memory."""
        with graph_lock:
            st, base = (self._place or self._lazy).st, home.base
            self._lazy, self._place = base.seen(st), None
        node = home.node
        if node is not None and not self._cut:
            before = object.__new__(type(self))  # of which nothing but the graph is wanted
            before._lazy = LazyBuffer.const(0, self._lazy.dtype, self._lazy.shape, self._lazy.device)
            before.grad = before._home = before._place = None
            before._ctx, before._wants_grad, before._cut = self._ctx, self._wants_grad, False
            function = Seen(st)
            function.forward(node.lazydata)
            function.parents, function.wanted, function.needs, function.stamp = (node,), True, (True,), home.written
            function.before, function.since = before, home.written
            self._ctx, self._wants_grad = function, True
        return self._lazy
