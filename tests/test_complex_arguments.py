"""A complex number in place of each argument of each method: the result is complex, or the method refuses."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tools.tensor_page import measure, samples

from tg_lazy import Context
from tinytg import Tensor

REAL = frozenset(
    """
    abs angle real imag dist norm std var eq ne equal isclose allclose isfinite isinf isnan isreal isneginf isposinf
    logical_and logical_not logical_or logical_xor nonzero count_nonzero any all argwhere signbit is_nonzero
    double float half bfloat16 int long short byte char bool type_as cast view_as_real is_same_size result_type
    expand_as reshape_as view_as sum_to_size can_cast pad l1_loss pairwise_distance triplet_margin_loss nonzero_static
    """.split()
)
"""Methods that give reals of complex numbers, or take no more than the shape of an argument."""


def _odd(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value + 1j * np.ones_like(value) if value.dtype.kind in "fiub" else None
    return complex(value, 1) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _calls(name: str) -> Iterator[tuple[samples.Sample, str]]:
    for sample in samples.samples(name)[:2]:
        for place, value in enumerate(sample.args):
            if (odd := _odd(value)) is not None:
                yield replace(sample, args=(*sample.args[:place], odd, *sample.args[place + 1 :])), f"argument {place}"
        for key, value in sample.kwargs.items():
            if (odd := _odd(value)) is not None:
                yield replace(sample, kwargs={**sample.kwargs, key: odd}), key


def _lost(name: str) -> list[str]:
    found = []
    for sample, place in _calls(name):
        args, kwargs = sample.replaced(lambda array: measure.tensor(array, ""))
        try:
            given = sample.operation()(*args, **kwargs)
        except RecursionError as error:
            found.append(f"{name}, {place}: {error}")
        except Exception as error:  # in words of the method, not of what it stumbled over
            if "_parts" in str(error):
                found.append(f"{name}, {place}: {error}")
        else:
            kinds = {part.dtype.kind for part in measure.flat(given) if isinstance(part, Tensor)}
            if kinds and "complex" not in kinds:
                found.append(f"{name}, {place}: the result is of {kinds}")
    return found


@pytest.mark.drawn(1)
@pytest.mark.parametrize("third", range(3))
def test_no_imaginary_part_is_dropped(third: int) -> None:
    methods = [name for name in samples.operations() if name.startswith("Tensor.")]
    names = [name for name in methods if name.rpartition(".")[2] not in REAL]
    with Context(DEV="NUMPY"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [line for name in names[third::3] for line in _lost(name)] == []


def test_a_part_that_is_dropped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lerp = Tensor.lerp
    monkeypatch.setattr(Tensor, "lerp", lambda x, y, weight: lerp(x, y, getattr(weight, "real", weight)).real)
    with Context(DEV="NUMPY"):
        assert _lost("Tensor.lerp")
