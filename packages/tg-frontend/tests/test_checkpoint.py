"""PyTorch's checkpoints in all three forms: made here byte by byte, and by PyTorch where it is installed."""

from __future__ import annotations

import io
import pickle
import random
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tg_dtype import DType, dtypes
from tg_frontend import Tensor, nn
from tg_frontend.nn.state import torch_load, torch_save

VALUES = np.arange(12, dtype=np.float32) * 1.5
BYTES = np.arange(7, dtype=np.uint8)
WANT = {"a": VALUES.reshape(3, 4), "t": VALUES.reshape(3, 4).T, "s": VALUES[1:11:3], "b": BYTES[2:6].reshape(2, 2)}
MAGIC = 0x1950A86A20F9469CFC6C


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", value)


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(
    key: str, kind: str, count: int, offset: int, size: tuple[int, ...], stride: tuple[int, ...], old: bool = False
) -> bytes:
    """The opcodes of a tensor."""
    name = b"(" + text("storage") + f"ctorch\n{kind}Storage\n".encode() + text(key) + text("cpu") + number(count)
    storage = name + (b"N" if old else b"") + b"tQ"
    hooks = b"ccollections\nOrderedDict\n)R"
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(*size) + numbers(*stride)
        + b"\x89" + hooks + b"tR"
    )  # fmt: skip


def state(old: bool = False, **changed: bytes) -> bytes:
    """A pickle of a dict of four tensors, in two storages."""
    parts = {
        "a": tensor("0", "Float", 12, 0, (3, 4), (4, 1), old), "t": tensor("0", "Float", 12, 0, (4, 3), (1, 4), old),
        "s": tensor("0", "Float", 12, 1, (4,), (3,), old), "b": tensor("1", "Byte", 7, 2, (2, 2), (2, 1), old),
    } | changed  # fmt: skip
    return b"\x80\x02}(" + b"".join(text(name) + part for name, part in parts.items()) + b"u."


def zipped(pickled: bytes, more: dict[str, bytes] | None = None, how: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    entries = {"data.pkl": pickled, "byteorder": b"little", "data/0": VALUES.tobytes(), "data/1": BYTES.tobytes()}
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, content in (entries | (more or {})).items():
            archive.writestr(f"model/{name}", content)
    return out.getvalue()


def one_after_the_other(pickled: bytes) -> bytes:
    head = b"".join(pickle.dumps(x, 2) for x in (MAGIC, 1001, {"little_endian": True, "protocol_version": 1001}))
    storages = b"".join(struct.pack("<q", len(x)) + x.tobytes() for x in (VALUES, BYTES))
    return head + pickled + pickle.dumps(["0", "1"], 2) + storages


def in_a_tar() -> bytes:
    kinds = {"0": ("Float", VALUES), "1": ("Byte", BYTES)}
    storages = pickle.dumps(2, 2)
    for key, (kind, values) in kinds.items():
        told = b"\x80\x02" + text(key) + text("cpu") + f"ctorch\n{kind}Storage\n".encode() + b"\x87."
        storages += told + struct.pack("<q", len(values)) + values.tobytes()
    tensors = pickle.dumps(2, 2)
    for key, of, size, stride, offset in (("10", "0", (3, 4), (4, 1), 0), ("11", "1", (2, 2), (2, 1), 2)):
        tensors += b"\x80\x02" + text(key) + text(of) + b"N\x87."
        tensors += struct.pack("<i4x", len(size)) + struct.pack("<5q", *size, *stride, offset)
    pickled = b"\x80\x02}(" + text("a") + text("10") + b"Q" + text("b") + text("11") + b"Qu."
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in (("storages", storages), ("tensors", tensors), ("pickle", pickled)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


FORMS = {"zip": zipped(state()), "pickles": one_after_the_other(state(old=True)), "tar": in_a_tar()}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_from_bytes_and_from_a_file(form: str, tmp_path: Path, backend: str) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(FORMS[form])
    for source in (FORMS[form], path, str(path)):
        loaded = torch_load(source)
        assert list(loaded) == (["a", "b"] if form == "tar" else list(WANT))
        for name, got in loaded.items():
            assert got.dtype.name == WANT[name].dtype.name
            np.testing.assert_array_equal(got.numpy(), WANT[name])


def test_it_is_read_when_it_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(FORMS["zip"])
    loaded = torch_load(path)
    path.unlink()
    np.testing.assert_array_equal(loaded["t"].numpy(), WANT["t"])


def test_a_model_takes_it() -> None:
    layer = nn.Linear(4, 3)
    pickled = state(weight=tensor("0", "Float", 12, 0, (3, 4), (4, 1)), bias=tensor("0", "Float", 12, 0, (3,), (1,)))
    found = torch_load(zipped(pickled))
    nn.state.load_state_dict(layer, {name: found[name] for name in ("weight", "bias")})
    np.testing.assert_array_equal(layer.weight.numpy(), WANT["a"])


def test_assign_takes_over_the_dtype() -> None:
    layer = nn.Linear(4, 3)
    new = {"weight": Tensor.ones(3, 4, dtype="float64"), "bias": Tensor.zeros(3, dtype="float16")}
    kept = layer.weight
    nn.state.load_state_dict(layer, new, assign=True)
    assert layer.weight is kept and kept.dtype.name == "float64" and layer.bias is not None
    assert layer.bias.dtype.name == "float16" and kept.sum().item() == 12
    with pytest.raises(ValueError, match="shapes differ"):
        nn.state.load_state_dict(layer, {"weight": Tensor.ones(4, 3), "bias": Tensor.zeros(3)}, assign=True)


def marked(kind: str, *marks: str) -> bytes:
    """The opcodes of a tensor of the first three elements, with marks."""
    told = b"}(" + b"".join(text(mark) + b"\x88" for mark in marks) + b"u"
    return tensor("0", kind, 3, 0, (3,), (1,))[:-2] + told + b"tR"


@pytest.mark.parametrize("marks", [(), ("neg",), ("conj",), ("conj", "neg")])
def test_what_is_still_to_be_done_with_a_storage_is_done(marks: tuple[str, ...], backend: str) -> None:
    want = VALUES[:6].view(np.complex64)
    found = torch_load(zipped(state(z=marked("ComplexFloat", *marks), x=marked("Float", *marks))))
    sign = -1 if "neg" in marks else 1
    assert found["z"].tolist() == (sign * (want.conj() if "conj" in marks else want)).tolist()
    assert found["x"].tolist() == (sign * VALUES[:3]).tolist()


CALL = b"cposix\nsystem\n(" + text("false") + b"tR"
BAD: dict[str, tuple[bytes, str]] = {
    "a call": (zipped(state(x=CALL)), "names posix.system"),
    "a call of eval": (zipped(state(x=b"cbuiltins\neval\n(" + text("1") + b"tR")), "names builtins.eval"),
    "a class": (zipped(state(x=b"ctorch.nn.modules.linear\nLinear\n)\x81")), "Linear: a checkpoint may hold"),
    "complex": (zipped(state(x=tensor("0", "ComplexHalf", 3, 0, (3,), (1,)))), "tensors of complex32"),
    "outside": (zipped(state(x=tensor("0", "Float", 12, 9, (4,), (1,)))), "in a storage of 12 elements"),
    "more than there is": (zipped(state(x=tensor("0", "Float", 99, 0, (4,), (1,)))), "has 48 bytes, 396"),
    "negative": (zipped(state(x=tensor("0", "Float", 12, 0, (4,), (-1,)))), "strides"),
    "huge": (zipped(state(x=tensor("0", "Float", 12, 0, (1 << 62, 0), (1, 1)))), "sizes"),
    "no storage": (zipped(state(x=tensor("../0", "Float", 12, 0, (4,), (1,)))), "has no model/data/"),
    "big-endian": (zipped(state(), {"byteorder": b"big"}), "not little-endian"),
    "compressed": (zipped(state(), how=zipfile.ZIP_DEFLATED), "compressed or encrypted"),
    "no pickle": (zipped(state(), {"more/data.pkl": b""}), "has 2 data.pkl"),
    "truncated": (FORMS["zip"][:-40], "cannot be read"),
    "truncated pickles": (FORMS["pickles"][:-3], "truncated or damaged"),
    "a magic number": (pickle.dumps(7, 2) + FORMS["pickles"], "magic number is 7"),
    "nothing": (b"", "cannot be read"),
    "a mark that is not known": (zipped(state(x=marked("Float", "turned"))), "of float32 with the marks 'turned'"),
    "a negative integer": (zipped(state(x=marked("Byte", "neg"))), "of uint8 with the marks 'neg'"),
    "deep": (one_after_the_other(b"\x80\x02" + b"(" * 100_000), "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_damaged_or_hostile_is_refused(name: str) -> None:
    data, message = BAD[name]
    with pytest.raises(ValueError, match=f"^torch_load: .*{message}"):
        torch_load(data)


@pytest.mark.parametrize("form", FORMS)
def test_damage_is_an_error_or_other_values_and_nothing_else(form: str) -> None:
    draw = random.Random(form)
    for _ in range(300):
        data = bytearray(FORMS[form])
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.3:
            del data[draw.randrange(len(data)) :]
        try:
            torch_load(bytes(data))
        except ValueError as error:
            assert str(error).startswith("torch_load: ")


@pytest.mark.parametrize("zipped", [True, False])
def test_what_pytorch_writes(zipped: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    base = torch.randn(7, 11)
    kinds = (
        "float64",
        "float16",
        "complex64",
        "complex128",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
        "float8_e4m3fn",
    )
    saved: dict[str, Any] = {
        "a": base, "t": base.t(), "s": base[1:5:2, ::3], "row": base[3], "one": torch.tensor(3.5),
        "empty": torch.empty(0, 4), "wide": torch.arange(5).expand(3, 5),
        "turned": torch.randn(2, 3, 4).permute(2, 0, 1),
        "conj": torch.randn(5, 3, dtype=torch.complex64).conj()[1:4],
        "neg": torch.randn(5, 3, dtype=torch.complex128).conj().imag[2:],
        "p": torch.nn.Parameter(torch.randn(3, 5)), "more": [(torch.arange(9), "x", None, 2.5, {"k": base})],
        **{kind: torch.randint(0, 2, (3, 5)).to(getattr(torch, kind)) for kind in kinds},
    }  # fmt: skip
    path = tmp_path / "model.pt"
    torch.save(saved, path, _use_new_zipfile_serialization=zipped)

    def same(got: Any, want: Any) -> None:
        if isinstance(want, torch.Tensor):
            assert got.shape == tuple(want.shape) and bool(got.requires_grad) == want.requires_grad
            got, want = (x.resolve_conj() if x.is_complex() else x.double() for x in (got.detach(), want.detach()))
            assert got.tolist() == want.tolist()
        elif isinstance(want, (dict, list, tuple)):
            assert type(got) is type(want) and len(got) == len(want)
            for one in want if isinstance(want, dict) else range(len(want)):
                same(got[one], want[one])
        else:
            assert got == want

    same(torch_load(path), saved)


KINDS = sorted({x.name for x in vars(dtypes).values() if isinstance(x, DType) and x.name != "void"})


def drawn(seed: int) -> Any:
    """Nested containers of numbers, strings and tensors of every dtype, of which some are there several times."""
    draw = random.Random(seed)
    pool: list[Any] = []

    def tensor_of(kind: str) -> Tensor:
        shape = tuple(draw.choice((0, 1, 1, 2, 3, 5, 7)) for _ in range(draw.randrange(4)))
        return Tensor.randint(*shape, low=0, high=2).cast(kind) if shape else Tensor(draw.randrange(2)).cast(kind)

    def thing(depth: int) -> Any:
        kind = draw.randrange(9 if depth else 6)
        if pool and draw.random() < 0.2:
            return draw.choice(pool)
        simple: tuple[Any, ...] = (
            None, draw.choice((True, False)), draw.choice((-1, 1)) * draw.getrandbits(draw.choice((1, 8, 31, 64, 99))),
            draw.uniform(-1e30, 1e30), draw.choice(("", "a", "wéi\n", "\udc80")),
        )  # fmt: skip
        if kind < 5:
            return simple[kind]
        found: Any
        if kind == 5:
            found = tensor_of(draw.choice(KINDS))
        elif kind == 6:
            found = [thing(depth - 1) for _ in range(draw.randrange(5))]
        elif kind == 7:
            found = tuple(thing(depth - 1) for _ in range(draw.randrange(5)))
        else:
            found = {draw.choice((f"k{n}", n, (n, "x"))): thing(depth - 1) for n in range(draw.randrange(5))}
        pool.append(found)
        return found

    return {"whole": [thing(3) for _ in range(9)], **{kind: tensor_of(kind) for kind in KINDS}}


def alike(got: Any, want: Any, tensors: type = Tensor) -> None:
    other = isinstance(want, Tensor) and tensors is not Tensor
    kind: Any = tensors if other else type(want)
    assert type(got) is kind
    if isinstance(want, Tensor):
        assert tuple(got.shape) == want.shape and got.tolist() == want.tolist()
        assert other or got.dtype == want.dtype
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for one, wanted in zip(got, want, strict=True):
            alike(one, wanted, tensors)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            alike(got[key], want[key], tensors)
    else:
        assert got == want


@pytest.mark.parametrize("seed", range(12))
def test_what_is_saved_is_what_is_loaded(seed: int, tmp_path: Path) -> None:
    want = drawn(seed)
    path, file = tmp_path / "model.pt", io.BytesIO()
    torch_save(want, path)
    torch_save(want, file)
    assert file.getvalue() == path.read_bytes()
    file.seek(0)
    for source in (path, file, file.getvalue()):
        alike(torch_load(source), want)


def test_what_is_there_twice_is_saved_once_and_may_hold_itself() -> None:
    weight, inner = Tensor.ones(7, 3), [1]
    inner.append(inner)  # type: ignore[arg-type]
    file = io.BytesIO()
    torch_save({"a": weight, "b": weight, "c": inner, "d": inner}, file)
    found = torch_load(file.getvalue())
    assert found["a"] is found["b"] and found["c"] is found["d"] and found["c"][1] is found["c"]
    with zipfile.ZipFile(file) as archive:
        assert [name for name in archive.namelist() if "/data/" in name] == ["archive/data/0"]


def test_tuples_that_hold_themselves_are_mixed_up_with_nothing() -> None:
    inner: list[Any] = []
    whole, other = (inner, 3), [5]
    inner.append(whole)
    file = io.BytesIO()
    torch_save({"a": whole, "b": other, "c": Tensor.ones(2), "d": other, "e": whole}, file)
    found = pickle_of(file)
    assert found["b"] is found["d"] and found["d"] == [5]
    for got in (found["a"], found["e"]):
        assert got[1] == 3 and got[0][0][1] == 3 and got[0][0][0] is got[0]


def pickle_of(file: io.BytesIO) -> Any:
    """What Python's own reader finds in a file that was saved, each tensor None."""

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            return (lambda *_: None) if module.startswith("torch") else super().find_class(module, name)

        def persistent_load(self, pid: Any) -> None:
            return None

    with zipfile.ZipFile(file) as archive:
        return Reader(io.BytesIO(archive.read("archive/data.pkl"))).load()


def test_storages_begin_where_vectors_may_be_read() -> None:
    file = io.BytesIO()
    torch_save([Tensor.ones(n) for n in (1, 7, 30, 5)], file)
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            file.seek(entry.header_offset + 26)
            name, extra = struct.unpack("<2H", file.read(4))
            assert (entry.header_offset + 30 + name + extra) % 64 == 0, entry.filename


def test_a_model_and_its_optimiser_go_on_where_they_were(tmp_path: Path) -> None:
    def made() -> tuple[Any, Any]:
        Tensor.manual_seed(3)
        model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Linear(7, 2)).train()
        return model, nn.optim.AdamW(model.parameters(), lr=0.03)

    def steps(model: Any, optimiser: Any, first: int, last: int) -> list[float]:
        losses = []
        for n in range(first, last):
            x = Tensor.arange(15).reshape(3, 5) * 0.1 + n
            loss = model(x).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    model, optimiser = made()
    before = steps(model, optimiser, 0, 3)
    torch_save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "losses": before}, tmp_path / "3.pt")
    after = steps(model, optimiser, 3, 6)
    model, optimiser = made()
    found = torch_load(tmp_path / "3.pt")
    model.load_state_dict(found["model"])
    optimiser.load_state_dict(found["optimiser"])
    assert found["losses"] == before and steps(model, optimiser, 3, 6) == pytest.approx(after, rel=1e-6)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"a": [np.float32(1)]}, r"^torch_save: \['a'\]\[0\] is of numpy.float32; tensors, dicts"),
        (nn.Linear(2, 3), "^torch_save: it is of .*Linear"),
        ({"a": {1, 2}}, "builtins.set"),
        ([b"bytes"], "builtins.bytes"),
        ([1 << 3000], "3001 bits"),
    ],
)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(held: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"before")
    with pytest.raises(TypeError, match=message):
        torch_save(held, path)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


def test_containers_that_are_nested_too_deeply_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="^torch_save: containers are nested too deeply"):
        torch_save(deep, io.BytesIO())


@pytest.mark.parametrize("seed", range(3))
def test_what_pytorch_reads(seed: int, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "model.pt"
    want = drawn(seed)
    torch_save(want, path)

    alike(torch.load(path, weights_only=True), want, torch.Tensor)
    alike(torch.load(path, weights_only=True, mmap=True), want, torch.Tensor)
