"""Data sets: what has a length and items, and what is only gone through."""

from __future__ import annotations

import bisect
from itertools import accumulate
from types import GenericAlias

from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    import numpy as np


class Dataset:
    """What has items by number. A subclass implements ``__getitem__`` and ``__len__``.

    ``__getitems__``, where there is one, gives the items of a list of numbers at once.

    Example:
      >>> from tg_frontend.nn.data import Dataset
      >>> class Squares(Dataset):
      ...     def __getitem__(self, number):
      ...         return number**2
      ...     def __len__(self):
      ...         return 5
      >>> Squares()[3], len(Squares() + Squares())
      (9, 10)
    """

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        """What its items are, for who checks types: ``Dataset[Tensor]`` is as good a class to inherit from."""
        return GenericAlias(cls, item)

    def __getitem__(self, number: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__(): write what item a number stands for")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} has no __len__(): write how many items there are")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """What is only gone through, from the start: a subclass implements ``__iter__``.

    Example:
      >>> from tg_frontend.nn.data import DataLoader, IterableDataset
      >>> class Counting(IterableDataset):
      ...     def __iter__(self):
      ...         return iter(range(5))
      >>> [batch.tolist() for batch in DataLoader(Counting(), batch_size=2)]
      [[0, 1], [2, 3], [4]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__(): write what it gives one after another")

    def __add__(self, other: Iterable[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """Data sets that are only gone through, one after another.

    Args:
      datasets: the data sets, which are gone through once for each pass.

    Example:
      >>> from tg_frontend import nn
      >>> list(nn.data.ChainDataset(["ab", "c"]))
      ['a', 'b', 'c']
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        return (item for one in self.datasets for item in one)

    def __len__(self) -> int:
        lengths: list[int] = [len(one) for one in self.datasets]
        return sum(lengths)


class TensorDataset(Dataset):
    """Rows of tensors, or of arrays, that belong together: an item is a tuple of one row of each.

    Args:
      tensors: of one length.

    Raises:
      ValueError: if there is none, or the lengths differ.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> pairs = nn.data.TensorDataset(Tensor([[1.0], [2.0]]), Tensor([0, 1]))
      >>> pairs[1], len(pairs)
      ((Tensor([2.]), Tensor(1)), 2)
    """

    def __init__(self, *tensors: Any) -> None:
        lengths = {int(one.shape[0]) for one in tensors if len(one.shape)}
        if not tensors or len(lengths) != 1 or not all(len(one.shape) for one in tensors):
            raise ValueError(f"TensorDataset: shapes {', '.join(str(tuple(t.shape)) for t in tensors) or 'of nothing'}")
        self.tensors = tensors

    def __getitem__(self, number: Any) -> tuple[Any, ...]:
        return tuple(one[number] for one in self.tensors)

    def __getitems__(self, numbers: list[int]) -> tuple[Any, ...]:
        """The rows of a batch of each tensor: put together already.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.data.TensorDataset(Tensor([5, 6, 7])).__getitems__([2, 0])
          (Tensor([7, 5]),)
        """
        return Batch(one[Tensor(numbers, device=one.device)] if isinstance(one, Tensor) else one[numbers]
                     for one in self.tensors)  # fmt: skip

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class ArrayDataset(TensorDataset):
    """Rows of numpy arrays, memory-mapped ones too: only those of a batch are read.

    Args:
      arrays: arrays of one length, or paths of ``.npy`` files, which are mapped.
      transform: called with the rows of a batch, one argument for each array; what it gives takes their place.

    Raises:
      ValueError: if there is none, or the lengths differ.

    Example:
      >>> import numpy as np
      >>> from tg_frontend import nn
      >>> images = nn.data.ArrayDataset(np.arange(6, dtype=np.uint8).reshape(3, 2), transform=lambda x: x / 255)
      >>> [batch.shape for batch in nn.data.DataLoader(images, batch_size=2)]
      [(2, 2), (1, 2)]
    """

    def __init__(self, *arrays: Any, transform: Any = None) -> None:
        import numpy as np

        opened = [np.load(one, mmap_mode="r") if isinstance(one, str) or hasattr(one, "__fspath__") else one
                  for one in arrays]  # fmt: skip
        super().__init__(*opened)
        self.transform = transform

    def __getitem__(self, number: Any) -> Any:
        import numpy as np

        rows = tuple(np.asarray(one[number]) for one in self.tensors)
        rows = rows if self.transform is None else self.transform(*rows)
        return rows[0] if type(rows) is tuple and len(rows) == 1 else rows

    def __getitems__(self, numbers: list[int]) -> Any:
        """The rows of a batch of each array: put together already.

        Example:
          >>> import numpy as np
          >>> from tg_frontend import nn
          >>> nn.data.ArrayDataset(np.arange(5)).__getitems__([4, 1]).tolist()
          [4, 1]
        """
        import numpy as np

        order = np.argsort(numbers, kind="stable")  # a mapped file is read from front to back
        at, back = np.asarray(numbers)[order], np.empty_like(order)
        back[order] = np.arange(len(order))
        rows: Any = tuple(np.asarray(one[at])[back] for one in self.tensors)
        rows = rows if self.transform is None else self.transform(*rows)
        if type(rows) is not tuple:
            return rows
        return rows[0] if len(rows) == 1 else Batch(rows)


class Batch(tuple[object, ...]):
    """What is a batch already, and is not to be put together from items."""

    __slots__ = ()


class Subset(Dataset):
    """Some items of another data set, in an order of their own.

    Example:
      >>> from tg_frontend import nn
      >>> part = nn.data.Subset("abcde", [3, 1])
      >>> [part[n] for n in range(len(part))]
      ['d', 'b']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, number: Any) -> Any:
        return self.dataset[self.indices[number]]

    def __getattr__(self, name: str) -> Any:
        if name != "__getitems__" or not hasattr(vars(self).get("dataset"), name):
            raise AttributeError(f"Subset has no attribute {name!r}")
        return lambda numbers: self.dataset.__getitems__([self.indices[n] for n in numbers])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Data sets one after another.

    Raises:
      ValueError: if there is none.

    Example:
      >>> from tg_frontend import nn
      >>> both = nn.data.ConcatDataset(["abc", "de"])
      >>> both[3], both[-5], len(both)
      ('d', 'a', 5)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: at least one data set is wanted")
        self.cumulative_sizes = list(accumulate(len(one) for one in self.datasets))

    def __getitem__(self, number: int) -> Any:
        count = len(self)
        if not -count <= number < count:
            raise IndexError(f"ConcatDataset: item {number} of {count}")
        number %= count
        place = bisect.bisect_right(self.cumulative_sizes, number)
        return self.datasets[place][number - (self.cumulative_sizes[place - 1] if place else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(Dataset):
    """Data sets side by side: an item is a tuple of one item of each, or a dict of them.

    Args:
      datasets: data sets, of which an item is a tuple.
      named: data sets by name, of which an item is a dict.

    Raises:
      ValueError: if there is none, both kinds are given, or they have different lengths.

    Example:
      >>> from tg_frontend import nn
      >>> nn.data.StackDataset("abc", range(3))[1], nn.data.StackDataset(letter="abc", number=range(3))[2]
      (('b', 1), {'letter': 'c', 'number': 2})
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *datasets: Any, **named: Any) -> None:
        if bool(datasets) == bool(named):
            raise ValueError("StackDataset: data sets are wanted, all with names or all without")
        self.datasets = named or datasets
        lengths = sorted({len(one) for one in self._each()})
        if len(lengths) > 1:
            raise ValueError(f"StackDataset: data sets of {', '.join(map(str, lengths))} items")
        self._length = lengths[0]

    def _each(self) -> tuple[Any, ...]:
        return tuple(self.datasets.values()) if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, number: int) -> Any:
        items = tuple(one[number] for one in self._each())
        return dict(zip(self.datasets, items, strict=True)) if isinstance(self.datasets, dict) else items

    def __len__(self) -> int:
        return self._length


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = None) -> list[Subset]:
    """Divides a data set at random.

    Args:
      dataset: what is divided.
      lengths: of the parts; or their shares, which add up to 1.
      generator: a seed, or a ``numpy.random.Generator``; drawn anew if not given.

    Raises:
      ValueError: if the lengths do not add up.

    Example:
      >>> from tg_frontend import nn
      >>> [len(part) for part in nn.data.random_split(range(10), [0.75, 0.25], generator=0)]
      [8, 2]
    """
    count = len(dataset)
    if all(isinstance(one, float) or one in (0, 1) for one in lengths) and abs(sum(lengths) - 1) < 1e-9:
        sizes = [int(count * share) for share in lengths]
        for place in range(count - sum(sizes)):
            sizes[place % len(sizes)] += 1
    else:
        sizes = [int(one) for one in lengths]
    if sum(sizes) != count or any(size < 0 for size in sizes):
        raise ValueError(f"random_split: lengths {list(lengths)} do not add up to {count} items")
    order = generator_of(generator).permutation(count).tolist()
    ends = list(accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def generator_of(given: Any) -> np.random.Generator:
    """A generator of random numbers: the one that is given, or of that seed."""
    import numpy as np

    return given if isinstance(given, np.random.Generator) else np.random.default_rng(given)
