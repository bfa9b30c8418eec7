"""Release every package at once: build, check, tag, and publish when told to.

    python -m tools.release [DIST]              # build, check, tag the commit vX.Y.Z; say what --publish would do
    python -m tools.release --rehearse [DIST]   # build and check; say what would refuse, and tag nothing
    python -m tools.release --publish [DIST]    # build and check the tagged commit anew, and upload it

``DIST`` is the folder of what is built; ``dist`` where it is not given. Nothing is built where something refuses.
CONTRIBUTING.md describes who runs what, and when.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tools import urls, version, wheels
from tools.installer import uv

ROOT = Path(__file__).resolve().parents[1]

# Where published files are looked up, so that an upload that was cut can be repeated.
_INDEX = "https://pypi.org/simple/"


def _git(root: Path, *arguments: str) -> str:
    """What git prints; nothing where it fails."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _refused_versions(root: Path) -> list[str]:
    found = version.versions(root)
    stated = next(iter(found.values()))
    return [
        f"pyproject.toml states the version {stated}, but {place} states {other}"
        for place, other in found.items()
        if other != stated
    ]


def _refused_changelog(root: Path, number: str) -> list[str]:
    """A release has a section ``## 1.2.3 (2026-01-31)`` with something in it."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(number)}(?: \(([^)\n]*)\))?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        return [f"CHANGELOG.md has no section '## {number} (YYYY-MM-DD)'"]
    reasons = []
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", section[1] or ""):
        reasons.append(f"CHANGELOG.md states no date for {number}, but '{section[1] or ''}'")
    if not re.search(r"^- ", section[2], re.MULTILINE):
        reasons.append(f"CHANGELOG.md lists no change under {number}")
    return reasons


def _refused_git(root: Path, number: str, *, publish: bool) -> list[str]:
    head = _git(root, "rev-parse", "HEAD")
    if not head:
        return [f"{root} is no git repository with a commit"]
    reasons = []
    if changed := _git(root, "status", "--porcelain"):
        reasons.append(f"the tree has changes that are not committed: {', '.join(changed.splitlines()[:5])}")
    tagged = _git(root, "rev-parse", "--verify", "--quiet", f"refs/tags/v{number}^{{commit}}")
    if publish and tagged != head:
        reasons.append(f"the tag v{number} is {f'at {tagged[:12]}' if tagged else 'not there'}, not at {head[:12]}")
    if not publish and tagged:
        reasons.append(f"the tag v{number} is there already, at {tagged[:12]}")
    return reasons


def _refused_urls(root: Path) -> list[str]:
    """What is published says where it comes from: every package, with the same addresses."""
    stated = urls.urls(root)
    if without := [place for place, addresses in stated.items() if "Repository" not in addresses]:
        return [f"no Repository in [project.urls] of {', '.join(without)}; `python -m tools.urls` writes it"]
    if len({str(addresses) for addresses in stated.values()}) != 1:
        return ["the packages state different [project.urls]; `python -m tools.urls` shows them"]
    return []


def refusals(root: Path, *, publish: bool = False) -> list[str]:
    """Why the tree at ``root`` cannot be tagged as a release, or published; nothing where it can."""
    number = version.versions(root)["pyproject.toml"]
    return [
        *_refused_versions(root),
        *_refused_changelog(root, number),
        *_refused_git(root, number, publish=publish),
        *(_refused_urls(root) if publish else []),
    ]


def check_metadata(dist: Path) -> None:
    """What an index would refuse: names, versions, classifiers, licences, the README.

    Raises:
        subprocess.CalledProcessError: if twine finds an error or a warning in a file.
    """
    wheels.run(sys.executable, "-m", "twine", "check", "--strict", *_files(dist))


def _files(dist: Path) -> list[Path]:
    return sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")])


def upload_command(dist: Path) -> list[str | Path]:
    """The upload, by a token that the index gives to the CI job that it trusts: nobody keeps a password."""
    return [uv(), "publish", "--trusted-publishing", "always", "--check-url", _INDEX, *_files(dist)]


def main(arguments: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description="Build, check, tag and publish.")
    parser.add_argument("dist", nargs="?", type=Path, default=root / "dist", help="the folder of what is built")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--rehearse", action="store_true", help="build and check alone; tag nothing")
    mode.add_argument("--publish", action="store_true", help="upload the tagged commit, by trusted publishing")
    options = parser.parse_args(arguments)
    dist = options.dist.resolve()
    number = version.versions(root)["pyproject.toml"]

    reasons = refusals(root, publish=options.publish)
    for reason in reasons:
        print(f"refused: {reason}", flush=True)
    if reasons and not options.rehearse:
        return 1
    wheels.build_checked(dist)
    check_metadata(dist)
    report = wheels.install_everywhere(dist)
    if options.publish:
        wheels.run(*upload_command(dist))
    elif not options.rehearse:
        wheels.run("git", "-C", root, "tag", "--annotate", f"v{number}", "--message", f"tinytg {number}")
    print(*report, sep="\n")
    if options.publish:
        print(f"published {number}")
    elif options.rehearse:
        print(f"rehearsed {number}: nothing was tagged or published")
    else:
        print(f"tagged v{number}; nothing was published. `--publish` would run:", *upload_command(dist))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
