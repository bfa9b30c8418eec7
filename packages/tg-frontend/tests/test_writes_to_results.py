"""Writes to what layers gave, where nobody has marked the parameters: gradients as where they require one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tg_frontend import Tensor, nn

DATA = np.random.default_rng(3).normal(size=(7, 3)).astype(np.float32)
Write = Callable[[Tensor, nn.Linear], Tensor]


def _added(h: Tensor, layer: nn.Linear) -> Tensor:
    h += layer(Tensor(DATA) @ Tensor(DATA[:3, :].repeat(2, axis=1)[:, :5]))
    return h


def _a_number(h: Tensor, layer: nn.Linear) -> Tensor:
    h[0] = 0.5
    return layer(h)


def _a_part(h: Tensor, layer: nn.Linear) -> Tensor:
    h[1:3] = layer(h.detach().clone())[1:3]
    return h


def _at_positions(h: Tensor, layer: nn.Linear) -> Tensor:
    h[Tensor([5, 2])] = layer(h.detach().clone())[:2]
    return h


def _where_a_mask_says(h: Tensor, layer: nn.Linear) -> Tensor:
    h[h > 0] = 0.25
    return layer(h)


def _a_view(h: Tensor, layer: nn.Linear) -> Tensor:
    row = h[2]
    row *= 3
    return layer(h)


def _a_transposed_view(h: Tensor, layer: nn.Linear) -> Tensor:
    h.T.exp_()
    return layer(h)


def _all_of_it(h: Tensor, layer: nn.Linear) -> Tensor:
    other = layer(h.detach().clone())
    h.fill_(2.0)
    return h + other


def _assigned(h: Tensor, layer: nn.Linear) -> Tensor:
    kept = h * 2
    kept.assign(0.5)
    return layer(kept) + h


def _a_buffer_of_zeros(h: Tensor, layer: nn.Linear) -> Tensor:
    buffer = Tensor.zeros(7, 5).contiguous()
    buffer[2] = h[2]
    buffer[3:5] = layer(h)[3:5]
    return buffer


def _a_view_of_a_buffer(h: Tensor, layer: nn.Linear) -> Tensor:
    buffer = Tensor.zeros(7, 5).contiguous()
    buffer[2:4].copy_(layer(h)[:2])
    return buffer * h.detach()


def _a_parameter_copied(h: Tensor, layer: nn.Linear) -> Tensor:
    buffer = Tensor.zeros(5, 5).contiguous()
    buffer.copy_(layer.weight)
    return h @ buffer


def _many_times(h: Tensor, layer: nn.Linear) -> Tensor:
    for _ in range(3):
        h += 1
        h.tanh_()
    return layer(h)


def _after_it_was_read(h: Tensor, layer: nn.Linear) -> Tensor:
    h.numpy()
    h.relu_()
    return layer(h)


WRITES = [_added, _a_number, _a_part, _at_positions, _where_a_mask_says, _a_view, _a_transposed_view, _all_of_it,
          _assigned, _a_buffer_of_zeros, _a_view_of_a_buffer, _a_parameter_copied, _many_times,
          _after_it_was_read]  # fmt: skip


def _gradients(write: Write, marked: bool) -> list[np.ndarray | None]:
    Tensor.manual_seed(11)
    first, second = nn.Linear(3, 5), nn.Linear(5, 5)
    parameters = [first.weight, first.bias, second.weight, second.bias]
    if marked:
        for parameter in parameters:
            assert parameter is not None
            parameter.requires_grad = True
    out = write(first(Tensor(DATA)), second)
    (out * out).sum().backward()
    return [None if p is None or p.grad is None else p.grad.numpy() for p in parameters]


@pytest.mark.parametrize("write", WRITES)
def test_gradients_are_those_of_marked_parameters(write: Write) -> None:
    marked, open_ = _gradients(write, True), _gradients(write, False)
    assert any(grad is not None and np.any(grad) for grad in marked)
    for want, got in zip(marked, open_, strict=True):
        if want is None or got is None:
            assert not np.any(want if got is None else got)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_what_gradients_are_made_of_is_not_written_in_silence() -> None:
    layer = nn.Linear(5, 5)
    h = nn.Linear(3, 5)(Tensor(DATA))
    h += layer(h)  # whose gradient at the weight is made of h
    with pytest.raises(RuntimeError, match="operand"):
        h.sum().backward()


def test_a_parameter_that_leaves_it_open_is_written_as_data() -> None:
    layer = nn.Linear(3, 5)
    layer.weight[1].fill_(0)
    layer.weight[2] = 1.5
    layer.weight -= 0.5 * layer.weight
    assert layer.weight._ctx is None
    assert layer.weight[1].tolist() == [0.0] * 3
    assert layer.weight[2].tolist() == [0.75] * 3
    layer(Tensor(DATA)).sum().backward()
    assert layer.weight.grad is not None
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.tile(DATA.sum(0), (5, 1)), rtol=1e-5)


def test_nothing_is_recorded_where_no_gradient_is_wanted() -> None:
    cache = Tensor.zeros(4, 5).contiguous()
    layer = nn.Linear(3, 5)
    with Tensor.no_grad():
        cache[1] = layer(Tensor(DATA))[0]
    assert cache._ctx is None
    assert cache.requires_grad is not True


# *** which memory a gradient is of ***


def test_a_tensor_that_got_other_memory_has_the_gradients_of_that_alone() -> None:
    a, b = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([5.0], requires_grad=True)
    whole, leaf = a * 2, Tensor.zeros(3, requires_grad=True)
    leaf.data = whole
    whole[0] = b[0]
    (leaf * 3).sum().backward()
    assert leaf.tolist() == [5.0, 4.0, 6.0] and b.grad is None
    assert leaf.grad is not None and leaf.grad.tolist() == [3.0, 3.0, 3.0]


def test_what_was_detached_and_got_other_memory_is_cut_off_no_more() -> None:
    a, b = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([5.0], requires_grad=True)
    part, whole = (a * 2).detach(), Tensor.zeros(3)
    part[1] = b[0]
    part.replace(whole)
    whole[0] = b[0] * 7
    assert part.requires_grad
    part.sum().backward()
    assert part.tolist() == [35.0, 0.0, 0.0]
    assert b.grad is not None and b.grad.tolist() == [7.0] and a.grad is None


@pytest.mark.parametrize("kinds", [("int32", "float32"), ("int16", "float32"), ("uint8", "int64", "float32")])
def test_a_gradient_flows_through_what_is_written_as_bits_of_other_memory(kinds: tuple[str, ...]) -> None:
    x, w = Tensor([1.0, 2.0, 3.0, 4.0]).realize(), Tensor([2.0, 3.0, 5.0, 7.0], requires_grad=True)
    bits, part = x, x[1:]
    for kind in kinds:
        bits = bits.bitcast(kind)
    bits *= w
    assert x.tolist() == bits.tolist() == [2.0, 6.0, 15.0, 28.0] and part.tolist() == [6.0, 15.0, 28.0]
    x[0] = 100.0
    bits[1] = w[0]
    assert x.tolist() == bits.tolist() == [100.0, 2.0, 15.0, 28.0]
    bits[1:].sum().backward()
    assert w.grad is not None and w.grad.tolist() == [1.0, 0.0, 3.0, 4.0] and not x.requires_grad
