"""Data sets, samplers and the loader; files of the well-known data sets, written here in their formats."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn.data import (
    ArrayDataset,
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)

RNG = np.random.default_rng(5)


class Numbers(Dataset):
    """Pairs of a number and its square."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, number: int) -> tuple[float, int]:
        return number / 2, number * number

    def __len__(self) -> int:
        return self.count


def listed(loader: Any) -> list[Any]:
    return [[part.tolist() for part in batch] if isinstance(batch, tuple) else batch.tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("drop", [False, True])
def test_batches_hold_every_item_once(workers: int, drop: bool) -> None:
    count, size = int(RNG.integers(1, 40)), int(RNG.integers(1, 9))
    loader = DataLoader(Numbers(count), size, num_workers=workers, drop_last=drop)
    batches = listed(loader)
    kept = count // size * size if drop else count
    assert len(batches) == len(loader)
    assert [n for _, squares in batches for n in squares] == [n * n for n in range(kept)]
    assert all(len(halves) == size for halves, _ in batches[:-1])


def test_a_seed_tells_the_order_and_each_pass_has_its_own() -> None:
    def order(**settings: Any) -> list[Any]:
        loader = DataLoader(list(range(50)), 7, shuffle=True, **settings)
        return [listed(loader), listed(loader)]

    one, two, other = order(generator=3), order(seed=3, num_workers=1), order(generator=4)
    assert one == two != other and one[0] != one[1]
    assert all(sorted(n for batch in turn for n in batch) == list(range(50)) for turn in one)


def test_rows_of_tensors_arrays_and_files(tmp_path: Path, backend: str) -> None:
    images, labels = RNG.random((13, 2, 3)).astype(np.float32), RNG.integers(0, 9, 13)
    np.save(tmp_path / "images.npy", images)
    sets = (
        TensorDataset(Tensor(images), Tensor(labels)), TensorDataset(images, labels), ArrayDataset(images, labels),
        ArrayDataset(tmp_path / "images.npy", labels), Subset(ArrayDataset(images, labels), range(13)),
        ConcatDataset([TensorDataset(images[:4], labels[:4]), TensorDataset(images[4:], labels[4:])]),
    )  # fmt: skip
    for one in sets:
        got = list(DataLoader(one, 5, shuffle=True, generator=1))
        order = np.concatenate([np.random.default_rng(1).permutation(13)])
        np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in got]), images[order])
        np.testing.assert_array_equal(np.concatenate([y.numpy() for _, y in got]), labels[order])
        assert all(isinstance(x, Tensor) and x.dtype.name == "float32" for x, _ in got)
    halved = ArrayDataset(images, transform=lambda x: x / 2)
    np.testing.assert_array_equal(next(iter(DataLoader(halved, 3))).numpy(), images[:3] / 2)


def test_what_is_only_gone_through() -> None:
    class Counting(IterableDataset):
        def __iter__(self) -> Iterator[int]:
            return iter(range(7))

    assert listed(DataLoader(Counting(), 3, num_workers=1)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert listed(DataLoader(Counting(), 3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    assert list(DataLoader(Counting(), None)) == list(range(7))
    assert listed(DataLoader((n for n in range(3)), 2)) == [[0, 1], [2]]
    with pytest.raises(ValueError, match="an order of its own"):
        DataLoader(Counting(), shuffle=True)


def test_items_are_put_together_by_kind() -> None:
    made = default_collate([{"a": (1, 2.0), "b": "x", "c": np.int8(3)}, {"a": (4, 5.0), "b": "y", "c": np.int8(6)}])
    assert made["a"][0].tolist() == [1, 4] and made["a"][1].dtype.name == "float32" and made["b"] == ["x", "y"]
    assert made["c"].dtype.name == "int8" and default_collate([True, False]).dtype.name == "bool"
    for bad, kind in (([object()], TypeError), ([(1, 2), (1,)], ValueError), ([np.ones(2), np.ones(3)], ValueError)):
        with pytest.raises(kind, match="default_collate"):
            default_collate(bad)


def test_samplers() -> None:
    drawn = list(RandomSampler(range(9), replacement=True, num_samples=50, generator=0))
    assert len(drawn) == 50 and set(drawn) <= set(range(9)) and len(set(drawn)) < 50
    assert sorted(RandomSampler(range(4), num_samples=6, generator=0))[0] == 0
    assert sorted(SubsetRandomSampler([5, 2, 9], 0)) == [2, 5, 9]
    weighted = np.bincount(list(WeightedRandomSampler([1, 0, 3], 4000, generator=0)), minlength=3)
    assert weighted[1] == 0 and abs(weighted[2] / 4000 - 0.75) < 0.05
    assert sorted(WeightedRandomSampler([1, 2, 3], 3, replacement=False, generator=0)) == [0, 1, 2]
    assert listed(DataLoader(range(10, 15), batch_sampler=BatchSampler([4, 0, 2], 2, True))) == [[14, 10]]
    three = range(3)
    wrong: list[Any] = [
        lambda: BatchSampler(three, 0, False), lambda: RandomSampler(three, num_samples=0),
        lambda: WeightedRandomSampler([0, 1], 2, False), lambda: DataLoader(three, sampler=[0], shuffle=True),
        lambda: DataLoader(three, 2, batch_sampler=[[0]]), lambda: DataLoader(three, -1),
        lambda: DataLoader(three, None, drop_last=True), lambda: DataLoader(three, num_workers=-1),
    ]  # fmt: skip
    for bad in wrong:
        with pytest.raises(ValueError, match="Sampler|DataLoader"):
            bad()


def test_splits() -> None:
    parts = random_split(range(11), [0.5, 0.3, 0.2], generator=1)
    assert [len(part) for part in parts] == [6, 3, 2]
    assert sorted(n for part in parts for n in (part[i] for i in range(len(part)))) == list(range(11))
    assert [part.indices for part in random_split(range(5), [2, 3], 7)] == [
        part.indices for part in random_split(range(5), [2, 3], np.random.default_rng(7))]
    with pytest.raises(ValueError, match="do not add up to 11 items"):
        random_split(range(11), [5, 5])


def test_batches_are_made_ahead_and_the_thread_ends() -> None:
    made: list[int] = []

    class Slow(Dataset):
        def __getitem__(self, number: int) -> int:
            made.append(number)
            return number

        def __len__(self) -> int:
            return 100

    iterator = iter(DataLoader(Slow(), 1, num_workers=1, prefetch_factor=3))
    assert next(iterator).tolist() == [0]
    for _ in range(100):
        if len(made) >= 4:
            break
        time.sleep(0.02)
    assert 4 <= len(made) <= 6
    iterator.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name == "DataLoader"]


def test_an_error_comes_where_its_batch_would() -> None:
    class Broken(Numbers):
        def __getitem__(self, number: int) -> tuple[float, int]:
            if number == 5:
                raise KeyError("five")
            return super().__getitem__(number)

    for workers in (0, 1):
        got = []
        with pytest.raises(KeyError, match="five"):
            for batch in DataLoader(Broken(9), 2, num_workers=workers):
                got.append(batch)
        assert len(got) == 2


def test_the_bar() -> None:
    out = io.StringIO()
    assert len(list(DataLoader(range(6), 2, progress=out))) == 3
    assert out.getvalue().endswith("3/3" + out.getvalue().rpartition("3/3")[2]) and "#" * 24 in out.getvalue()
    assert len(list(DataLoader(range(6), 2, progress=True))) == 3  # no terminal here: no bar


def test_digits_of_mnist(tmp_path: Path) -> None:
    images, labels = RNG.integers(0, 256, (7, 28, 28), np.uint8), RNG.integers(0, 10, 7).astype(np.uint8)
    head = np.array([2051, 7, 28, 28], ">u4").tobytes()
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
        raw = np.array([2049, 7], ">u4").tobytes() + labels.tobytes()
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(raw)  # uncompressed
    x, y, tx, ty = nn.datasets.mnist(root=tmp_path, download=False)
    np.testing.assert_array_equal(x.numpy()[:, 0], images)
    np.testing.assert_array_equal(ty.numpy(), labels)
    assert tx.shape == (7, 1, 28, 28) and y.dtype.name == "uint8"
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(raw[:-1])
    with pytest.raises(ValueError, match="is cut"):
        nn.datasets.mnist(root=tmp_path, download=False)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="t10k-labels.*Put the file there: https://"):
        nn.datasets.mnist(root=tmp_path, download=False)


def test_pictures_of_cifar(tmp_path: Path) -> None:
    def archive(extra: Any = None) -> None:
        with tarfile.open(tmp_path / "cifar-10-python.tar.gz", "w:gz") as tar:
            for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
                batch = {b"data": np.full((2, 3072), len(name), np.uint8), b"labels": [1, 9]}
                data = pickle.dumps(batch if extra is None else extra, protocol=2)
                info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

    archive()
    x, y, tx, ty = nn.datasets.cifar(root=tmp_path, download=False)
    assert x.shape == (10, 3, 32, 32) and tx.shape == (2, 3, 32, 32)
    assert y.tolist() == [1, 9] * 5 and ty.tolist() == [1, 9]
    archive(print)  # a file that would run something
    with pytest.raises(ValueError, match="is not the archive of CIFAR-10"):
        nn.datasets.cifar(root=tmp_path, download=False)
