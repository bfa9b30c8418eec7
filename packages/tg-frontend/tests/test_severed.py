"""Tensors that are given another graph in place: gradients flow through the new one, and never through the old one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tg_frontend import Tensor


def _grad(x: Tensor) -> list[float] | None:
    return None if x.grad is None else x.grad.tolist()


def _leaves() -> tuple[Tensor, Tensor]:
    return Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([4.0, 5.0, 6.0], requires_grad=True)


def test_a_replaced_tensor_has_the_graph_of_the_other() -> None:
    a, b = _leaves()
    y = a * 2
    y.replace(b * 3)
    (y * y).sum().backward()
    assert _grad(a) is None and _grad(b) == [72.0, 90.0, 108.0]


def test_a_replaced_tensor_is_another_name_of_a_leaf() -> None:
    a, b = _leaves()
    y = a * 2
    y.replace(b)
    assert not y.is_leaf
    (y * 5).sum().backward()
    assert _grad(a) is None and _grad(b) == [5.0] * 3


def test_data_takes_the_graph_away() -> None:
    a, _ = _leaves()
    y = a * 2
    y.replace(Tensor([7.0, 8.0, 9.0]))
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="depends on nothing"):
        y.sum().backward()
    w = Tensor([1.0, 1.0, 2.0], requires_grad=True)
    (y * w).sum().backward()
    assert _grad(a) is None and _grad(w) == [7.0, 8.0, 9.0]


def test_a_leaf_stays_one() -> None:
    a, b = _leaves()
    a.replace(Tensor([7.0, 8.0, 9.0]))
    (a * a).sum().backward()
    assert a.is_leaf and _grad(a) == [14.0, 16.0, 18.0]
    with pytest.raises(RuntimeError, match=r"replace: a leaf of shape \(3,\)"):
        a.replace(b * 2)
    a.replace((b * 2).detach())
    with Tensor.no_grad():
        a.replace(b * 3)
    assert a.tolist() == [12.0, 15.0, 18.0]
    layer = Tensor([0.0, 0.0, 0.0])
    layer.replace(b * 2)  # data becomes another name of a result
    b.grad = None
    layer.sum().backward()
    assert _grad(b) == [2.0] * 3


def _detached(y: Tensor) -> None:
    y.detach_()


def _replaced(y: Tensor) -> None:
    y.replace(Tensor([0.0, 0.0, 0.0]))


def _renamed(y: Tensor) -> None:
    y.replace(y + 1)


@pytest.mark.parametrize("change", [_detached, _replaced, _renamed])
@pytest.mark.parametrize("written", [False, True])
def test_what_was_computed_before_says_that_its_graph_is_gone(change: Callable[[Tensor], None], written: bool) -> None:
    a, _ = _leaves()
    y = a * 2
    t = y * y
    change(y)
    if written:
        y += 1
    for call in (lambda: t.sum().backward(), lambda: t.sum().gradient(a)):
        with pytest.raises(RuntimeError, match="cut off what it was computed from"):
            call()
    assert _grad(a) is None and _grad(y) is None


def test_what_is_computed_afterwards_is_of_the_new_graph() -> None:
    a, b = _leaves()
    y = a * 2
    _ = y * 3
    y.detach_()
    (y * b).sum().backward()
    assert _grad(a) is None and _grad(b) == [2.0, 4.0, 6.0]


def test_data_that_leaves_it_open_may_be_cut_off() -> None:
    x, w = Tensor([1.0, 2.0]) * 2, Tensor([3.0, 4.0], requires_grad=True)
    z = x * w
    x.detach_()
    z.sum().backward()
    assert _grad(w) == [2.0, 4.0]


def test_a_long_chain_of_detached_steps_keeps_none_of_them() -> None:
    import gc
    from weakref import ref

    w = Tensor([1.0, 2.0], requires_grad=True)
    x, seen = Tensor([0.5, 0.5]), []
    for _ in range(20):
        x = (x * w).detach_()
        seen.append(ref(x))
    gc.collect()
    assert sum(one() is not None for one in seen) == 1


def test_complex_tensors() -> None:
    a, b = Tensor([1 + 2j, 3 - 1j], requires_grad=True), Tensor([2 + 0j, 1j], requires_grad=True)
    y = a * 2
    y.replace(b * 3)
    (y * y.conj()).real.sum().backward()
    assert a.grad is None and b.grad is not None and b.grad.tolist() == [36 + 0j, 18j]


def test_a_result_that_moves_in_place_keeps_its_graph() -> None:
    a, _ = _leaves()
    y = a * 2
    t = y * y
    assert y.to_("NUMPY").device == "NUMPY" and y.requires_grad
    z = y * Tensor([1.0, 2.0, 3.0], device="NUMPY")
    z.sum().backward(retain_graph=True)
    assert _grad(a) == [2.0, 4.0, 6.0] and a.grad is not None and a.grad.device == a.device
    t.sum().backward()
    assert _grad(a) == [10.0, 20.0, 30.0]
    b = Tensor([1.0], requires_grad=True)
    assert b.to_("NUMPY").is_leaf and b.device == "NUMPY"
