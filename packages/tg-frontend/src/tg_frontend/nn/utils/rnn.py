"""Sequences of several lengths as one tensor, by the names of ``torch.nn.utils.rnn``.

A packed sequence holds no padding: the elements of the first step of all sequences, the longest first, then those of
the second step of all that have one, and so on. Recurrent layers take it in place of a tensor: each sequence ends, and
in the other direction begins, at its own last step.
"""

from __future__ import annotations

from typing import NamedTuple

from tg_dtype import dtypes

from ...keywords import offered
from ...tensor import Tensor
from ..absent import refusing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    import numpy.typing as npt

    Positions = npt.NDArray[np.int64]

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence(NamedTuple):
    """Sequences without padding, step by step; made by :func:`pack_padded_sequence` and :func:`pack_sequence`.

    Attributes:
      data: shape (elements of all sequences, *features).
      batch_sizes: shape (steps,), int64: how many sequences have each step.
      sorted_indices: shape (batch,), int64: the sequence that stands at each place, the longest first; None if they
        were given in that order.
      unsorted_indices: shape (batch,): the place of each sequence; or None.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> packed = nn.utils.rnn.pack_sequence([Tensor([1, 2, 3]), Tensor([4, 5])])
      >>> packed.data, packed.batch_sizes
      (Tensor([1, 4, 2, 5, 3]), Tensor([2, 2, 1], dtype=int64))
      >>> nn.utils.rnn.unpack_sequence(nn.utils.rnn.PackedSequence(packed.data, Tensor([2, 2, 1])))
      [Tensor([1, 2, 3]), Tensor([4, 5])]
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *wanted: Any, **named: Any) -> PackedSequence:
        """The elements on another device, or of another dtype; see :meth:`Tensor.to`.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.0, 2.0])]).to("float16").data
          Tensor([1., 2.], dtype=float16)
        """
        return self._replace(data=self.data.to(*wanted, **named))

    def cpu(self) -> PackedSequence:
        """The elements on the device CPU.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.0, 2.0])]).cpu().data.device
          'CPU'
        """
        return self._replace(data=self.data.cpu())

    def cuda(self) -> PackedSequence:
        """The elements on the device CUDA, which has to be there.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.0, 2.0])]).cuda().data.device  # doctest: +SKIP
          'CUDA'
        """
        return self._replace(data=self.data.cuda())

    def long(self) -> PackedSequence:
        """The elements as int64.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.5, 2.0])]).long().data
          Tensor([1, 2], dtype=int64)
        """
        return self._replace(data=self.data.cast(dtypes.int64))

    def int(self) -> PackedSequence:
        """The elements as int32.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.5, 2.0])]).int().data
          Tensor([1, 2])
        """
        return self._replace(data=self.data.cast(dtypes.int32))

    def short(self) -> PackedSequence:
        """The elements as int16.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.5, 2.0])]).short().data
          Tensor([1, 2], dtype=int16)
        """
        return self._replace(data=self.data.cast(dtypes.int16))

    def char(self) -> PackedSequence:
        """The elements as int8.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.5, 2.0])]).char().data
          Tensor([1, 2], dtype=int8)
        """
        return self._replace(data=self.data.cast(dtypes.int8))

    def byte(self) -> PackedSequence:
        """The elements as uint8.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1.5, 2.0])]).byte().data
          Tensor([1, 2], dtype=uint8)
        """
        return self._replace(data=self.data.cast(dtypes.uint8))

    def float(self) -> PackedSequence:
        """The elements as float32.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1, 2])]).float().data
          Tensor([1., 2.])
        """
        return self._replace(data=self.data.cast(dtypes.float32))

    def double(self) -> PackedSequence:
        """The elements as float64.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1, 2])]).double().data
          Tensor([1., 2.], dtype=float64)
        """
        return self._replace(data=self.data.cast(dtypes.float64))

    def half(self) -> PackedSequence:
        """The elements as float16.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.utils.rnn.pack_sequence([Tensor([1, 2])]).half().data
          Tensor([1., 2.], dtype=float16)
        """
        return self._replace(data=self.data.cast(dtypes.float16))


class Layout:
    """Where the elements of a packed sequence stand among padded ones, of shape (steps, batch).

    Attributes:
      lengths: of the sequences, in the order in which they were given.
      order: the sequence at each place.
      steps: of the longest.
      padded: for each packed element its number among the padded ones.
    """

    def __init__(self, lengths: Positions, order: Positions) -> None:
        import numpy as np

        self.lengths, self.order = lengths, order
        self.steps = int(lengths.max())
        step, place = np.nonzero(np.arange(self.steps)[:, None] < lengths[order])
        self.padded: Positions = step * len(lengths) + order[place]

    @classmethod
    def of(cls, packed: PackedSequence, name: str) -> Layout:
        """That of a packed sequence, whose parts are checked."""
        import numpy as np

        sizes = _integers(packed.batch_sizes, f"{name}: batch_sizes")
        if not len(sizes) or sizes[-1] < 1 or (np.diff(sizes) > 0).any():
            raise ValueError(f"{name}: batch_sizes are positive and never grow, got {sizes.tolist()}")
        if packed.data.ndim < 1 or packed.data.shape[0] != int(sizes.sum()):
            raise ValueError(f"{name}: data of shape {packed.data.shape} for {int(sizes.sum())} elements")
        batch = int(sizes[0])
        order = np.arange(batch)
        if packed.sorted_indices is not None:
            order = _integers(packed.sorted_indices, f"{name}: sorted_indices")
        if sorted(order.tolist()) != list(range(batch)):
            raise ValueError(f"{name}: sorted_indices are the numbers below {batch}, got {order.tolist()}")
        lengths = np.empty(batch, np.int64)
        lengths[order] = (np.arange(batch) < sizes[:, None]).sum(0)
        return cls(lengths, order)

    def packed(self, padded: Tensor) -> Tensor:
        """The elements without padding, of shape (steps, batch, …)."""
        rows = padded.flatten(0, 1)
        found: Tensor = rows[Tensor(self.padded.astype("int32"), device=padded.device)]
        return found

    def unpacked(self, data: Tensor, value: float = 0.0, steps: int | None = None) -> Tensor:
        """The elements with padding, of shape (steps, batch, …)."""
        import numpy as np

        steps = self.steps if steps is None else steps
        source = np.full(steps * len(self.lengths), -1, np.int32)
        source[self.padded] = np.arange(len(self.padded))
        rows = data[Tensor(source.clip(0), device=data.device)]
        there = self.there(data, steps).reshape(-1, *(1 for _ in data.shape[1:]))
        filled = Tensor.full((), value, dtype=data.dtype, device=data.device)
        return there.where(rows, filled).unflatten(0, (steps, len(self.lengths)))

    def there(self, like: Tensor, steps: int | None = None) -> Tensor:
        """Whether each sequence has each step; shape (steps, batch), on the device of a tensor."""
        import numpy as np

        steps = self.steps if steps is None else steps
        return Tensor(np.arange(steps)[:, None] < self.lengths, device=like.device)


def _integers(values: Any, what: str) -> Positions:
    """A list, an array or a tensor of integers along one axis."""
    import numpy as np

    found = values.numpy() if isinstance(values, Tensor) else np.asarray(values)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"{what}: integers along one axis are wanted, got {values!r}")
    return found.astype(np.int64)


def _lengths(lengths: Any, batch: Any, steps: Any, name: str) -> Positions:
    found = _integers(lengths, f"{name}: lengths")
    if len(found) != batch or not len(found):
        raise ValueError(f"{name}: {len(found)} lengths for {batch} sequences")
    if found.min() < 1 or found.max() > steps:
        raise ValueError(f"{name}: lengths are from 1 to {steps}, got {found.tolist()}")
    return found


def _by_step(padded: Tensor, batch_first: bool, name: str) -> Tensor:
    if padded.ndim < 2:
        raise ValueError(f"{name}: sequences of shape {padded.shape} have no axes of steps and of the batch")
    return padded.transpose(0, 1) if batch_first else padded


def _tensors(sequences: Any, name: str) -> list[Tensor]:
    found = list(sequences)
    for position, one in enumerate(found):
        if not isinstance(one, Tensor) or one.ndim < 1:
            raise TypeError(f"{name}: sequence {position} is no tensor with an axis of steps: {one!r}")
    if not found:
        raise ValueError(f"{name}: at least one sequence is wanted")
    if wrong := [one.shape for one in found if one.shape[1:] != found[0].shape[1:]]:
        raise ValueError(f"{name}: sequences of shapes {found[0].shape} and {wrong[0]} differ behind their first axis")
    return found


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another; None for None.

    Args:
      permutation: shape (N,): the numbers below N.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.rnn.invert_permutation(Tensor([2, 0, 1]))
      Tensor([1, 2, 0], dtype=int64)
    """
    import numpy as np

    if permutation is None:
        return None
    return Tensor(np.argsort(_integers(permutation, "invert_permutation"), kind="stable"), device=permutation.device)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Leaves out the padding of sequences.

    Args:
      input: shape (steps, batch, *features), or (batch, steps, *features) with ``batch_first``.
      lengths: of the sequences, each from 1 to the number of steps. They are read on the host.
      batch_first: whether the batch is the first axis.
      enforce_sorted: whether the longest sequence has to be the first, and so on; if not, they are sorted.

    Raises:
      ValueError: if there are more or fewer lengths than sequences, one is out of range, or they are not sorted though
        ``enforce_sorted``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.rnn.pack_padded_sequence(Tensor([[1, 2, 0], [3, 4, 5]]), [2, 3], True, enforce_sorted=False).data
      Tensor([3, 1, 4, 2, 5])
    """
    import numpy as np

    name = "pack_padded_sequence"
    padded = _by_step(input, batch_first, name)
    known = _lengths(lengths, padded.shape[1], padded.shape[0], name)
    order = np.argsort(-known, kind="stable")
    if enforce_sorted and (np.diff(known) > 0).any():
        raise ValueError(f"{name}: lengths {known.tolist()} grow; with enforce_sorted=False any order is taken")
    layout = Layout(known, order)
    sizes = Tensor((np.arange(layout.steps)[:, None] < known).sum(1))
    data = layout.packed(padded[: layout.steps])
    if enforce_sorted:
        return PackedSequence(data, sizes)
    return PackedSequence(data, sizes, Tensor(order, device=data.device), Tensor(np.argsort(order), device=data.device))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Puts padding behind sequences, up to the length of the longest; the inverse of :func:`pack_padded_sequence`.

    Args:
      sequence: what is packed.
      batch_first: whether the batch is to be the first axis.
      padding_value: what is put behind.
      total_length: how many steps there are to be; those of the longest sequence if not given.

    Returns:
      Shape (steps, batch, *features), or (batch, steps, *features); and the lengths, int64, of shape (batch,), both in
      the order in which the sequences were given.

    Raises:
      ValueError: if the longest sequence is longer than ``total_length``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> packed = nn.utils.rnn.pack_sequence([Tensor([1, 2, 3]), Tensor([4, 5])])
      >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
      (Tensor([[1, 2, 3],
              [4, 5, 0]]), Tensor([3, 2], dtype=int64))
    """
    name = "pad_packed_sequence"
    layout = Layout.of(sequence, name)
    if total_length is not None and total_length < layout.steps:
        raise ValueError(f"{name}: total_length is {total_length}, the longest sequence has {layout.steps} steps")
    padded = layout.unpacked(sequence.data, padding_value, total_length)
    return (padded.transpose(0, 1) if batch_first else padded), Tensor(layout.lengths)


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Stacks sequences of several lengths, with padding up to the length of the longest.

    Args:
      sequences: each of shape (its steps, *features).
      batch_first: whether the batch is to be the first axis, not the second.
      padding_value: what is put behind or before.
      padding_side: ``"right"`` for behind, ``"left"`` for before.

    Returns:
      Shape (steps, batch, *features), or (batch, steps, *features).

    Raises:
      ValueError: if there is no sequence, they differ behind their first axis, or there is no such side.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.rnn.pad_sequence([Tensor([1, 2, 3]), Tensor([4])], batch_first=True, padding_value=9)
      Tensor([[1, 2, 3],
              [4, 9, 9]])
    """
    name = "pad_sequence"
    if padding_side not in ("left", "right"):
        raise ValueError(f'{name}: padding_side is "left" or "right", got {padding_side!r}')
    found = _tensors(sequences, name)
    steps = max(int(one.shape[0]) for one in found)

    def padded(one: Tensor) -> Tensor:
        lack = steps - int(one.shape[0])
        ends = (lack, 0) if padding_side == "left" else (0, lack)
        return one.pad([ends, *(None for _ in one.shape[1:])], value=padding_value)

    return Tensor.stack(*(padded(one) for one in found), dim=0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a batch, each without its padding.

    Args:
      padded_sequences: shape (steps, batch, *features), or (batch, steps, *features) with ``batch_first``.
      lengths: of the sequences, each from 0 to the number of steps.
      batch_first: whether the batch is the first axis.

    Raises:
      ValueError: if there are more or fewer lengths than sequences, or one is out of range.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.rnn.unpad_sequence(Tensor([[1, 2, 3], [4, 9, 9]]), [3, 1], batch_first=True)
      [Tensor([1, 2, 3]), Tensor([4])]
    """
    name = "unpad_sequence"
    padded = _by_step(padded_sequences, batch_first, name)
    known = _integers(lengths, f"{name}: lengths").tolist()
    if len(known) != padded.shape[1] or any(length < 0 or length > padded.shape[0] for length in known):
        raise ValueError(f"{name}: lengths {known} for {padded.shape[1]} sequences of {padded.shape[0]} steps")
    return [padded[:length, place] for place, length in enumerate(known)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of several lengths, see :func:`pack_padded_sequence`.

    Args:
      sequences: each of shape (its steps, *features), with at least one step.
      enforce_sorted: whether the longest sequence has to be the first, and so on; if not, they are sorted.

    Raises:
      ValueError: if there is no sequence, one has no step, they differ behind their first axis, or they are not sorted
        though ``enforce_sorted``.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.rnn.pack_sequence([Tensor([1]), Tensor([2, 3])], enforce_sorted=False).sorted_indices
      Tensor([1, 0], dtype=int64)
    """
    found = _tensors(sequences, "pack_sequence")
    return pack_padded_sequence(pad_sequence(found), [int(one.shape[0]) for one in found], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of which :func:`pack_sequence` made a packed one.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([Tensor([1, 2]), Tensor([3])]))
      [Tensor([1, 2]), Tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences)
    return unpad_sequence(padded, lengths)


offered(globals(), [name for name in __all__ if name != "PackedSequence"], "nn.utils.rnn")

if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.utils.rnn")
