"""Hashes beside Python's: messages of lengths around whole blocks, many at once; and tinygrad's tree of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit

RNG = np.random.default_rng(20261127)
MEGABYTE = 1 << 20
KINDS: dict[Any, Callable[[bytes], bytes]] = {
    "sha3_224": lambda message: hashlib.sha3_224(message).digest(),
    "sha3_256": lambda message: hashlib.sha3_256(message).digest(),
    "shake_128": lambda message: hashlib.shake_128(message).digest(16),
    (104, 6): lambda message: hashlib.sha3_384(message).digest(),
    (72, 6): lambda message: hashlib.sha3_512(message).digest(),
}


@pytest.mark.drawn(7)
@pytest.mark.parametrize("cfg", KINDS, ids=str)
@pytest.mark.parametrize("length", [0, 1, 7, 71, 72, 103, 135, 136, 137, 143, 167, 168, 301])
def test_as_hashlib(cfg: Any, length: int, backend: str) -> None:
    messages = RNG.integers(0, 256, (3, length), dtype=np.uint8)
    found = Tensor(messages).keccak(cfg).numpy()
    assert [row.tobytes() for row in found] == [KINDS[cfg](row.tobytes()) for row in messages]


def test_messages_stand_along_the_last_axis() -> None:
    messages = RNG.integers(0, 256, (2, 0, 5), dtype=np.uint8)
    assert Tensor(messages).keccak().shape == (2, 0, 32)
    messages = RNG.integers(0, 256, (2, 3, 5), dtype=np.uint8)
    found = Tensor(messages).keccak("sha3_224")
    assert found.shape == (2, 3, 28) and found.dtype.name == "uint8"
    assert found[1, 2].numpy().tobytes() == hashlib.sha3_224(messages[1, 2].tobytes()).digest()
    assert Tensor(messages)[:, :, ::2].keccak("sha3_224")[0, 1].numpy().tobytes() == hashlib.sha3_224(
        messages[0, 1, ::2].tobytes()).digest()  # fmt: skip


def test_in_a_record() -> None:
    hashed = TinyJit(lambda x: x.keccak().realize())
    for _ in range(4):
        message = RNG.integers(0, 256, 11, dtype=np.uint8)
        assert hashed(Tensor(message)).numpy().tobytes() == hashlib.sha3_256(message.tobytes()).digest()


def tree(data: bytes) -> bytes:
    """What ``hash`` is said to be."""
    data += bytes(-len(data) % MEGABYTE)
    out = b""
    for begin in range(0, len(data), MEGABYTE):
        chunks = (data[i : i + 4096] for i in range(begin, begin + MEGABYTE, 4096))
        out += hashlib.shake_128(b"".join(hashlib.shake_128(chunk).digest(16) for chunk in chunks)).digest(16)
    return out if len(out) == 16 else tree(out)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("length", [1, 4097, MEGABYTE, MEGABYTE + 1, 2 * MEGABYTE + 77])
def test_the_tree(length: int) -> None:
    data = RNG.bytes(length)
    assert Tensor(data).hash().numpy().tobytes() == tree(data)


def test_the_tree_of_what_is_no_bytes() -> None:
    numbers = RNG.standard_normal((3, 5))
    x = Tensor(numbers, requires_grad=True)
    assert x.hash().numpy().tobytes() == tree(numbers.tobytes()) != tree((numbers + 1).tobytes())
    assert x.T.hash().numpy().tobytes() == tree(np.ascontiguousarray(numbers.T).tobytes())


BAD: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (TypeError, "keccak: messages are of uint8, got int32; x.bitcast", lambda: Tensor([1]).keccak()),
    (ValueError, "keccak: 'md5' is no hash: sha3_224, sha3_256, shake_128", lambda: Tensor(b"a").keccak("md5")),
    (ValueError, "keccak: .*is no hash", lambda: Tensor(b"a").keccak((200, 6))),
    (ValueError, "keccak: .*is no hash", lambda: Tensor(b"a").keccak((71, 6))),
    (ValueError, "keccak: .*is no hash", lambda: Tensor(b"a").keccak((72, 0))),
    (ValueError, "keccak: .*is no hash", lambda: Tensor(b"a").keccak((72, 6, 1))),  # type: ignore[arg-type]
    (ValueError, "keccak: a message has an axis", lambda: Tensor(b"a")[0].keccak()),
    (ValueError, r"hash: a tensor of shape \(2, 0\) has no bytes", lambda: Tensor.zeros(2, 0).hash()),
    (TypeError, "hash: complex numbers", lambda: Tensor([1j]).hash()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "match", "bad"), BAD)
def test_what_is_wrong_is_named(kind: type[Exception], match: str, bad: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=rf"^Tensor\.{match}"):
        bad()


def test_names_of_other_libraries_say_what_is_used_here() -> None:
    x = Tensor([1.0])
    for name, said in (("callify", "TinyJit records"), ("custom_kernel", "Function"), ("nowhere", "$")):
        assert not hasattr(x, name)
        with pytest.raises(AttributeError, match=rf"^'Tensor' object has no attribute '{name}'.*{said}"):
            getattr(x, name)
