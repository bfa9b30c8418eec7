"""State by name, and safetensors files: round trips, laziness, and files that are damaged or hostile."""

from __future__ import annotations

import json
import os
import struct
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor, nn
from tg_frontend.host import transfer
from tg_frontend.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)

Pair = namedtuple("Pair", ["left", "right"])


class Model:
    def __init__(self) -> None:
        self.layers = [nn.Linear(2, 3), {"inner": nn.Linear(3, 1, bias=False)}]
        self.pair = Pair(Tensor([1.0]), (Tensor([2.0]), "no tensor"))
        self.name, self.same = "model", self.pair.left
        self.itself = self


def test_names() -> None:
    state = get_state_dict(Model())
    assert list(state) == [
        "layers.0.weight", "layers.0.bias", "layers.1.inner.weight", "pair.left", "pair.right.0", "same"
    ]  # fmt: skip
    assert state["same"] is state["pair.left"] and len(get_parameters(Model())) == 5
    assert list(get_state_dict(Tensor([1]), "x")) == ["x"] and list(get_state_dict([Tensor([1])], "a.b")) == ["a.b.0"]


def test_loading_into_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    source, target = Model(), Model()
    load_state_dict(target, get_state_dict(source))
    for one, other in zip(get_parameters(source), get_parameters(target), strict=True):
        assert one.tolist() == other.tolist() and one is not other
    loaded = load_state_dict(target, {"layers.0.bias": Tensor([7, 8, 9])}, strict=False, verbose=True)
    assert loaded[0].tolist() == [7.0, 8.0, 9.0] and loaded[0].dtype is dtypes.float32  # the model's dtype
    printed = capsys.readouterr().out
    assert "layers.0.bias: (3,) float32" in printed and "pair.left: not in the state, left alone" in printed
    state = dict(get_state_dict(source))
    load_state_dict(target, state, consume=True, realize=False)
    assert state == {}


def test_loading_what_does_not_fit_changes_nothing() -> None:
    model = Model()
    state = get_state_dict(Model())
    before = [tensor.tolist() for tensor in get_parameters(model)]
    with pytest.raises(KeyError, match=r"not in the state: same; not in the model: other"):
        load_state_dict(model, {**{k: v for k, v in state.items() if k != "same"}, "other": Tensor([1])})
    with pytest.raises(RuntimeError, match=r"^load_state_dict: not in the model: other$"):  # as in PyTorch
        load_state_dict(model, {**state, "other": Tensor([1])})
    with pytest.raises(RuntimeError, match="shapes differ"):
        load_state_dict(model, {**state, "layers.0.bias": Tensor([1.0] * 4)})
    with pytest.raises(ValueError, match=r"layers\.0\.bias: \(4,\) for \(3,\)"):
        load_state_dict(model, {**state, "layers.0.bias": Tensor([1.0] * 4)})
    assert [tensor.tolist() for tensor in get_parameters(model)] == before


def test_round_trip(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "state.safetensors"
    tensors = {f"t.{d.name}": Tensor([0, 1, 1, 0], dtype=d).reshape(2, 2) for d in dtypes.all}
    tensors |= {"empty": Tensor.zeros(0, 3), "number": Tensor(5), "é": Tensor([1.5])}
    tensors |= {"view": Tensor([[1, 2], [3, 4]]).T, "result": Tensor([1.0, 2.0]) * 3}
    safe_save(tensors, path, {"made": "here"})
    loaded = safe_load(path)
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype is tensor.dtype and loaded[name].shape == tensor.shape
        assert loaded[name].tolist() == tensor.tolist(), name
    begin, header = safe_load_metadata(path)
    assert begin % 8 == 0 and header["__metadata__"] == {"made": "here"}
    assert safe_load(path.read_bytes())["number"].item() == 5


def test_the_format_is_that_of_others(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"b": Tensor([1, 2], dtype="int16"), "a": Tensor([1.0, -2.0])}, path)
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert header == {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": "I16", "shape": [2], "data_offsets": [8, 12]},
    }
    assert raw[8 + length :] == struct.pack("<2f2h", 1.0, -2.0, 1, 2)


def test_a_file_is_read_when_it_is_wanted_and_never_written(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor(np.arange(100_000, dtype=np.float32))}, path)
    raw = path.read_bytes()
    tensor = safe_load(path)["a"]
    assert not tensor.is_realized
    assert tensor[99_999].item() == 99_999.0
    tensor.assign(tensor + 1).realize()
    tensor[0] = 7.0
    assert tensor[:2].tolist() == [7.0, 2.0] and path.read_bytes() == raw


def test_loading_to_a_device_that_cannot_address_the_host(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1.0, 2.0])}, path)
    tensor = safe_load(path, device="NULL")["a"]
    assert tensor.device == "NULL" and not tensor.is_realized


def test_numbers_at_odd_places_are_read(tmp_path: Path, backend: str) -> None:
    header = {"a": entry(0, 3), "b": entry(3, 7, [1], "F32")}
    loaded = safe_load(packed(header, b"\x01\x02\x03" + struct.pack("<f", 2.5)))
    assert loaded["a"].tolist() == [1, 2, 3] and loaded["b"].tolist() == [2.5]
    (tmp_path / "x").write_bytes(packed(header, b"\x01\x02\x03" + struct.pack("<f", 2.5)))
    loaded = safe_load(tmp_path / "x")
    assert loaded["a"].tolist() == [1, 2, 3] and loaded["b"].tolist() == [2.5]


@pytest.mark.parametrize("dtype", ["F16", "F32", "F64", "I8"])
def test_bytes_are_used_where_they_are_if_a_processor_may_read_them_there(dtype: str, backend: str) -> None:
    """An address that is no multiple of the elements' size is none that every processor can read from: it is copied."""
    itemsize, kind = {"F16": (2, "f2"), "F32": (4, "f4"), "F64": (8, "f8"), "I8": (1, "i1")}[dtype]
    values = np.arange(999, dtype=np.int64) % 100
    data = values.astype(kind).tobytes()
    places = set()
    for shift in range(8):  # the first tensor moves the second one to each place
        header = {"first": entry(0, shift), "second": entry(shift, shift + len(data), [999], dtype)}
        raw = packed(header, bytes(shift) + data)
        place = (np.frombuffer(raw, np.uint8).ctypes.data + len(raw) - len(data)) % itemsize
        second = safe_load(raw)["second"]
        storage = second.lazydata.storage
        assert storage is not None and transfer.is_borrowed(storage) is (place == 0), (shift, place)
        assert second.tolist() == values.tolist() and (second + 1).tolist() == (values + 1).tolist()
        places.add(place)
    assert places == set(range(itemsize))


def test_saving_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1.0])}, path)
    raw = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        safe_save({"a": Tensor([2.0])}, path)
    assert path.read_bytes() == raw and os.listdir(tmp_path) == [path.name]


def test_saving_over_the_file_that_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1.0, 2.0])}, path)
    loaded = safe_load(path)
    safe_save({"a": loaded["a"] * 2}, path)
    assert loaded["a"].tolist() == [1.0, 2.0] and safe_load(path)["a"].tolist() == [2.0, 4.0]


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    bad: list[tuple[Any, Any, type[Exception], str]] = [
        ({"a": 1}, None, TypeError, "values tensors, not int"),
        ({1: Tensor([1])}, None, TypeError, "names are strings"),
        ({"__metadata__": Tensor([1])}, None, ValueError, "__metadata__"),
        ({"a": Tensor([1])}, {"k": 1}, TypeError, "metadata maps strings"),
    ]
    for tensors, metadata, kind, message in bad:
        with pytest.raises(kind, match=message):
            safe_save(tensors, path, metadata)
    assert not path.exists()
    with pytest.raises(OSError):
        safe_save({"a": Tensor([1])}, tmp_path / "missing" / "x")


def packed(header: Any, data: bytes = b"") -> bytes:
    """The bytes of a file with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(begin: int, end: int, shape: Any = None, dtype: Any = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "0 bytes are too few"),
    "short": (b"\x01\x02", "2 bytes are too few"),
    "truncated header": (packed({})[:-1], "truncated"),
    "header beyond the file": (struct.pack("<Q", 1000) + b"{}", r"header of 1000 bytes in a file of 10"),
    "header beyond 100 MB": (struct.pack("<Q", 100_000_001) + b"{}", "at most 100000000"),
    "header beyond everything": (struct.pack("<Q", 2**64 - 1) + b"{}", "at most 100000000"),
    "no JSON": (packed(b"hello"), "cannot be read"),
    "no text": (packed(b"\xff\xfe"), "cannot be read"),
    "deep JSON": (packed(b"[" * 100_000), "cannot be read"),
    "a list": (packed([]), "a JSON list, not an object"),
    "duplicate tensors": (packed(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":1}'), "'a' stands twice"),
    "duplicate fields": (packed(b'{"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}'), "stands twice"),
    "no entry": (packed({"a": 3}), "tensor 'a': dtype, shape and data_offsets are wanted"),
    "missing field": (packed({"a": {"dtype": "U8", "shape": [0]}}), "are wanted"),
    "dtype": (packed({"a": entry(0, 0, dtype="Q4")}), "dtype 'Q4' is unknown"),
    "dtype number": (packed({"a": entry(0, 0, dtype=7)}), "dtype 7 is unknown"),
    "negative shape": (packed({"a": entry(0, 1, [-1])}, b"x"), r"\[-1\] is no shape"),
    "shape of floats": (packed({"a": entry(0, 1, [1.0])}, b"x"), r"\[1\.0\] is no shape"),
    "shape of bools": (packed({"a": entry(0, 1, [True])}, b"x"), r"\[True\] is no shape"),
    "shape is text": (packed({"a": entry(0, 1, "1")}, b"x"), "is no shape"),
    "too many axes": (packed({"a": entry(0, 1, [1] * 65)}, b"x"), "is no shape"),
    "huge shape": (packed({"a": entry(0, 1, [2**62, 2**62])}, b"x"), "bytes, data_offsets 1"),
    "size": (packed({"a": entry(0, 4, [2], "F32")}, b"xxxx"), r"\(2,\) of float32 has 8 bytes, data_offsets 4"),
    "three offsets": (packed({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}}), "are not"),
    "negative offset": (packed({"a": entry(-1, 0)}, b"x"), "are not"),
    "backward": (packed({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]}}, b"x"), "lie outside"),
    "outside": (packed({"a": entry(0, 9)}, b"x"), r"lie outside of 1 bytes"),
    "far outside": (packed({"a": entry(0, 2**70)}, b"x"), "lie outside"),
    "overlap": (packed({"a": entry(0, 2), "b": entry(1, 3)}, b"xxx"), r"'b' at 1 to 3 overlaps tensor 'a'"),
    "the same place": (packed({"a": entry(0, 2), "b": entry(0, 2)}, b"xx"), "overlaps"),
    "hole": (packed({"a": entry(0, 1), "b": entry(2, 3)}, b"xxx"), "leaves a hole after tensor 'a'"),
    "hole in front": (packed({"a": entry(1, 2)}, b"xx"), "leaves a hole after the beginning"),
    "rest": (packed({"a": entry(0, 1)}, b"xx"), "end at 1 of 2 bytes"),
    "metadata": (packed({"__metadata__": {"a": 1}}), "must map strings to strings"),
    "metadata list": (packed({"__metadata__": []}), "must map strings to strings"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_and_hostile_files(name: str, tmp_path: Path) -> None:
    data, message = HOSTILE[name]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    readers: list[Callable[[Any], Any]] = [safe_load, safe_load_metadata]
    for reader in readers:
        with pytest.raises(ValueError, match=message):
            reader(path)
        with pytest.raises(ValueError, match=message):
            reader(data)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        safe_load(tmp_path / "none")
    assert os.listdir(tmp_path) == []


def test_an_empty_state() -> None:
    assert safe_load(packed({})) == {} and safe_load(packed(b"{}      ")) == {}


class _Like:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


def test_arrays_of_other_libraries_are_loaded() -> None:
    layer = nn.Linear(2, 3)
    weight, bias = np.arange(6.0).reshape(3, 2), np.array([1, 2, 3])
    nn.state.load_state_dict(layer, {"weight": _Like(weight), "bias": bias})
    bias[:] = 9
    assert layer.weight.tolist() == weight.tolist() and layer.weight.dtype.name == "float32"
    assert layer.bias is not None and layer.bias.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="weight: .2, 3. for .3, 2."):
        nn.state.load_state_dict(layer, {"weight": weight.T, "bias": bias})
    for wrong, name in (([1, 2, 3], "list"), (np.ndarray, "type")):
        with pytest.raises(TypeError, match=f"bias is a {name}, neither"):
            nn.state.load_state_dict(layer, {"weight": weight, "bias": wrong})


def test_a_count_of_batches_may_be_missing_or_of_another_shape() -> None:
    norm = nn.BatchNorm(2)
    state: dict[str, Any] = {
        "weight": np.ones(2), "bias": np.ones(2), "running_mean": np.ones(2), "running_var": np.ones(2),
    }  # fmt: skip
    nn.state.load_state_dict(norm, state)
    assert norm.num_batches_tracked.item() == 0
    nn.state.load_state_dict(norm, state | {"num_batches_tracked": np.array([7], np.int64)})
    assert norm.num_batches_tracked.tolist() == 7
    plain = nn.BatchNorm(2, track_running_stats=False)
    nn.state.load_state_dict(plain, {"weight": np.ones(2), "bias": np.ones(2), "num_batches_tracked": np.array(3)})
    with pytest.raises(KeyError, match="running_mean"):
        nn.state.load_state_dict(plain, state)
