"""A loader: batches of a data set, made ahead in a thread, with a bar that shows how far it is."""

from __future__ import annotations

import queue
import sys
import threading
import time

from ...host.coerce import as_array, is_arraylike
from ...tensor import Tensor
from ..state import get_state_dict
from .samplers import BatchSampler, RandomSampler, SequentialSampler
from .sets import Batch, IterableDataset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TextIO

_WIDTH = 24  # characters of a bar
_PAUSE_S = 0.1  # between two looks of a bar


def default_collate(batch: Sequence[Any]) -> Any:
    """Items as one batch: tensors, arrays and numbers stacked; tuples, lists and dicts part by part.

    Raises:
      TypeError: if something else is given than these and strings.
      ValueError: if shapes differ.

    Example:
      >>> from tg_frontend import nn
      >>> nn.data.default_collate([(1.0, {"n": 3}), (2.0, {"n": 4})])
      (Tensor([1., 2.]), {'n': Tensor([3, 4])})
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return Tensor.stack(*batch)
    if is_arraylike(first):
        import numpy as np

        shapes = {tuple(one.shape) for one in batch}
        if len(shapes) > 1:
            raise ValueError(f"default_collate: arrays of shapes {', '.join(map(str, sorted(shapes)))}")
        return Tensor(np.stack(batch))
    if isinstance(first, (bool, int, float)):
        return Tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, dict):
        return {key: default_collate([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(one) for one in batch}) > 1:
            raise ValueError(f"default_collate: tuples of {', '.join(str(len(one)) for one in batch)} parts")
        parts = [default_collate(part) for part in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    raise TypeError(f"default_collate: a {type(first).__name__} is no tensor, array, number, string, tuple or dict")


def default_convert(data: Any) -> Any:
    """Arrays and numpy's numbers as tensors, in tuples, lists and dicts, too; anything else as it is.

    Example:
      >>> from tg_frontend import nn
      >>> import numpy as np
      >>> nn.data.default_convert({"x": np.array([1.0], np.float32), "name": "one"})
      {'x': Tensor([1.]), 'name': 'one'}
    """
    if is_arraylike(data) and not isinstance(data, Tensor):
        return Tensor(as_array(data))
    if isinstance(data, dict):
        return {key: default_convert(part) for key, part in data.items()}
    if isinstance(data, (tuple, list)):
        parts = [default_convert(part) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    return data


def get_worker_info() -> None:
    """What a process of workers knows of itself: None, for batches are made in the process that asks for them.

    Example:
      >>> from tg_frontend import nn
      >>> nn.data.get_worker_info() is None
      True
    """
    return None


def _tensors(batch: Any) -> Any:
    """A batch that a data set has put together, its arrays as tensors."""
    if isinstance(batch, Batch):
        return tuple(_tensors(part) for part in batch)
    if isinstance(batch, Tensor):
        return batch.realize()
    return Tensor(as_array(batch)) if is_arraylike(batch) else batch


def _realized(batch: Any) -> Any:
    """A batch whose tensors are in memory."""
    tensors = list(get_state_dict(batch).values())
    if tensors:
        tensors[0].realize(*tensors[1:])
    return batch


class DataLoader:
    """Batches of a data set.

    Args:
      dataset: what has items by number and a length, a list or a range too; or an :class:`IterableDataset`.
      batch_size: items of a batch; None for single items as they are.
      shuffle: draw the order anew with each pass.
      sampler: which items in which order, in place of ``shuffle``.
      batch_sampler: lists of numbers, in place of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
      num_workers: above 0: batches are made ahead in a thread.
      collate_fn: makes a batch of a list of items; :func:`default_collate` if not given.
      drop_last: leave out a last batch that is smaller.
      prefetch_factor: so many batches are made ahead for each worker.
      generator: a seed, or a ``numpy.random.Generator``: with the same one the order is the same.
      seed: another name for ``generator``.
      progress: a bar at the terminal: True where standard error is one, or a file that it is written to.

    Raises:
      ValueError: if settings exclude one another.

    Example:
      >>> import numpy as np
      >>> from tg_frontend import nn
      >>> pairs = nn.data.TensorDataset(np.arange(5.0, dtype=np.float32), np.arange(5))
      >>> loader = nn.data.DataLoader(pairs, batch_size=2, shuffle=True, generator=0, num_workers=1)
      >>> [(x.shape, y.shape) for x, y in loader], len(loader)
      ([((2,), (2,)), ((2,), (2,)), ((1,), (1,))], 3)
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool = False, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None,
        multiprocessing_context: Any = None, generator: Any = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", seed: int | None = None,
        progress: bool | TextIO = False,
    ) -> None:  # fmt: skip
        if generator is None:
            generator = seed
        iterable = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
        if iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader: an iterable data set has an order of its own: no shuffle, no sampler")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler excludes shuffle")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last is for batches")
        if num_workers < 0 or (prefetch_factor is not None and prefetch_factor < 1):
            raise ValueError(f"DataLoader: num_workers {num_workers}, prefetch_factor {prefetch_factor}")
        self.dataset, self.batch_size, self.drop_last, self.num_workers = dataset, batch_size, drop_last, num_workers
        self.collate_fn, self.progress, self._iterable = collate_fn, progress, iterable
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if not iterable and batch_sampler is None:
            if sampler is None:
                self.sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            if batch_size is not None:
                self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        elif iterable and batch_size is not None:
            BatchSampler(dataset, batch_size, drop_last)  # which checks the size

    def __len__(self) -> int:
        if self._iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        batches = self._ahead() if self.num_workers else self._batches()
        if self.progress is False:
            return batches
        stream = sys.stderr if self.progress is True else self.progress
        if self.progress is True and not stream.isatty():
            return batches
        try:
            count: int | None = len(self)
        except TypeError:
            count = None
        return _shown(batches, count, stream)

    def _batches(self) -> Iterator[Any]:
        if self.batch_size is None and self.batch_sampler is None:
            items = iter(self.dataset) if self._iterable else (self.dataset[n] for n in self.sampler)
            for item in items:
                yield _tensors(item) if self.collate_fn is None else self.collate_fn(item)
            return
        if self._iterable:
            for items in BatchSampler(self.dataset, self.batch_size or 1, self.drop_last):
                yield self._collated(items)
            return
        at_once = getattr(self.dataset, "__getitems__", None)
        for numbers in self.batch_sampler:
            if at_once is None:
                yield self._collated([self.dataset[n] for n in numbers])
                continue
            found = at_once(numbers)
            made = isinstance(found, (Batch, Tensor, dict)) or is_arraylike(found)
            if made and self.collate_fn is not None:
                yield self._collated([self.dataset[n] for n in numbers])
            else:
                yield _tensors(found) if made else self._collated(found)

    def _collated(self, items: list[Any]) -> Any:
        return _realized(default_collate(items)) if self.collate_fn is None else self.collate_fn(items)

    def _ahead(self) -> Iterator[Any]:
        """Batches that a thread makes while others are used; an error in it is raised where its batch would come."""
        made: queue.Queue[tuple[bool, Any]] = queue.Queue(self.num_workers * self.prefetch_factor)
        stop, end = threading.Event(), object()

        def put(good: bool, value: Any) -> bool:
            while not stop.is_set():
                try:
                    made.put((good, value), timeout=_PAUSE_S)
                    return True
                except queue.Full:
                    continue
            return False

        def work() -> None:
            try:
                for batch in self._batches():
                    if not put(True, batch):
                        return
                put(True, end)
            except BaseException as error:
                put(False, error)

        thread = threading.Thread(target=work, name="DataLoader", daemon=True)
        thread.start()
        try:
            while True:
                good, value = made.get()
                if not good:
                    raise value
                if value is end:
                    return
                yield value
        finally:
            stop.set()
            thread.join()


def _shown(batches: Iterator[Any], count: int | None, stream: TextIO) -> Iterator[Any]:
    """The batches, with a bar that says how many there were, how fast they came and how long the rest takes."""
    begin = last = time.monotonic()
    done = 0
    try:
        for batch in batches:
            yield batch
            done += 1
            now = time.monotonic()
            if now - last >= _PAUSE_S or done == count:
                last = now
                stream.write("\r" + bar(done, count, now - begin))
                stream.flush()
    finally:
        stream.write("\r" + bar(done, count, time.monotonic() - begin) + "\n")
        stream.flush()


def bar(done: int, count: int | None, seconds: float) -> str:
    """A line that shows how far something is.

    Example:
      >>> from tg_frontend.nn.data.loading import bar
      >>> bar(6, 24, 3.0)
      '[######------------------] 6/24, 2.0/s, 9 s left'
    """
    rate = done / seconds if seconds > 0 else 0.0
    if not count:
        return f"{done}, {rate:.1f}/s"
    full = _WIDTH * min(done, count) // count
    left = f", {(count - done) / rate:.0f} s left" if rate and done < count else ""
    return f"[{'#' * full}{'-' * (_WIDTH - full)}] {done}/{count}, {rate:.1f}/s{left}"
