"""Models in several safetensors files, with an index."""

import json
from pathlib import Path

import pytest

from tg_frontend import Tensor, nn


def _sharded(folder: Path) -> Path:
    shapes = {"a": (3, 5), "b": (7,), "c": (0, 2), "d": ()}
    places = {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-2.safetensors", "d": "m-1.safetensors"}
    for file in set(places.values()):
        named = {name: Tensor.full(shapes[name], ord(name)) for name in shapes if places[name] == file}
        nn.state.safe_save(named, folder / file)
    index = folder / "m.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return index


def test_an_index_or_its_folder_gives_all_tensors(tmp_path: Path) -> None:
    index = _sharded(tmp_path)
    for source in (index, str(index), tmp_path):
        loaded = nn.state.safe_load(source)
        assert {name: tensor.shape for name, tensor in loaded.items()} == {"a": (3, 5), "b": (7,), "c": (0, 2), "d": ()}
        assert loaded["b"].tolist() == [ord("b")] * 7


def test_a_folder_with_one_file_needs_no_index(tmp_path: Path) -> None:
    nn.state.safe_save({"t": Tensor([1, 2])}, tmp_path / "model.safetensors")
    assert nn.state.safe_load(tmp_path)["t"].tolist() == [1, 2]


def test_folders_without_or_with_several_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no safetensors file"):
        nn.state.safe_load(tmp_path)
    for name in ("a", "b"):
        nn.state.safe_save({name: Tensor([1])}, tmp_path / f"{name}.safetensors")
    with pytest.raises(ValueError, match="several candidates"):
        nn.state.safe_load(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    index = _sharded(tmp_path)
    (tmp_path / "m-2.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 2 shards missing: \['m-2.safetensors'\]"):
        nn.state.safe_load(index)


def test_tensors_that_only_one_side_has_are_named(tmp_path: Path) -> None:
    index = _sharded(tmp_path)
    nn.state.safe_save({"b": Tensor([1]), "e": Tensor([1])}, tmp_path / "m-2.safetensors")
    with pytest.raises(ValueError, match=r"disagree about the tensors \['c', 'e'\]"):
        nn.state.safe_load(index)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("[1]", "no weight_map"),
        ('{"weight_map": 3}', "no weight_map"),
        ("[" * 100_000, "cannot be read"),
        ('{"weight_map": {"a": 1}}', "no name of a file"),
        ('{"weight_map": {"a": "../m.safetensors"}}', "no name of a file"),
        ('{"weight_map": {"a": "/etc/passwd"}}', "no name of a file"),
    ],
)
def test_a_damaged_or_hostile_index_is_refused(tmp_path: Path, text: str, message: str) -> None:
    index = tmp_path / "m.safetensors.index.json"
    index.write_text(text)
    with pytest.raises(ValueError, match=message):
        nn.state.safe_load(index)
