"""Why no card can be opened on a machine, told without opening anything: what ``tinytg devices`` says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tg_runtime import DevEntry

from ...core.system import System
from ..architecture import ARCHITECTURES, NAMES
from .driver import OLDEST, PATH
from .topology import Node, nodes

_MODULE: Final = "/sys/module/amdgpu"
_LINUX: Final = (6, 1)
"""The kernel that brought :data:`~tg_hcq.amd.kfd.driver.OLDEST`."""


def missing(system: System, entry: DevEntry) -> str | None:
    """What stands in the way of the card that an entry asks for; None if nothing is known to."""
    if not system.exists(PATH):
        if system.exists(_MODULE):
            return f"needs {PATH}: the kernel's amdgpu module is loaded, but without CONFIG_HSA_AMD, or for no card"
        return f"needs {PATH}, which the kernel's amdgpu module makes for a card that it knows"
    return _too_old(system) or _forbidden(system, PATH) or _no_card(system, entry)


def wanted(found: Sequence[Node], entry: DevEntry) -> list[Node]:
    """The cards that an entry numbers 0, 1, …: those of its arch, and of its indices among them."""
    of_arch = [node for node in found if not entry.arch or node.architecture == entry.arch]
    return [of_arch[i] for i in entry.indices if i < len(of_arch)] if entry.indices else of_arch


def listed(found: Sequence[Node]) -> str:
    """A line for each card."""
    if not found:
        return "the kernel lists no card in /sys/class/kfd"
    rows = [f"  {i}: {node.architecture} ({node.name})" for i, node in enumerate(found)]
    return "\n".join(["it is not there; the cards that the kernel lists:", *rows])


def _too_old(system: System) -> str | None:
    """Linux says the version only to whoever opens the file; a module from elsewhere than its kernel has its own."""
    release = re.match(r"(\d+)\.(\d+)", system.release)
    if release is None or system.exists(f"{_MODULE}/version"):
        return None
    if (int(release[1]), int(release[2])) >= _LINUX:
        return None
    least, kernel = (".".join(map(str, version)) for version in (OLDEST, _LINUX))
    return f"the KFD of Linux {release[0]} is too old: {least} is needed, which Linux {kernel} and later have"


def _forbidden(system: System, path: str) -> str | None:
    if system.may_open(path):
        return None
    group = system.group_of(path)
    return (
        f"may not open {path}: it belongs to the group {group}; after `sudo usermod -aG {group} $USER` and a new login "
        "this user may (in a container, pass /dev/kfd and /dev/dri)"
    )


def _no_card(system: System, entry: DevEntry) -> str | None:
    found = nodes(system)
    chosen = wanted(found, entry)
    if not chosen:
        return listed(found)
    if chosen[0].version not in ARCHITECTURES:
        known = ", ".join(sorted(NAMES))
        return f"the card is a {chosen[0].architecture}, which this driver does not know; it knows {known}"
    return _forbidden(system, f"/dev/dri/renderD{chosen[0]['drm_render_minor']}")
