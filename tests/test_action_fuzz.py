"""Random actions on random kernels: seeds that gate every run. ``hatch run fuzz actions`` tries others."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from tests.fuzz import actions, tiles
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Action, ActionError, Split, find
from tg_codegen.plan.vocabulary import ACTIONS

SEEDS = range(80)
COVERING = (82, 27, 53, 77, 234, 10, 12, 41, 51, 59)
"""Seeds that together accept every action, tried first: where one no longer does, the others are looked through."""
FOUND = (259020201, 285452794, 613942020, 576)
"""What runs from new seeds found."""


@pytest.mark.drawn(3)
@pytest.mark.parametrize("first", range(0, len(SEEDS), 10))
def test_what_is_accepted_is_right(first: int) -> None:
    accepted = 0
    for seed in SEEDS[first : first + 10]:
        finding, taken = actions.check(seed)
        assert finding is None, finding
        accepted += len(taken)
    assert accepted >= 5  # else nothing was looked at


def test_every_action_is_drawn_and_accepted() -> None:
    missing = set(ACTIONS)
    for seed in itertools.chain(COVERING, SEEDS, range(len(SEEDS), 600)):
        finding, taken = actions.check(seed)
        assert finding is None, finding
        missing -= {re.sub(r"^\d+: ", "", text).partition("(")[0] for text in taken}
        if not missing:
            return
    pytest.fail(f"never accepted: {missing}")


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found(seed: int) -> None:
    assert actions.check(seed)[0] is None


@pytest.mark.drawn(3)
@pytest.mark.parametrize("seed", range(12))
def test_products_by_tile_registers(seed: int) -> None:
    """With what may stand between the actions that cut them, terms of a tile that lie apart, and terms left over."""
    finding, taken = tiles.check(seed)
    assert finding is None, finding
    assert {text.partition("(")[0] for text in taken} >= {"split", "pack"} and any("DEPTH" in text for text in taken)


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Split, "apply", _forgets_the_rest)
    found = next(finding for seed in range(40) if (finding := actions.check(seed)[0]) is not None)
    assert len(found.actions) == 1 and found.actions[0].startswith("split")


def _forgets_the_rest(action: Action, nest: Nest) -> Nest:
    """A split that leaves out the outer loop."""
    assert isinstance(action, Split)
    axis = find(nest, action.axis, action)
    if axis.kind is not Kind.LOOP or not isinstance(axis.extent, int) or not 2 <= action.factor < axis.extent:
        raise ActionError("not here")
    kept = tuple(replace(a, extent=action.factor) if a is axis else a for a in nest.axes)
    return replace(nest, axes=kept)
