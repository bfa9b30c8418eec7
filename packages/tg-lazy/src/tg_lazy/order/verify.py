"""A check of a finished schedule: every kernel finds in memory the version that it was made for."""

from __future__ import annotations

from collections.abc import Iterable

from ..fusion.step import Step, is_kernel
from ..graph.storage import Storage
from ..ops import Ops
from ..subgraph.node import Node
from .order import writes_where_it_reads


def verify_order(steps: Iterable[Step]) -> None:
    """Walks steps in execution order and follows which version of each memory there is.

    Raises:
      RuntimeError: if a step reads memory that nothing has written yet, or another version than the one that is there,
        or overwrites what it has yet to read. That is a defect of the scheduler, never of the user's program.
    """
    there: dict[Storage, Node] = {}
    for step in steps:
        for node in step.places:
            if node.size and node not in step.roots:
                _look(node, there, step)
        for root in step.roots:
            assert root.storage is not None
            memory = root.storage.root
            if root.op is Ops.ASSIGN:
                if root.size and not writes_where_it_reads(step, root):
                    raise RuntimeError(f"schedule: {step!r} overwrites what it has yet to read")
                before = root.srcs[0][0]
                if before.size and (memory in there or before.op is not Ops.BUFFER):
                    _follows(root, there, step)
                there[memory] = root
            elif root.size and root.op is not Ops.BUFFER_VIEW:
                there[memory] = root


def _version(node: Node) -> Node:
    """The node whose step gave the memory the content that ``node`` names."""
    while node.op is Ops.BUFFER_VIEW and node.storage is not None and node.storage.root is not node.storage:
        node = node.srcs[0][0]
    return node


def _look(node: Node, there: dict[Storage, Node], step: Step) -> None:
    assert node.storage is not None, f"{node!r} is read before it has memory"
    version = _version(node)
    found = there.get(node.storage.root)
    if version.op is Ops.BUFFER:
        if found is not None:
            raise RuntimeError(f"schedule: {step!r} reads {version!r}, which {found!r} has overwritten")
    elif found is None:
        raise RuntimeError(f"schedule: {step!r} reads {version!r}, which nothing has written yet")
    elif found is not version:
        raise RuntimeError(f"schedule: {step!r} reads {version!r}, but {found!r} is there")


def _follows(root: Node, there: dict[Storage, Node], step: Step) -> None:
    """Checks that an ASSIGN to a part of memory, which keeps the rest, comes after what made the rest."""
    assert root.storage is not None
    if not is_kernel(root):
        return
    found = there.get(root.storage.root)
    if found is None:
        raise RuntimeError(f"schedule: {step!r} writes to a part of memory that nothing has written yet")
    if found.op is Ops.ASSIGN and found.arg > root.arg:
        raise RuntimeError(f"schedule: {step!r} comes after {found!r}, which is a later version")
