"""A release is refused for each reason that there is, is tagged when it holds, and is published by a token alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tools import compatibility, pythons, release, urls, version, wheels

Run = Callable[..., subprocess.CompletedProcess[str]]

_MEMBERS = ("tg-dtype", "tg-lazy")


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody for git to name in commits and tags."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@example.org")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path, identity: None) -> Path:
    """A repository with the metadata of three packages, that may be released and published."""
    root = tmp_path / "checkout"
    for folder in ("", *(f"packages/{name}" for name in _MEMBERS)):
        (root / folder).mkdir(parents=True)
        shutil.copy(repository / folder / "pyproject.toml", root / folder)
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2026-01-31)\n\n- One.\n", encoding="utf-8")
    urls.set_urls(root, {"Repository": "https://example.org/tinytg"})
    version.set_version(root, "1.2.0")
    git(root, "init", "--quiet")
    commit(root)
    return root


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "all: a change")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that a release runs beside git's; none is run, and nothing is built or installed."""
    commands: list[list[str]] = []
    real = wheels.run

    def run(*command: str | Path, cwd: Path = wheels.ROOT) -> None:
        if command[0] == "git":
            real(*command, cwd=cwd)
        else:
            commands.append([str(part) for part in command])

    def build_checked(dist: Path) -> None:
        commands.append(["build"])
        dist.mkdir()
        (dist / "tinytg-1.2.0-py3-none-any.whl").touch()
        (dist / "tinytg-1.2.0.tar.gz").touch()

    monkeypatch.setattr(wheels, "run", run)
    monkeypatch.setattr(wheels, "build_checked", build_checked)
    monkeypatch.setattr(wheels, "install_everywhere", lambda dist: ["Python 3.11: installed and used"])
    return commands


def test_nothing_refuses(checkout: Path) -> None:
    assert release.refusals(checkout) == []


def test_a_dirty_tree_is_refused(checkout: Path) -> None:
    (checkout / "new.py").touch()
    (refusal,) = release.refusals(checkout)
    assert "not committed" in refusal and "new.py" in refusal


def test_a_folder_that_is_no_repository_is_refused(checkout: Path) -> None:
    shutil.rmtree(checkout / ".git")
    (refusal,) = release.refusals(checkout)
    assert "no git repository" in refusal


def test_a_tag_that_is_there_is_refused(checkout: Path) -> None:
    git(checkout, "tag", "v1.2.0")
    (refusal,) = release.refusals(checkout)
    assert "v1.2.0 is there already" in refusal


@pytest.mark.parametrize("old", ['version = "1.2.0"', "tg-dtype==1.2.0"])
def test_versions_that_differ_are_refused(checkout: Path, old: str) -> None:
    path = checkout / "packages" / "tg-lazy" / "pyproject.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, old.replace("1.2.0", "1.1.9")), encoding="utf-8")
    commit(checkout)
    (refusal,) = release.refusals(checkout)
    assert "packages/tg-lazy/pyproject.toml" in refusal and "1.1.9" in refusal


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("## 1.1.0 (2026-01-31)\n\n- One.\n", "no section '## 1.2.0"),
        ("## 1.2.01 (2026-01-31)\n\n- One.\n", "no section '## 1.2.0"),
        ("## 1.2.0 (unreleased)\n\n- One.\n", "no date for 1.2.0, but 'unreleased'"),
        ("## 1.2.0\n\n- One.\n", "no date for 1.2.0"),
        ("## 1.2.0 (2026-01-31)\n\n## 1.1.0 (2025-01-31)\n\n- One.\n", "no change under 1.2.0"),
    ],
)
def test_a_changelog_without_the_version_is_refused(checkout: Path, text: str, named: str) -> None:
    (checkout / "CHANGELOG.md").write_text(f"# Changelog\n\n{text}", encoding="utf-8")
    commit(checkout)
    (refusal,) = release.refusals(checkout)
    assert named in refusal


def test_what_is_published_is_the_tagged_commit(checkout: Path) -> None:
    (refusal,) = release.refusals(checkout, publish=True)
    assert "v1.2.0 is not there" in refusal
    git(checkout, "tag", "v1.2.0")
    assert release.refusals(checkout, publish=True) == []
    (checkout / "later").touch()
    commit(checkout)
    (refusal,) = release.refusals(checkout, publish=True)
    assert "v1.2.0 is at" in refusal


def test_what_is_published_says_where_it_comes_from(checkout: Path) -> None:
    path = checkout / "packages" / "tg-lazy" / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    for old, new, named in (
        ("org/tinytg", "org/other", "different"),
        ('Repository = "https://example.org/tinytg"\n', "", "no Repository in [project.urls] of packages/tg-lazy"),
    ):
        path.write_text(text.replace(old, new), encoding="utf-8")
        commit(checkout)
        git(checkout, "tag", "--force", "v1.2.0")
        (refusal,) = release.refusals(checkout, publish=True)
        assert named in refusal


def test_a_refused_release_builds_nothing(
    checkout: Path, ran: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "new.py").touch()
    assert release.main([], checkout) == 1
    assert "refused: the tree has changes" in capsys.readouterr().out
    assert ran == [] and git(checkout, "tag") == ""


def test_a_release_is_tagged_and_not_published(
    checkout: Path, ran: list[list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert release.main([str(tmp_path / "dist")], checkout) == 0
    assert git(checkout, "rev-parse", "v1.2.0^{commit}") == git(checkout, "rev-parse", "HEAD")
    assert [command[-1].rpartition("/")[2] for command in ran] == ["build", "tinytg-1.2.0.tar.gz"]
    assert ran[1][1:5] == ["-m", "twine", "check", "--strict"]
    assert "publish --trusted-publishing always" in capsys.readouterr().out


def test_a_release_is_not_tagged_where_a_check_fails(
    checkout: Path, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(dist: Path) -> list[str]:
        raise subprocess.CalledProcessError(1, "python")

    monkeypatch.setattr(wheels, "install_everywhere", fails)
    with pytest.raises(subprocess.CalledProcessError):
        release.main([str(tmp_path / "dist")], checkout)
    assert git(checkout, "tag") == ""


def test_a_rehearsal_tells_what_would_refuse_and_tags_nothing(
    checkout: Path, ran: list[list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (checkout / "new.py").touch()
    assert release.main(["--rehearse", str(tmp_path / "dist")], checkout) == 0
    assert "refused: the tree has changes" in capsys.readouterr().out
    assert ["build"] in ran and git(checkout, "tag") == ""


def test_publishing_uploads_the_built_files(checkout: Path, ran: list[list[str]], tmp_path: Path) -> None:
    git(checkout, "tag", "v1.2.0")
    assert release.main(["--publish", str(tmp_path / "dist")], checkout) == 0
    upload = ran[-1]
    assert upload[1:4] == ["publish", "--trusted-publishing", "always"]
    assert [name.rpartition("/")[2] for name in upload[-2:]] == ["tinytg-1.2.0-py3-none-any.whl", "tinytg-1.2.0.tar.gz"]


def test_addresses_are_written_to_every_package_and_replaced(checkout: Path) -> None:
    addresses = {"Repository": "https://example.org/a", "Changelog": "https://example.org/b"}
    urls.set_urls(checkout, addresses)
    assert list(urls.urls(checkout).values()) == [addresses] * (1 + len(_MEMBERS))
    assert (checkout / "pyproject.toml").read_text(encoding="utf-8").count("[project.urls]") == 1
    for label, address in (("Repository", "example.org"), ("Two words", "https://example.org")):
        with pytest.raises(ValueError, match="not a label and an address"):
            urls.set_urls(checkout, {label: address})


def test_every_package_states_the_same_addresses(repository: Path) -> None:
    assert len({str(addresses) for addresses in urls.urls(repository).values()}) == 1


def test_the_pythons_are_those_of_the_metadata(repository: Path) -> None:
    for path in version.project_files(repository):
        text = path.read_text(encoding="utf-8")
        named = [wanted for wanted in pythons.wanted() if f'"Programming Language :: Python :: {wanted}"' in text]
        assert named == pythons.wanted()[: len(named)] and named, path
        assert f'requires-python = ">={named[0]}"' in text


def test_a_python_is_found_only_where_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pythons.find(pythons.running()).path is not None
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho 'python3.99: command not found' >&2\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = pythons.find("3.99", download=False)
    assert found.path is None and found.missing == "not installed"
    shim.write_text("#!/bin/sh\necho 3.99\n", encoding="utf-8")
    assert pythons.find("3.99", download=False).path == shim


def test_a_python_that_cannot_be_had_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(wanted: str) -> pythons.Python:
        if wanted == "3.12":
            return pythons.Python(wanted, Path("python3.12"))
        return pythons.Python(wanted, None, "not installed, and the network is down")

    installed: list[Path] = []
    monkeypatch.setattr(wheels, "find", find)
    monkeypatch.setattr(wheels, "install", lambda dist, interpreter: installed.append(interpreter))
    report = wheels.install_everywhere(tmp_path)
    assert installed == [Path("python3.12")]
    assert report[1] == "Python 3.12: installed and used"
    assert report[-1] == f"Python {pythons.wanted()[-1]}: skipped, not installed, and the network is down"

    monkeypatch.setattr(compatibility, "find", find)
    monkeypatch.setattr(compatibility, "running", lambda: "3.11")
    for passes in (True, False):
        monkeypatch.setattr(compatibility, "test", lambda path, arguments, passes=passes: passes)
        assert compatibility.main([]) == (0 if passes else 1)
        assert "3.13: skipped, not installed, and the network is down" in capsys.readouterr().out
    monkeypatch.setattr(compatibility, "running", lambda: "3.12")
    assert compatibility.main([]) == 0, "the running Python is not tested again"


def test_a_sample_is_a_part_of_the_tests_of_each_file_and_always_the_same(repository: Path, run: Run) -> None:
    lists = [
        run(repository, "python", "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *arguments).stdout
        for arguments in (["packages/tg-dtype"], *[["--sample", "16", "packages/tg-dtype", "docs/jit.md"]] * 2)
    ]
    every, one, other = ([line for line in text.splitlines() if "::" in line] for text in lists)
    assert one == other and "docs/jit.md::python" in one
    assert len(set(one) & set(every)) < len(every) / 8
    files, all_files = ({line.partition("::")[0] for line in lines} for lines in (one, every))
    assert files == {*all_files, "docs/jit.md"}


@pytest.mark.slow
@pytest.mark.usefixtures("identity")
def test_a_release_from_a_copy_of_the_repository(tree: Path, run: Run) -> None:
    changelog = tree / "CHANGELOG.md"
    number = version.versions(tree)["pyproject.toml"]
    changelog.write_text(f"# Changelog\n\n## {number} (2026-01-31)\n\n- One.\n", encoding="utf-8")
    (tree / ".gitignore").write_text("dist/\n.hatch/\n__pycache__/\n", encoding="utf-8")
    git(tree, "init", "--quiet")
    commit(tree)
    done = run(tree, "hatch", "run", "release")
    assert done.returncode == 0 and f"tagged v{number}" in done.stdout, done.stdout
    assert f"Python {pythons.running()}: installed and used" in done.stdout
    assert git(tree, "tag") == f"v{number}"
    done = run(tree, "hatch", "run", "release")
    assert done.returncode == 1 and "is there already" in done.stdout, done.stdout
