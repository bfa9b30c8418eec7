"""docs/amd.md says which kernels know which architectures, as it was read in their sources; and how they are read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tools import amd_kernels

DISCOVERY = """
static int amdgpu_discovery_set_gc_ip_blocks(struct amdgpu_device *adev)
{
	switch (version) {
	case IP_VERSION(10, 3, 0):
	case IP_VERSION(11, 0, 1):
%s		break;
	}
}
static int amdgpu_discovery_set_sdma_ip_blocks(struct amdgpu_device *adev)
{
	switch (version) {
	case IP_VERSION(5, 2, 0):
%s		break;
	}
}
"""
DEVICE = """
		case IP_VERSION(9, 4, 3):
			if (needed)
				break;
		case IP_VERSION(10, 3, 0):
			gfx_target_version = 100300;
			break;
		case IP_VERSION(11, 0, 1):
		case IP_VERSION(11, 0, 4):
			gfx_target_version = 110003;
			break;
"""
CHIPS = "Product Name, GC version, SDMA version, MP0\nA, 10.3.0, 5.2.0, 1\nPhoenix, 11.0.1 / 11.0.4, 6.0.1, 2\nB, 9\n"


def kernel(folder: Path, *, graphics: str = "", copies: str = "", device: str | None = DEVICE) -> amd_kernels.Source:
    for path, text in {
        "Makefile": "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\n",
        f"{amd_kernels.AMD}/amdgpu/amdgpu_discovery.c": DISCOVERY % (graphics, copies),
        f"{amd_kernels.AMD}/amdkfd/kfd_device.c": device,
        amd_kernels.LISTS[0]: CHIPS,
    }.items():
        if text is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    return amd_kernels.Source(str(folder))


def test_the_page_is_what_was_read() -> None:
    text = amd_kernels.PAGE.read_text(encoding="utf-8")
    assert amd_kernels.page(text) == text, "run python -m tools.amd_kernels"
    assert "| gfx1150 | 6.12 | 6.6 |" in text


def test_a_card_is_known_where_its_copy_engine_is_loaded_too(tmp_path: Path) -> None:
    source = kernel(tmp_path)
    assert source.name == f"{tmp_path.name}, 6.1.7"
    found: dict[str, object] = {}
    exec(amd_kernels.module({(6, 1): source}), found)
    assert found["COMPUTE"] == {100300: (6, 1), 110003: (6, 1)} and found["GRAPHICS"] == {100300: (6, 1)}
    exec(amd_kernels.module({(6, 1): kernel(tmp_path, copies="	case IP_VERSION(6, 0, 1):\n")}), found)
    assert found["GRAPHICS"] == found["COMPUTE"]


def test_a_source_without_kfd_tells_what_is_absent(tmp_path: Path) -> None:
    whole, halves = kernel(tmp_path / "a"), kernel(tmp_path / "b", device=None)
    found: dict[str, object] = {}
    exec(amd_kernels.module({(6, 2): halves, (6, 3): whole}), found)
    assert found["COMPUTE_SEEN"] == ((6, 3),) and found["GRAPHICS_SEEN"] == ((6, 2), (6, 3))
    assert found["COMPUTE"] == {100300: (6, 3), 110003: (6, 3)} and found["GRAPHICS"] == {100300: (6, 2)}


def test_what_a_later_kernel_lacks_is_a_mistake(tmp_path: Path) -> None:
    more, less = kernel(tmp_path / "a", copies="	case IP_VERSION(6, 0, 1):\n"), kernel(tmp_path / "b")
    with pytest.raises(ValueError, match=r"GRAPHICS: a later kernel lacks \[110003\]"):
        amd_kernels.module({(6, 2): more, (6, 3): less})
    with pytest.raises(ValueError, match="has no drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c"):
        amd_kernels.module({(6, 2): amd_kernels.Source(str(tmp_path / "c"))})


def test_a_commit_is_a_source(tmp_path: Path) -> None:
    kernel(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "Makefile").unlink()
    source = amd_kernels.Source(f"{tmp_path}@HEAD")
    assert source.name == f"{tmp_path.name}, commit HEAD" and source.read("Makefile") and not source.read("none")
    assert amd_kernels.facts(source) == amd_kernels.facts(amd_kernels.Source(str(tmp_path)))


def test_the_program_tells_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert amd_kernels.main(["6.1"]) == 2 and "VERSION" not in capsys.readouterr().err
