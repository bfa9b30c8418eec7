"""What a call that is recorded does: its steps, what it uses from before, and what a replay could not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from tg_lazy import LazyBuffer, Ops, Storage
from tg_lazy.ops import LEAVES
from tg_lazy.trackers import max_size, row_major_offset
from tg_runtime import Buffer, BufferCopy, CompiledRunner, ExecItem, InterpretedRunner, buffer_of, uncaptured

from ..memory.home import Bits
from ..memory.realization import live, reachable, realize_all
from ..tensor import Tensor
from .call import Call, JitError, Pin
from .outcome import copied_together, whole_of
from .outside import Observer
from .reach import Reached
from .results import others_in, rebuilt, tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterable

R = TypeVar("R")


def written_by(item: ExecItem) -> Iterable[int]:
    """Which buffers a step writes, by position."""
    if isinstance(item.prg, CompiledRunner):
        return item.prg.spec.outs
    if isinstance(item.prg, InterpretedRunner):
        return {store.arg[0] for store in item.prg.ast.src}
    if item.prg.outs is not None:
        return item.prg.outs
    return (0,) if isinstance(item.prg, BufferCopy) else range(len(item.bufs))  # of a caller's function nobody knows


def all_written(items: Iterable[ExecItem]) -> set[int]:
    """The numbers (``id``) of the buffers that steps write, or of those that they are parts of."""
    return {id(buffer.base) for item in items for n in written_by(item) if (buffer := item.bufs[n]) is not None}


def _apart(one: Tensor, other: Tensor) -> bool:
    """Whether two results that lie in the same memory by chance have no byte in common."""
    if isinstance(one._home, Bits) or isinstance(other._home, Bits) or one.lazydata.base is not other.lazydata.base:
        return False
    starts = [row_major_offset(tensor.lazydata.st, tensor.lazydata.dtype) for tensor in (one, other)]
    sizes = [max_size(tensor.lazydata.shape) * tensor.lazydata.dtype.itemsize for tensor in (one, other)]
    a, b = starts
    return a is not None and b is not None and (a + sizes[0] <= b or b + sizes[1] <= a)


class Made:
    """What a call that was recorded made: for :class:`~.record.Record`.

    Attributes:
      call: its arguments.
      args: the positional ones as they were given; None if there were others.
      items: what it executed.
      ended: memory between its kernels.
      streams: memory of the random streams that it drew.
      seen: what its graphs used from before.
      reached: what the function could reach before.
      origin: file and line of the function.
    """

    def __init__(self, call: Call, args: tuple[Any, ...] | None, reached: Reached, origin: tuple[str, int]) -> None:
        self.call, self.args, self.reached, self.origin, self.roots = call, args, reached, origin, reached.roots
        self.items: list[ExecItem] = []
        self.ended: list[Buffer] = []
        self.streams: list[Storage] = []
        self.seen = Observer(Storage("CPU", 0, Tensor.arange(0).dtype).uid)
        self.after = reached

    def apart(self, result: R) -> R:
        """The result, where nobody else holds its memory: what the function keeps elsewhere is copied.

        Each call is to have results of its own; what is kept elsewhere is the same memory in every call.
        """
        tensors = tensors_in(result)
        mine = {id(tensor) for tensor in tensors}
        wholes = [whole_of(home).base for tensor in tensors if isinstance(home := tensor._home, Bits)]
        realize_all([whole for whole in wholes if not whole.is_realized])  # of which results are parts
        self.after = Reached(self.roots)
        after = {*self.after.tensors, *self.after.gradients, *(id(change.grad) for change in self.seen.gradients())}
        held: dict[Storage, bool] = {}  # whether a tensor from before holds it
        for tensor in live():
            storage = tensor.lazydata.storage
            if storage is not None and (id(tensor) not in mine or id(tensor) in after):
                assert isinstance(tensor, Tensor)
                held[storage.root] = held.get(storage.root, False) or self.seen.knew(tensor)
        inputs = {one.lazy.storage for one in self.call.tensors}
        written = all_written(self.items)
        outside = {id(home) for one in self.call.tensors if (home := one.handed._home) is not None} | self.seen.homes()
        copied: list[Tensor] = []
        owners: dict[Storage, list[tuple[object, Tensor]]] = {}
        for tensor in tensors:
            storage, home = tensor.lazydata.storage, tensor._home
            # a value in new memory of its own, whose node was made for somebody who is gone, needs no copy
            alone = storage is not None and storage.root not in held and not self.seen.was_there(storage.root)
            indirect = home is not None and not home.direct and not self.seen.knew(tensor)
            if indirect and home is not None and not (alone and tensor.lazydata.is_whole):
                if id(home) in outside:  # a view of a value from outside: memory is made of that
                    with uncaptured():
                        home.settle()
                        realize_all([home.base])
                elif storage is not None or len(tensors) > 1:  # a value that lies there by chance
                    copied.append(tensor)
                continue
            if storage is None or storage in inputs:
                continue
            if home is not None and id(whole_of(home)) in outside:
                continue
            whole = None if home is None else whole_of(home).base.storage
            memories = [storage] if whole is None else [storage, whole]  # bits of a value are computed without it, too
            if any(held.get(one.root) for one in memories):  # which got other memory: the next call is recorded again
                continue
            shared = any(one.root in held for one in memories) or not self._alone(memories, tensors)
            given = id(buffer_of(storage).base) not in written  # by Python, from numbers
            if storage.root in inputs or (not self.seen.was_there(storage.root) and (shared or given)):
                copied.append(tensor)
                continue
            owner = tensor if home is None else whole_of(home)
            others = [other for one in memories for holder, other in owners.get(one, ()) if holder is not owner]
            for one in memories:
                owners.setdefault(one, []).append((owner, tensor))
            if any(not _apart(tensor, other) for other in others):
                copied.append(tensor)  # equal graphs are one node: the same value, though not the same memory
        if not copied:
            return result
        parted = {id(whole_of(tensor._home)) for tensor in copied if tensor._home is not None} - outside
        copied += [tensor for tensor in tensors if (home := tensor._home) is not None and id(whole_of(home)) in parted
                   and all(tensor is not one for one in copied)]  # fmt: skip
        copies = copied_together(copied)
        realize_all([tensor.lazydata for tensor in copies.values()])
        return rebuilt(result, lambda tensor: copies.get(id(tensor), tensor))  # type: ignore[no-any-return]

    @staticmethod
    def _alone(memories: list[Storage], tensors: list[Tensor]) -> bool:
        """Whether a result has all of its memory for itself, or a third of it and no other result has any.

        The rest of it is lost to others as long as the result is there; copying the part would take memory and time.
        """
        part = memories[0]
        if all(one.root is one for one in memories):
            return True
        sharing = [one for tensor in tensors if (one := tensor.lazydata.storage) is not None and one.root is part.root]
        only = len(sharing) == 1 and all(one is part for one in memories)
        return only and 3 * part.nbytes >= part.root.nbytes

    def left_gradients(self, pending: list[LazyBuffer]) -> list[LazyBuffer]:
        """The gradients that the function left at tensors, to be computed with its results.

        Those of tensors that it wrote to were of use in that: they are not computed for their own sake.

        Args:
          pending: assignments that are still to be made.
        """
        written, targets = all_written(self.items), set(pending)
        found = []
        for tensor, _, _, grad in self.seen.gradients():
            base, storage = tensor.lazydata.base, tensor.lazydata.storage
            if grad is None or base in targets:
                continue
            if storage is None or id(buffer_of(storage).base) not in written:
                found += [node for node in grad._nodes() if not (node.is_realized or node.base.op in LEAVES)]
        return found

    def check(self, result: Any) -> None:
        """Looks for what a replay could not do.

        Raises:
          JitError: if there is something.
        """
        kernels = [item.prg for item in self.items if isinstance(item.prg, (CompiledRunner, InterpretedRunner))]
        wanted = {var for kernel in kernels if kernel.ast is not None for var in kernel.ast.variables()}
        unknown = sorted(var.name for var in wanted - set(self.call.values))
        if unknown:
            raise JitError(
                f"TinyJit: the function uses the value of the variable {', '.join(unknown)}, which is not among its "
                "arguments, so that a record would keep the value of now: pass the bound variable, or a tensor with it"
            )
        taken = {id(change.tensor) for change in self.seen.gradients()}
        for one in self.call.tensors:
            if one.handed.lazydata.storage is not one.lazy.storage:
                raise JitError(
                    f"TinyJit: the function gave {one.name}, of shape {one.lazy.shape}, other memory, which a replay "
                    "would not do: use assign, or return the new tensor"
                )
            left = one.handed.grad is not one.tensor.grad or id(one.handed) in self.seen.reached
            if one.copied and (left or id(one.tensor) in taken):
                raise JitError(f"TinyJit: the function uses the gradient of {one.name}, or gave it one, which a replay "
                               "would not do: return it; or pass the whole tensor, not a part of it")
            if id(one.handed) in self.after.tensors and id(one.handed) not in self.reached.tensors and not one.copied:
                raise JitError(f"TinyJit: the function leaves {one.name} itself in an attribute, a list or the like, "
                               "where a replay would not put it: leave a realised copy there, or return it")
            if id(one.tensor) in taken:
                self.call.pins[one.name] = Pin(one.tensor, itself=True)
        if not self.items:
            raise JitError("TinyJit: the function executed nothing, so there is nothing to record")
        self.call.tensors = [one for one in self.call.tensors if one.name not in self.call.pins]
        for other in others_in(result):
            if hasattr(other, "__next__"):
                raise JitError(f"TinyJit: the result is a {type(other).__name__}; return a list, tuple or dict")
            inside = Reached([other]).tensors.values() if hasattr(other, "__dict__") else ()
            if any((s := t.lazydata.storage) is None or not self.seen.was_there(s.root) for t in inside):
                raise JitError(
                    f"TinyJit: the result is a {type(other).__name__} with tensors that the function made, which a "
                    "replay would not make: return them in a list, tuple, dict or dataclass"
                )

    def leftovers(self, result: Any) -> list[tuple[ref[Tensor], LazyBuffer]]:
        """What the function left somewhere, uncomputed or as a view of an argument, and would be another value in the
        next call: with its graph."""
        handed = {id(one.handed) for one in self.call.tensors if id(one.handed) not in self.after.tensors}
        mine = {id(tensor) for tensor in tensors_in(result)}
        inputs = {one.lazy.storage for one in self.call.tensors}
        found, known = [], dict[LazyBuffer, bool]()
        for tensor in live():
            assert isinstance(tensor, Tensor)
            lazy = tensor.lazydata
            if id(tensor) in mine or id(tensor) in handed or self.seen.knew(tensor):
                continue
            if lazy.is_realized:
                if lazy.storage in inputs:
                    found.append((ref(tensor), lazy))
                continue
            if lazy.base not in known:
                known[lazy.base] = self._passes(lazy.base)
            if known[lazy.base] or not lazy.st.numeric:
                found.append((ref(tensor), lazy))
        return found

    def shown(self, result: Any) -> list[Storage]:
        """The memory from before the call that tensors show which the function left somewhere."""
        mine = {id(tensor) for tensor in tensors_in(result)}
        found = dict[Storage, None]()
        for tensor in live():
            storage = tensor.lazydata.storage
            if storage is None or id(tensor) in mine or not self.seen.was_there(storage.root):
                continue
            assert isinstance(tensor, Tensor)
            if not self.seen.knew(tensor):
                found[storage.root] = None
        return list(found)

    @staticmethod
    def _passes(base: LazyBuffer) -> bool:
        """Whether the value of a node depends on variables, or on memory, which may hold something else later."""
        return any(node.storage is not None or node.op is Ops.SYM or not node.st.numeric for node in reachable([base]))
