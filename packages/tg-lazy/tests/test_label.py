from __future__ import annotations

from tg_lazy.graph.label import label_of


def test_equal_labels_are_one_object() -> None:
    label = label_of(("a", 1))
    assert label_of(("a", 1)) is label is not label_of(("a", 2))
    assert "('a', 1)" in repr(label)
