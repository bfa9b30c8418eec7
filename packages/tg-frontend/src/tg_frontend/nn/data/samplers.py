"""In which order a loader takes items."""

from __future__ import annotations

from types import GenericAlias

from .sets import generator_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any


class Sampler:
    """Numbers of items, one after another. A subclass implements ``__iter__``, and ``__len__`` if it can.

    Example:
      >>> from tg_frontend import nn
      >>> class Backwards(nn.data.Sampler):
      ...     def __iter__(self):
      ...         return iter([2, 1, 0])
      >>> [batch.tolist() for batch in nn.data.DataLoader([5, 6, 7], sampler=Backwards())]
      [[7], [6], [5]]
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """What it gives, for who checks types."""
        return GenericAlias(cls, item)

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(): write which numbers it gives")


class SequentialSampler(Sampler):
    """The items in order.

    Example:
      >>> from tg_frontend import nn
      >>> list(nn.data.SequentialSampler("abc"))
      [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """The items in an order that is drawn with each pass.

    Args:
      data_source: the data set.
      replacement: whether an item may be drawn again.
      num_samples: how many; all if not given.
      generator: a seed, or a ``numpy.random.Generator``.

    Raises:
      ValueError: if no sample is wanted.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.data.RandomSampler("abc", generator=0))
      [0, 1, 2]
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"RandomSampler: {num_samples} samples")
        self.data_source, self.replacement, self._count = data_source, replacement, num_samples
        self.generator = generator_of(generator)

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), len(self)
        if self.replacement:
            yield from self.generator.integers(0, count, wanted).tolist()
            return
        while wanted > 0:
            yield from self.generator.permutation(count)[:wanted].tolist()
            wanted -= count

    def __len__(self) -> int:
        return len(self.data_source) if self._count is None else self._count


class SubsetRandomSampler(Sampler):
    """Some items in an order that is drawn with each pass.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.data.SubsetRandomSampler([7, 3], generator=0))
      [3, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator_of(generator)

    def __iter__(self) -> Iterator[int]:
        return (self.indices[n] for n in self.generator.permutation(len(self.indices)).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Items drawn with probabilities.

    Args:
      weights: of the items; they need not add up to 1.
      num_samples: how many are drawn.
      replacement: whether an item may be drawn again.
      generator: a seed, or a ``numpy.random.Generator``.

    Raises:
      ValueError: if a weight is negative, or there are too few items.

    Example:
      >>> from tg_frontend import nn
      >>> list(nn.data.WeightedRandomSampler([0.0, 3.0, 0.0], 2))
      [1, 1]
    """

    def __init__(
        self, weights: Iterable[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        import numpy as np

        self.weights = np.asarray(list(weights), np.float64)
        there = int((self.weights > 0).sum())
        if (self.weights < 0).any() or not there or (not replacement and there < num_samples):
            raise ValueError(f"WeightedRandomSampler: {num_samples} of {there} items with weights above 0")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator_of(generator)

    def __iter__(self) -> Iterator[int]:
        share = self.weights / self.weights.sum()
        return iter(self.generator.choice(len(share), self.num_samples, self.replacement, share).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """The numbers of another sampler in lists.

    Raises:
      ValueError: if the size is not positive.

    Example:
      >>> from tg_frontend import nn
      >>> list(nn.data.BatchSampler(range(5), batch_size=2, drop_last=False))
      [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise ValueError(f"BatchSampler: a batch size of {batch_size!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for number in self.sampler:
            batch.append(number)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count: int = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
