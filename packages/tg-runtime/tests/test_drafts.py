"""What is written takes a file's place, and is on the disk then: the file, and the folder that names it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tg_runtime.memory.drafts import replacing


@pytest.mark.parametrize("folder", ["", "inner", "inner/deep"])
def test_the_folder_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    flushed: list[tuple[bool, int]] = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append((stat.S_ISDIR(os.fstat(handle).st_mode), handle)))
    with replacing(os.path.join(folder, "file"), "save") as file:
        file.write(b"content")
    assert (tmp_path / folder / "file").read_bytes() == b"content"
    assert [is_folder for is_folder, _ in flushed] == [False, True]
