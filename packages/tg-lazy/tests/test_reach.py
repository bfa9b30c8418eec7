"""Views that some values of the variables lead out of their buffers."""

from __future__ import annotations

import pytest

from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp
from tg_lazy import ast as A
from tg_lazy.ast.reach import Doubt, check_reach, doubts
from tg_shape import ShapeTracker, Variable, View

N = Variable("n", 1, 8)


def copied(size: int, offset: int) -> LazyOp:
    """A kernel that copies n elements of a buffer of ``size``, from ``offset`` on."""
    value = A.load(1, dtypes.float32, ShapeTracker((View((N,), (1,), offset),)))
    store = A.store(0, ShapeTracker.from_shape((N,)), value)
    return A.sink((store,), (BufferArg(dtypes.float32, 8), BufferArg(dtypes.float32, size)))


def test_only_what_may_leave_its_buffer_is_in_doubt() -> None:
    assert doubts(copied(8, 0)) == () and doubts(copied(10, 2)) == ()
    (doubt,) = doubts(copied(9, 2))
    assert doubt.size == 9
    (doubt,) = doubts(copied(9, -1))
    assert doubt.view.offset == -1


def test_values_that_lead_out_are_told_and_others_pass() -> None:
    (late,), (early,) = doubts(copied(9, 2)), doubts(copied(20, -1))
    check_reach("a copy", [late], {N: 7})
    with pytest.raises(IndexError, match="a copy: n = 8 leads out of a buffer: elements 2 to 9 of 9"):
        check_reach("a copy", [late], {N: 8})
    with pytest.raises(IndexError, match="elements -1 to 2 of 20"):
        check_reach("a copy", [early], {N: 4})
    check_reach("a copy", [Doubt(View((N,), (-1,), 7), 8)], {N: 8})
    with pytest.raises(IndexError, match="elements -1 to 6 of 8"):
        check_reach("a copy", [Doubt(View((N,), (-1,), 6), 8)], {N: 8})
