"""GGUF files: every quantisation against the package gguf, and files that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn
from tg_frontend.files.gguf.kinds import KINDS
from tg_lazy import schedule
from tg_runtime import DeviceError, GlobalCounters

load, save = nn.state.gguf_load, nn.state.gguf_save
BLOCKS = {number: kind for number, kind in KINDS.items() if kind.decode is not None}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def tensor(name: str, shape: tuple[int, ...], kind: int, place: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, place)


def file(*rows: bytes, data: bytes = b"", keys: tuple[bytes, ...] = (), version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(rows), len(keys)) + b"".join(keys) + b"".join(rows)
    return head + bytes(-len(head) % 32) + data


def some_blocks(number: int, rows: int, count: int) -> bytes:
    kind = BLOCKS[number]
    return np.random.default_rng(number).integers(0, 256, rows * count * kind.nbytes, np.uint8).tobytes()


@pytest.mark.parametrize("number", BLOCKS, ids=lambda number: BLOCKS[number].name)
def test_every_quantisation(number: int) -> None:
    gguf = pytest.importorskip("gguf")
    kind, data = BLOCKS[number], some_blocks(number, 3, 37)
    shape = (3, 37 * kind.elements)
    _, tensors = load(file(tensor("w", shape, number), data=data))
    with np.errstate(all="ignore"):
        want = gguf.quants.dequantize(
            np.frombuffer(data, np.uint8).reshape(3, -1), gguf.GGMLQuantizationType(number)
        )
    assert tensors["w"].shape == want.shape == shape
    np.testing.assert_allclose(tensors["w"].numpy(), want, rtol=1e-6, atol=1e-6 * np.nanmedian(np.abs(want)))


@pytest.mark.parametrize("number", BLOCKS, ids=lambda number: BLOCKS[number].name)
def test_a_product_of_blocks(number: int) -> None:
    kind = BLOCKS[number]
    data = np.frombuffer(some_blocks(number, 5, 2), np.uint8) & 0x3B  # no scale is infinite
    shape = (5, 2 * kind.elements)
    weight = load(file(tensor("w", shape, number), data=data.tobytes()))[1]["w"]
    x = np.random.default_rng(0).uniform(-1, 1, (1, shape[1])).astype(np.float32)
    got = (Tensor(x) @ weight.T).numpy()
    want = x.astype(np.float64) @ weight.numpy().T.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_rows_are_unpacked_without_the_others() -> None:
    number = next(number for number, kind in BLOCKS.items() if kind.name == "Q8_0")
    data = file(tensor("w", (601, 160), number), data=some_blocks(number, 601, 5))
    rows = load(data)[1]["w"][Tensor([600, 7])]
    steps, _ = schedule([rows.lazydata])
    assert max(step.bufs[0].size for step in steps) < 601 * 160 / 2, "the whole is in memory"
    np.testing.assert_array_equal(rows.numpy(), load(data)[1]["w"].numpy()[[600, 7]])


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q8_0"])
def test_unpacking_is_part_of_the_product(name: str) -> None:
    number = next(number for number, kind in BLOCKS.items() if kind.name == name)
    weight = load(file(tensor("w", (64, 128), number), data=some_blocks(number, 64, 4)))[1]["w"]
    product = TinyJit(lambda x: (x @ weight.T).realize())
    for _ in range(3):
        x = Tensor.rand(1, 128).realize()
        before = GlobalCounters.kernel_count
        product(x)
    assert GlobalCounters.kernel_count == before + 1


def test_metadata_and_plain_tensors(tmp_path: Path) -> None:
    keys = (
        text("a") + struct.pack("<IB", 0, 200), text("b") + struct.pack("<Ih", 3, -5),
        text("c") + struct.pack("<I?", 7, True), text("d") + struct.pack("<I", 8) + text("für"),
        text("e") + struct.pack("<IIQ3f", 9, 6, 3, 0.5, 1.5, -2), text("f") + struct.pack("<IQ", 10, 1 << 63),
        text("g") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text(""),
        text("h") + struct.pack("<IIQIQIQI", 9, 9, 2, 4, 0, 4, 1, 7),
    )  # fmt: skip
    path = tmp_path / "t.gguf"
    numbers = np.arange(6, dtype=np.float32)
    rows = (tensor("one", (2, 3), 0), tensor("two", (), 24, 32), tensor("none", (0, 3), 1, 64))
    path.write_bytes(file(*rows, data=numbers.tobytes().ljust(32, b"\0") + b"\xff".ljust(32, b"\0"), keys=keys))
    metadata, tensors = load(path)
    assert metadata == {
        "a": 200, "b": -5, "c": True, "d": "für", "e": [0.5, 1.5, -2.0], "f": 1 << 63, "g": ["x", ""], "h": [[], [7]],
    }  # fmt: skip
    path.unlink()  # the file is open
    assert tensors["one"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["two"].item() == -1
    assert tensors["none"].shape == (0, 3)


def test_bfloat16_stays() -> None:
    weight = load(file(tensor("w", (2,), 30), data=b"\x80\x3f\x00\xc0"))[1]["w"]
    assert (weight.dtype.name, weight.tolist()) == ("bfloat16", [1.0, -2.0])


KEYS = (text("k") + struct.pack("<IB", 0, 1),)
GOOD = file(tensor("w", (2, 32), 2), tensor("v", (3,), 0, 64), data=bytes(76), keys=KEYS)


@pytest.mark.parametrize("size", range(len(GOOD)))
def test_a_file_that_is_cut(size: int) -> None:
    load(GOOD)
    with pytest.raises(ValueError, match="gguf_load: .*(truncated|bytes that are left)"):
        load(GOOD[:size])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGML" + bytes(30), "no GGUF file"),
        (file(version=1), "version 1;"),
        (file(version=3 << 24), "big-endian, version 3"),
        (file(tensor("w", (32,), 5), data=bytes(64)), "tensor 'w' is of kind 5"),
        (file(tensor("w", (33,), 2), data=bytes(64)), "no whole blocks of 32"),
        (file(tensor("w", (), 2), data=bytes(64)), "no whole blocks of 32"),
        (file(tensor("w", (1,) * 5, 0), data=bytes(64)), "5 axes"),
        (file(tensor("w", (1 << 32, 1 << 32), 0)), "more elements"),
        (file(tensor("w", (0, 1 << 63, 1 << 63), 0)), "more elements"),
        (file(tensor("w", (9,), 0), tensor("v", (2,), 0, 32), data=bytes(64)), "'v' at 32 overlaps tensor 'w'"),
        (file(tensor("w", (2,), 0, 8), data=bytes(64)), "no multiple of 32"),
        (file(tensor("w", (2,), 0), tensor("w", (2,), 0, 32), data=bytes(64)), "'w' stands twice"),
        (file(keys=(text("k") + struct.pack("<IB", 0, 1),) * 2), "'k' stands twice"),
        (file(keys=(text("k") + struct.pack("<IB", 77, 1),)), "unknown type 77"),
        (file(keys=(text("k") + struct.pack("<IIQB", 9, 77, 1, 1),)), "unknown type 77"),
        (file(keys=(text("k") + struct.pack("<IIQB", 9, 0, 1 << 60, 1),)), "elements of metadata 'k' in the"),
        (file(keys=(text("k") + struct.pack("<IQ", 8, 1 << 60),)), "bytes that are left"),
        (file(keys=(text("k") + struct.pack("<IQ", 8, 1) + b"\xff",)), "not UTF-8"),
        (file(keys=(text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 20 + bytes(12),)), "nested"),
        (file(keys=(text("general.alignment") + struct.pack("<II", 4, 0),)), "no positive multiple of 8"),
        (file(keys=(text("general.alignment") + struct.pack("<I", 8) + text("x"),)), "no positive multiple of 8"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0) + bytes(64), "tensors in the"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60) + bytes(64), "entries of metadata in the"),
    ],
)  # fmt: skip
def test_hostile(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(data)


def test_a_file_that_is_cut_later(tmp_path: Path) -> None:
    path = tmp_path / "t.gguf"
    path.write_bytes(GOOD)
    _, tensors = load(path)
    with path.open("r+b") as handle:
        handle.truncate(100)
    with pytest.raises(DeviceError):
        tensors["w"].numpy()


@pytest.mark.parametrize("name", ["Q4_0", "Q8_0", "F16"])
def test_saving_gives_the_bytes_of_the_package(name: str, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    x = np.random.default_rng(7).normal(size=(13, 96)).astype(np.float32)
    x[3], x[4, :32], x[5, 7] = 0, np.linspace(-127, 127, 32), 254
    path = tmp_path / "t.gguf"
    save({"w": Tensor(x), "bias": Tensor([1.0, 2.0])}, path, {"k": [1, 2], "s": "t"}, name)
    reader = gguf.GGUFReader(path)
    found = {row.name: row for row in reader.tensors}
    want = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name])
    assert bytes(found["w"].data) == want.tobytes()
    metadata, tensors = load(path)
    assert (metadata["k"], metadata["s"], tensors["bias"].tolist()) == ([1, 2], "t", [1.0, 2.0])


@pytest.mark.parametrize("name", ["Q4_0", "Q8_0", "F16"])
@pytest.mark.parametrize("shape", [(1, 32), (7, 64), (0, 32), (3, 5), (1, 1), (2, 3, 96), ()])
def test_saved_and_loaded(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    x = np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)
    save({"w": Tensor(x)}, tmp_path / "t.gguf", quantization=name)
    found = load(tmp_path / "t.gguf")[1]["w"]
    assert found.shape == shape
    np.testing.assert_allclose(found.numpy(), x, atol=0.13 if name == "Q4_0" else 0.01)


def test_what_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "t.gguf"
    with pytest.raises(ValueError, match="Q5_K"):
        save({}, path, quantization="Q5_K")
    with pytest.raises(TypeError, match="int32"):
        save({"w": Tensor([1])}, path)
    with pytest.raises(ValueError, match="at most 4 axes"):
        save({"w": Tensor.ones(1, 1, 1, 1, 1)}, path)
    with pytest.raises(TypeError, match="metadata 'k': a list has elements of one type"):
        save({}, path, {"k": [1, "x"]})
    with pytest.raises(ValueError, match="more than 64 bits"):
        save({}, path, {"k": 1 << 64})
    assert not path.exists()
