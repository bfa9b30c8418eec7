"""Tensors of files: of a path, and from a server that is asked once."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from tg_frontend import Tensor

DATA = bytes(range(256)) * 5 + b"odd"
PACKED = gzip.compress(DATA, mtime=0)


def test_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a file"
    path.write_bytes(DATA)
    x = Tensor(path)
    assert x.device == f"DISK:{path}" and x.dtype.name == "uint8" and x.shape == (len(DATA),)
    assert x.numpy().tobytes() == DATA and x[7:12].to("CPU").tolist() == [7, 8, 9, 10, 11]
    path.write_bytes(DATA[:1280])
    words = Tensor(path, dtype="int32", device="CPU")
    assert words.device == "CPU" and np.array_equal(words.numpy(), np.frombuffer(DATA[:1280], np.int32))
    assert (words + 1).shape == (320,)


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").write_bytes(b"\1\2")
    monkeypatch.chdir(tmp_path)
    x = Tensor(Path("here"))
    monkeypatch.chdir("/")
    assert x.tolist() == [1, 2]


def test_what_is_wrong_with_a_path(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(b"123")
    with pytest.raises(ValueError, match=r"^Tensor: the 3 bytes of .*odd are not a whole number of float32"):
        Tensor(path, dtype="float32")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Tensor(tmp_path / "nowhere")
    with pytest.raises(OSError, match=str(tmp_path)):
        Tensor(tmp_path)
    path.write_bytes(b"")
    assert Tensor(path).tolist() == [] and Tensor(path, device="CPU").shape == (0,)


class Handler(BaseHTTPRequestHandler):
    """Files by name; counts who asks."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = {"/plain": DATA, "/packed.gz": PACKED, "/cut": DATA, "/broken.gz": PACKED[:-9]}
        found = body.get(self.path.partition("?")[0])
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write((found or b"")[: 100 if self.path == "/cut" else None])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    kind = type("Counting", (Handler,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as httpd:
        thread = Thread(target=httpd.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{httpd.server_address[1]}", kind.asked  # type: ignore[attr-defined]
        finally:
            httpd.shutdown()
            thread.join()


def test_a_file_is_fetched_once(server: tuple[str, list[str]], tmp_path: Path) -> None:
    at, asked = server
    for _ in range(2):
        x = Tensor.from_url(f"{at}/plain", folder=tmp_path)
        assert x.numpy().tobytes() == DATA and x.device.startswith(f"DISK:{tmp_path}/") and len(asked) == 1
    assert Tensor.from_url(f"{at}/plain?of=2", folder=tmp_path, device="CPU").device == "CPU" and len(asked) == 2
    for _ in range(2):
        assert Tensor.from_url(f"{at}/packed.gz", gunzip=True, folder=tmp_path).numpy().tobytes() == DATA
    assert Tensor.from_url(f"{at}/packed.gz", folder=tmp_path).numpy().tobytes()[:2] == b"\x1f\x8b" and len(asked) == 4


def test_the_folder_of_the_user(
    server: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x = Tensor.from_url(f"{server[0]}/plain")
    assert x.device.startswith(f"DISK:{tmp_path}/tinytg/downloads/") and x.device.endswith("-plain")


def test_the_digest(server: tuple[str, list[str]], tmp_path: Path) -> None:
    at, asked = server
    right = hashlib.sha256(DATA).hexdigest()
    with pytest.raises(ValueError, match=rf"^Tensor.from_url: .*digest {right}, not 00"):
        Tensor.from_url(f"{at}/plain", folder=tmp_path, sha256="00" * 32)
    assert list(tmp_path.iterdir()) == []
    for _ in range(2):
        assert Tensor.from_url(f"{at}/plain", folder=tmp_path, sha256=right.upper()).shape == (len(DATA),)
    assert len(asked) == 2
    with pytest.raises(ValueError, match="digest"):  # also of what is there
        Tensor.from_url(f"{at}/plain", folder=tmp_path, sha256="00" * 32)
    (kept,) = (path for path in tmp_path.iterdir() if path.suffix != ".sha256")
    kept.write_bytes(bytes(len(DATA)))  # what somebody changed is fetched again
    assert bytes(Tensor.from_url(f"{at}/plain", folder=tmp_path, sha256=right).tolist()) == DATA
    with pytest.raises(TypeError, match="a file as complex64"):
        Tensor(kept, dtype="complex64")
    sent = hashlib.sha256(PACKED).hexdigest()
    packed = Tensor.from_url(f"{at}/packed.gz", True, folder=tmp_path, sha256=sent)
    assert packed.shape == (len(DATA),)


WRONG: list[tuple[str, str, bool]] = [
    ("/none", "could not be fetched: HTTP Error 404", False),
    ("/cut", f"could not be fetched: it was cut short: 100 of {len(DATA)} bytes came", False),
    ("/broken.gz", "cannot be unpacked", True),
    ("/plain", "cannot be unpacked", True),
]


@pytest.mark.parametrize(("path", "match", "gunzip"), WRONG)
def test_what_fails_leaves_nothing(
    server: tuple[str, list[str]], tmp_path: Path, path: str, match: str, gunzip: bool
) -> None:
    with pytest.raises(OSError, match=rf"^Tensor.from_url: .*{path}.* {match}"):
        Tensor.from_url(server[0] + path, gunzip, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_addresses_of_other_kinds(tmp_path: Path) -> None:
    for address in ("ftp://example.org/x", f"file://{tmp_path}/x", str(tmp_path)):
        with pytest.raises(ValueError, match=r"^Tensor.from_url: an address of http or https is wanted, got"):
            Tensor.from_url(address)
    with pytest.raises(OSError, match=r"^Tensor.from_url: http://127.0.0.1:9/x could not be fetched"):
        Tensor.from_url("http://127.0.0.1:9/x", folder=tmp_path)


@pytest.mark.parametrize("progress", [True, False, None])
def test_how_far_it_is(
    server: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, progress: bool | None
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    Tensor.from_url(f"{server[0]}/plain", folder=tmp_path, progress=progress)
    assert (f"\r{server[0]}/plain: 0.0 of 0.0 MB\n" == shown.getvalue()) == bool(progress)


