"""Why no card can be opened on a machine, told without opening anything: what ``tinytg devices`` says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tg_runtime import DevEntry

from ...core.system import System
from ..architecture import ARCHITECTURES, NAMES
from .driver import OLDEST, PATH
from .kernels import OLDEST_LINUX, Version, text_of, too_old
from .topology import Node, nodes

_MODULE: Final = "/sys/module/amdgpu"


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


def listed(system: System, found: Sequence[Node], entry: DevEntry) -> str:
    """A line for each card, and whether the kernel may be too old for the one that an entry asks for."""
    release = _release(system)
    names = {card.name: card.version for card in ARCHITECTURES.values() if entry.arch in ("", card.name)}
    old = None if release is None else too_old(release, names)
    if not found:
        return "; ".join(filter(None, ("the kernel lists no card in /sys/class/kfd", old)))
    rows = [f"  {i}: {node.architecture} ({node.name})" for i, node in enumerate(found)]
    return "\n".join(["it is not there; the cards that the kernel lists:", *rows, *([old] if old else [])])


def _release(system: System) -> Version | None:
    """The version of Linux; None where the module is not its own: one from elsewhere knows other cards."""
    release = re.match(r"(\d+)\.(\d+)", system.release)
    if release is None or system.exists(f"{_MODULE}/version"):
        return None
    return int(release[1]), int(release[2])


def _too_old(system: System) -> str | None:
    """Linux says KFD's version only to whoever opens the file."""
    release = _release(system)
    if release is None or release >= OLDEST_LINUX:
        return None
    least, kernel = text_of(OLDEST), text_of(OLDEST_LINUX)
    return f"the KFD of Linux {text_of(release)} is too old: {least} is needed, which Linux {kernel} and later have"


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
        return listed(system, found, entry)
    if chosen[0].version not in ARCHITECTURES:
        known = ", ".join(sorted(NAMES))
        return f"the card is a {chosen[0].architecture}, which this driver does not know; it knows {known}"
    return _forbidden(system, f"/dev/dri/renderD{chosen[0]['drm_render_minor']}")
