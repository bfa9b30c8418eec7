"""Programs that alter graphs, with fixed seeds. ``hatch run fuzz graphs`` draws new ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzz import graphs
from tg_frontend import Tensor
from tg_frontend.array import base, writing
from tg_frontend.autograd import differentiation, hooks
from tg_frontend.ops import filling
from tg_lazy import Context

FOUND = (Path(__file__).parent / "data" / "graph_programs.txt").read_text(encoding="utf-8").split("\n\n")
"""Programs that went wrong once, which runs from new seeds found."""


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("device", "first", "count"), [("NUMPY", 0, 60), ("NUMPY", 1000, 60), ("CPU", 2000, 3)])
def test_programs(device: str, first: int, count: int) -> None:
    with Context(DEV=device):
        for seed in range(first, first + count):
            finding = graphs.attempt(seed)
            assert finding is None, f"\n{finding}"


@pytest.mark.parametrize("place", range(len(FOUND)))
def test_what_was_found(place: int) -> None:
    lines = FOUND[place].splitlines()
    with Context(DEV="NUMPY"):
        assert graphs.Draft.run(lines) is not None and not graphs.wrong(lines)


def _found(first: int = 0, seeds: int = 700) -> str:
    """What is found first of a planted mistake: from a program on that showed it once, as not one in a hundred does."""
    with Context(DEV="NUMPY"):
        found = (graphs.attempt(seed) for seed in range(first, first + seeds))
        return next((f.what for f in found if f is not None), "")


def test_hooks_that_see_what_is_written_later_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "leave_hooks", lambda x: False)
    assert re.search(r" saw \[|gradient of", _found(103))


def test_gradients_that_are_not_all_of_what_views_give_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (hooks, writing):
        monkeypatch.setattr(module, "share_hooks", lambda x: None)
    assert "gradient of v" in _found(92)


def test_copies_do_not_go_around_the_first_hook_of_what_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["b0 = plain(0)", "a1 = leaf(1)", "v0 = b0 * 1.5", "v1 = a1 * 2.0", "v0.copy_(v1)",
             "h0 = hook(3.0); r0 = v1.register_hook(h0)"]  # fmt: skip
    with Context(DEV="NUMPY"):
        monkeypatch.setattr(hooks.Registered, "any", False)
        assert not graphs.wrong(lines)
        monkeypatch.setattr(hooks.Registered, "any", False)
        monkeypatch.setattr(filling, "copied", lambda x: x)
        assert graphs.wrong(lines)


def test_hooks_that_are_not_called_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differentiation, "called_back", lambda node, grad, fill: grad)
    assert _found(seeds=60)


def test_hooks_of_complex_tensors_that_see_one_part_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differentiation, "partners", lambda node: [])
    assert re.search(r" saw \[|gradient of|computed from one another", _found(30))


def test_parts_without_gradients_of_their_own_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "agreed", lambda *parts: parts)
    assert re.search(r" saw \[|gradient of", _found(145))


def test_tensors_that_are_not_cut_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "detach_", lambda x: x)
    assert "does not require a gradient" in _found(200)


VIEWS = ("v0.transpose(0, -1)", "v0[0]", "v0[:, ::2]", "v0.reshape(-1)", "v0[1:][0]")
WRITES = ("v0 *= 2.0", "v0[0] = a1[0]", "v1 *= 2.0", "v1[0] = a1[0, 0]", "v0.transpose(0, 1).copy_(a1.transpose(0, 1))")


@pytest.mark.parametrize("view", VIEWS)
def test_a_hook_of_a_view_stays_at_what_was_seen_when_it_was_registered(view: str) -> None:
    opening = ["a0 = leaf(0)", "a1 = leaf(1)", "v0 = a0 * a0", f"v1 = {view}"]
    opening.append("h1 = hook(2.0); r1 = v1.register_hook(h1)")
    with Context(DEV="NUMPY"):
        for write in WRITES:
            for used in ((), ("v9 = v1 * 3.0",)):
                for ending in ((), ("h2 = hook(-0.5); r2 = v1.register_hook(h2)",), ("v1.retain_grad()", "v0 *= 1.5")):
                    lines = [*opening, *used, write, *ending]
                    assert not graphs.wrong(lines), lines


@pytest.mark.parametrize("hooked", ["a0", "v0", "v1", "v2"])
@pytest.mark.parametrize("value", ["a1", "a1 * 2.0", "a1.sum() * 0.5", "v2", "v3", "b0", "0.5"])
def test_hooks_of_what_is_overwritten_see_zeros(hooked: str, value: str) -> None:
    """As those of what a part of is overwritten do, whether a gradient flows to the new elements or none."""
    opening = ["a0 = leaf(0)", "a1 = leaf(1)", "b0 = plain(0)", "v0 = a0 * 1.5", "v1 = v0[0]", "v2 = v0 * v0",
               "v3 = a1 * a1", f"h0 = hook(2.0); r0 = {hooked}.register_hook(h0)"]  # fmt: skip
    with Context(DEV="NUMPY"):
        for write in (f"v0.copy_({value})", f"v0[...] = {value}", f"v0.reshape(-1).copy_(({value} * b0).reshape(-1))",
                      f"v0[1:] = {value}"):  # fmt: skip
            assert not graphs.wrong([*opening, write]), write


def test_a_leaf_that_no_longer_wants_a_gradient_gets_none() -> None:
    x, y = (Tensor(np.ones(3), requires_grad=True) for _ in range(2))
    out = (x * y).sum()
    x.requires_grad_(False)
    out.backward(retain_graph=True)
    assert x.grad is None and y.grad is not None
    x.requires_grad_(True)
    out.backward(create_graph=True)
    assert x.grad is not None
    z = Tensor(np.ones(2) * 1j, requires_grad=True)
    out = z.abs().sum()
    z.detach_()
    out.backward()
    assert z.grad is None and not z.requires_grad


def test_complex_numbers_are_copied_with_their_gradient() -> None:
    rng = np.random.default_rng()
    source, real = rng.normal(size=3) + 1j * rng.normal(size=3), rng.normal(size=3)
    x, y = Tensor(source, requires_grad=True), Tensor(real, requires_grad=True)
    z = Tensor.zeros(2, 3, dtype="complex128")
    z.copy_(x)
    np.testing.assert_array_equal(z.numpy(), np.stack([source, source]))
    z[0].copy_(y)
    np.testing.assert_array_equal(z.numpy(), np.stack([real + 0j, source]))
    (z * (2 - 1j)).real.sum().backward()
    grads: list[Any] = [one.grad for one in (x, y)]
    np.testing.assert_allclose(grads[0].numpy(), np.full(3, 2 + 1j))
    np.testing.assert_allclose(grads[1].numpy(), np.full(3, 2.0))
    with pytest.raises(TypeError, match="copy_: complex numbers into a tensor of float32"):
        Tensor([0.0]).copy_(Tensor([2 + 1j]))
