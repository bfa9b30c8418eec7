"""Labels of nodes: what a node computes, apart from its operands, each made once.

A graph's structure is then its labels and its edges, cheap to make and to compare (:mod:`tg_lazy.scheduler.template`).
"""

from __future__ import annotations

from weakref import ref

from tg_shape import Interned

from ..ops import Ops

Key = tuple[object, ...]


class Label:
    """What a node computes, apart from its operands: op, device, dtype, argument and how each operand is seen.

    Equal labels are one object, different ones never are.
    """

    __slots__ = ("__weakref__", "content")

    def __init__(self, content: Key) -> None:
        self.content = content

    def __repr__(self) -> str:
        return f"<Label {self.content}>"


_labels: Interned[Label] = Interned()
find_label = _labels.find
"""A weak reference to the label of a content, perhaps a dead one; None if there was none. :func:`label_of` makes it."""


def label_of(content: Key) -> Label:
    """The label of that content. One thread at a time."""
    weak = _labels.find(content)
    label = None if weak is None else weak()
    if label is None:
        label = Label(content)
        if content[0] is Ops.CUSTOM:  # what runs it is a part, and may hold memory
            _labels.add_fleeting(content, label)
        else:
            _labels.add(content, ref(label))
    return label
