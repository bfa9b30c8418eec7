"""Row-sparse gradients of tables: beside dense ones, beside optimisers stepped by hand in numpy, beside PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tg_frontend import Tensor, TinyJit, grad, hessian, nn, vmap
from tg_frontend.nn.optim import SGD, Adam, AdamW, Optimizer, OptimizerGroup, SparseAdam
from tg_lazy import Context
from tg_runtime import GlobalCounters

Floats = NDArray[np.float32]
SIZES = [(1, 1, 1), (7, 3, 5), (101, 17, 53), (13, 1, 211), (300, 5, 129), (5, 4, 0)]  # rows, width, lookups


def drawn(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def looked_up(rows: int, count: int, seed: int = 0, around: int = 0) -> NDArray[np.int32]:
    """Positions; with ``around``, also some before the first row and behind the last."""
    return np.random.default_rng((seed, rows, count)).integers(-around, rows + around, count).astype(np.int32)


def table_of(rows: int, width: int) -> Tensor:
    return Tensor(drawn(rows, width), requires_grad=True)


def grad_of(table: Tensor) -> Tensor:
    assert table.grad is not None
    return table.grad


def backward(table: Tensor, ids: Any, sparse: bool, weights: Floats, **more: Any) -> None:
    found = table.embedding(Tensor(ids), sparse=sparse, **more)
    (found.square() * Tensor(weights)).sum().backward()


@pytest.mark.parametrize(("rows", "width", "count"), SIZES)
def test_the_gradient_is_the_dense_one(rows: int, width: int, count: int, backend: str) -> None:
    ids, weights = looked_up(rows, count, around=2 * rows), drawn(count, width, seed=1)
    sparse, dense = table_of(rows, width), table_of(rows, width)
    backward(sparse, ids, True, weights)
    backward(dense, ids, False, weights)
    grad = grad_of(sparse)
    assert grad.is_sparse and not grad_of(dense).is_sparse
    assert grad.shape == (rows, width) and grad.dtype is sparse.dtype and grad.device == sparse.device
    assert grad.indices().shape == (count,) and grad.values().shape == (count, width)
    inside = np.where(ids < 0, ids + rows, ids)
    assert grad.indices().tolist() == [int(i) if 0 <= i < rows else -1 for i in inside]
    np.testing.assert_allclose(grad.to_dense().numpy(), grad_of(dense).numpy(), rtol=1e-6, atol=1e-6)
    merged = grad.coalesce()
    assert merged.is_coalesced() and merged.coalesce() is merged and not grad.is_coalesced()
    assert merged.indices().tolist() == sorted({int(i) for i in inside if 0 <= i < rows})
    np.testing.assert_allclose(merged.to_dense().numpy(), grad_of(dense).numpy(), rtol=1e-6, atol=1e-6)


def test_values_for_one_row_are_added_up_in_their_order(backend: str) -> None:
    table = Tensor.zeros(3, 1, requires_grad=True).realize()
    weights = np.array([[1e8], [1.0], [-1e8], [1.0]], np.float32)
    (table.embedding(Tensor([2, 2, 2, 2]), sparse=True) * Tensor(weights)).sum().backward()
    assert grad_of(table).coalesce().values().tolist() == [[1.0]]  # ((1e8 + 1) - 1e8) + 1
    assert grad_of(table).to_dense().tolist() == [[0.0], [0.0], [1.0]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int64", "uint64"])
def test_indices_of_any_type(dtype: str, backend: str) -> None:
    for rows in (3, 127, 255, 256, 257):
        table = Tensor.ones(rows, 2, requires_grad=True)
        ids = Tensor([0, 2, 2, min(rows - 1, 126)]).cast(dtype)
        table.embedding(ids, sparse=True).sum().backward()
        want = np.zeros((rows, 2), np.float32)
        np.add.at(want, ids.numpy().astype(np.int64), 1)
        np.testing.assert_array_equal(grad_of(table).coalesce().to_dense().numpy(), want)


@pytest.mark.parametrize("shape", [(5,), (5, 2, 3), (5, 0)])
def test_rows_of_any_shape(shape: tuple[int, ...], backend: str) -> None:
    table = Tensor.ones(*shape, requires_grad=True)
    found = table.embedding(Tensor([[1, 1], [4, 9]]), sparse=True)
    assert found.shape == (2, 2, *shape[1:])
    found.sum().backward()
    want = np.zeros(shape)
    want[[1, 4]] = np.array([2.0, 1.0]).reshape((2, *(1 for _ in shape[1:])))
    assert grad_of(table).is_sparse and grad_of(table).coalesce().to_dense().tolist() == want.tolist()


@pytest.mark.parametrize("padding", [0, 3, -1])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_padding_gets_no_gradient(padding: int, sparse: bool, backend: str) -> None:
    layer = nn.Embedding(5, 2, padding_idx=padding, sparse=sparse)
    assert layer.padding_idx == padding % 5 and layer.weight[padding].tolist() == [0.0, 0.0]
    assert np.abs(np.delete(layer.weight.numpy(), padding, 0)).min() > 0
    layer(Tensor([[0, 3, 4], [3, 1, 1]])).sum().backward()
    want = np.array([1.0, 2.0, 0.0, 2.0, 1.0])
    want[padding] = 0
    assert grad_of(layer.weight).is_sparse is sparse
    assert grad_of(layer.weight).to_dense().numpy()[:, 1].tolist() == want.tolist()
    few = Tensor.ones(5, 2, requires_grad=True)  # two lookups: compared with every position
    few.embedding(Tensor([padding, 2]), padding, sparse).sum().backward()
    assert grad_of(few).to_dense().numpy()[:, 0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_gradients_add_up_in_place(backend: str) -> None:
    table, ids = table_of(11, 3), [looked_up(11, 5, seed=seed) for seed in range(2)]
    twice = table_of(11, 3)
    for one in ids:
        backward(table, one, True, drawn(5, 3))
        backward(twice, one, False, drawn(5, 3))
    grad = grad_of(table)
    assert grad.is_sparse and grad.indices().tolist() == [*ids[0], *ids[1]]
    np.testing.assert_allclose(grad.to_dense().numpy(), grad_of(twice).numpy(), rtol=1e-6)
    backward(table, ids[0], True, drawn(5, 3))
    backward(twice, ids[0], False, drawn(5, 3))
    assert grad_of(table) is grad and grad.is_sparse and grad.indices().shape == (15,)
    for sparse_first in (True, False):
        backward(table, ids[0], sparse_first, drawn(5, 3))
        backward(twice, ids[0], False, drawn(5, 3))
        backward(table, ids[1], not sparse_first, drawn(5, 3))
        backward(twice, ids[1], False, drawn(5, 3))
        assert grad_of(table) is grad and not grad.is_sparse  # dense from then on
        np.testing.assert_allclose(grad.numpy(), grad_of(twice).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats(dtype: str, backend: str) -> None:
    start, ids = drawn(7, 3), looked_up(7, 40)
    grads = []
    for sparse in (True, False):
        table = Tensor(start, dtype=dtype, requires_grad=True)
        for _ in range(2):
            (table.embedding(Tensor(ids), sparse=sparse) * Tensor(drawn(40, 3), dtype=dtype)).sum().backward()
        grads.append(grad_of(table))
    assert grads[0].is_sparse and grads[0].dtype is grads[1].dtype
    tolerance = 1e-2 if dtype == "float16" else 1e-12
    for one in (grads[0].to_dense(), grads[0].coalesce().to_dense()):
        np.testing.assert_allclose(one.numpy(), grads[1].numpy(), rtol=tolerance, atol=tolerance)


def test_a_table_that_is_used_in_two_ways(backend: str) -> None:
    ids = looked_up(9, 6)
    grads = []
    for sparse in (True, False):
        table, hidden = table_of(9, 4), Tensor(drawn(6, 4))
        out = (table.embedding(Tensor(ids), sparse=sparse) * hidden) @ table.T
        out.square().sum().backward()
        grads.append(grad_of(table))
        also = table_of(9, 4)  # the other way round
        ((also.T @ Tensor(drawn(9, 2))).sum() + also.embedding(Tensor(ids), sparse=sparse).square().sum()).backward()
        grads.append(grad_of(also))
    assert not grads[0].is_sparse
    for one, other in zip(grads[:2], grads[2:], strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-4)


def test_two_lookups_of_one_table_stay_sparse(backend: str) -> None:
    table = table_of(9, 2)
    one, other = (table.embedding(Tensor(ids), sparse=True) for ids in ([1, 8], [8, 8, 0]))
    (one.sum() + 2 * other.sum()).backward()
    assert grad_of(table).is_sparse
    assert grad_of(table).coalesce().indices().tolist() == [0, 1, 8]
    assert grad_of(table).coalesce().values().tolist() == [[2.0, 2.0], [1.0, 1.0], [5.0, 5.0]]


def test_a_table_that_was_computed(backend: str) -> None:
    table = table_of(6, 2)
    (table * 3).embedding(Tensor([1, 1, 5]), sparse=True).sum().backward()
    assert not grad_of(table).is_sparse
    assert grad_of(table).numpy()[:, 0].tolist() == [0.0, 6.0, 0.0, 0.0, 0.0, 3.0]


def test_derivatives_of_the_gradient(backend: str) -> None:
    ids = Tensor([2, 0, 2])
    for sparse in (True, False):
        table = Tensor([[1.0], [2.0], [3.0]], requires_grad=True)
        loss = (table.embedding(ids, sparse=sparse) ** 3).sum()
        (slope,) = loss.gradient(table)
        assert slope.is_sparse is sparse
        (bend,) = (slope * Tensor([[1.0], [1.0], [2.0]])).sum().gradient(table)
        assert bend.to_dense().tolist() == [[6.0], [0.0], [72.0]]
        loss.backward(create_graph=True)
        assert not grad_of(table).is_sparse and grad_of(table).tolist() == [[3.0], [0.0], [54.0]]
        (bend,) = grad_of(table).sum().gradient(table)
        assert bend.to_dense().tolist() == [[6.0], [0.0], [36.0]]


def test_hooks_see_it_and_may_change_it(backend: str) -> None:
    table, seen = Tensor.ones(4, 2, requires_grad=True), []

    def hook(grad: Tensor) -> None:
        seen.append(grad.is_sparse)

    handle = table.register_hook(hook)
    table.embedding(Tensor([3, 1]), sparse=True).sum().backward()
    assert seen == [True] and grad_of(table).is_sparse
    handle.remove()
    table.grad = None
    table.register_hook(lambda grad: grad * 10)
    table.embedding(Tensor([3, 1]), sparse=True).sum().backward()
    assert not grad_of(table).is_sparse and grad_of(table)[:, 0].tolist() == [0.0, 10.0, 0.0, 10.0]
    between = (table * 2).retain_grad()
    between.embedding(Tensor([3, 1]), sparse=True).sum().backward()
    assert grad_of(between).to_dense()[:, 0].tolist() == [0.0, 1.0, 0.0, 1.0]


def test_inside_of_a_checkpoint(backend: str) -> None:
    layer, ids = nn.Embedding(6, 2, sparse=True), Tensor([5, 1, 5])
    nn.checkpoint(lambda ids: layer(ids).sum(), ids).backward()
    assert grad_of(layer.weight).to_dense()[:, 0].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]


def test_it_may_stand_wherever_a_tensor_may(backend: str) -> None:
    table = Tensor.zeros(4, 2, requires_grad=True)
    table.embedding(Tensor([3, 1, 3]), sparse=True).sum().backward()
    grad = grad_of(table)
    want = [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    assert grad.tolist() == want and grad.is_sparse
    assert (grad * 2).sum().item() == 12.0 and grad[3].tolist() == [2.0, 2.0] and grad.is_sparse
    rows = grad.values()
    rows.assign(7)
    assert grad.values().tolist()[0] == [1.0, 1.0]  # which are not the gradient's
    view = grad[1]
    grad *= 0.5
    table.grad = grad
    assert not grad.is_sparse and grad.tolist() == [[x / 2 for x in row] for row in want] and view.tolist() == [0.5] * 2
    with pytest.raises(TypeError, match="is dense"):
        grad.coalesce()
    for what in ("indices", "values", "is_coalesced"):
        with pytest.raises(TypeError, match=f"{what}: a row-sparse tensor is wanted"):
            getattr(grad, what)()
    assert grad.to_dense() is grad


def test_it_outlives_a_write_to_the_table(backend: str) -> None:
    table = Tensor([[1.0], [2.0], [3.0]], requires_grad=True).realize()
    table.embedding(Tensor([2, 0]), sparse=True).square().sum().backward()
    with Tensor.no_grad():
        table.assign([[0.0], [0.0], [0.0]])
    table.realize()
    assert grad_of(table).values().tolist() == [[6.0], [2.0]]
    assert grad_of(table).to_dense().tolist() == [[2.0], [0.0], [6.0]]


def test_to_another_device() -> None:
    table = Tensor([[1.0], [2.0]], device="CPU", requires_grad=True)
    table.embedding(Tensor([1, 1], device="CPU"), sparse=True).sum().backward()
    table.to_("NUMPY")
    grad = grad_of(table)
    assert grad.is_sparse and grad.device == "NUMPY" and grad.to_dense().tolist() == [[0.0], [2.0]]


def test_it_prints_its_rows(backend: str) -> None:
    table = Tensor.zeros(1_000_000, 2, requires_grad=True)
    table.embedding(Tensor([[70, 5], [70, -3_000_000]]), sparse=True).sum().backward()
    device = ", device='NUMPY'" if backend == "NUMPY" else ""
    assert repr(grad_of(table).coalesce()).replace(device, "") == (
        "Tensor(indices=[ 5, 70],\n"
        "       values=[[1., 1.],\n"
        "               [2., 2.]], shape=(1000000, 2))"
    )
    assert "indices=[70,  5, 70, -1]" in repr(grad_of(table)) and "<pre>" in grad_of(table)._repr_html_()


@pytest.mark.parametrize("bad", [
    (lambda t: t.embedding(Tensor([1.0]), sparse=True), TypeError, "indices are integers, got a tensor of float32"),
    (lambda t: t.embedding([1], sparse=True), TypeError, "indices are integers, got a list"),
    (lambda t: t.embedding(Tensor([1]), padding_idx=3), ValueError, "padding_idx 3 is no row of a table of 3"),
    (lambda t: t.embedding(Tensor([1]), padding_idx=-4), ValueError, "padding_idx -4 is no row of a table of 3"),
    (lambda t: t.embedding(Tensor([1]), padding_idx=1.5), TypeError, "padding_idx is an integer, got 1.5"),
    (lambda t: t.embedding(Tensor([1], device="NULL")), ValueError, "an index on NULL"),
    (lambda t: t.sum().embedding(Tensor([1])), ValueError, "has no rows"),
    (lambda t: nn.Embedding(3, 2, padding_idx=3), ValueError, "Embedding: padding_idx 3 is no row"),
    (lambda t: nn.Embedding(3, 2)(Tensor([1.0])), TypeError, "Embedding: indices are integers"),
])  # fmt: skip
def test_bad_input(bad: tuple[Callable[[Tensor], Any], type[Exception], str]) -> None:
    call, kind, message = bad
    with pytest.raises(kind, match=message):
        call(Tensor.ones(3, 2, requires_grad=True))


# *** optimisers ***


class ByHand:
    """An optimiser of one table, in float64: what a step does with the ids and the rows of the gradient."""

    def __init__(self, table: Floats) -> None:
        self.w = table.astype(np.float64)
        self.m, self.v, self.steps = np.zeros_like(self.w), np.zeros_like(self.w), 0

    def dense(self, ids: Any, rows: Any) -> Any:
        out = np.zeros_like(self.w)
        np.add.at(out, ids, rows)
        return out

    def sgd(self, ids: Any, rows: Any, lr: float, momentum: float = 0, nesterov: bool = False) -> None:
        g = self.dense(ids, rows)
        self.m = momentum * self.m + g
        self.w = self.w - lr * (g + momentum * self.m if nesterov else self.m)

    def sparse_adam(self, ids: Any, rows: Any, lr: float, b1: float, b2: float, eps: float) -> None:
        self.steps += 1
        g, there = self.dense(ids, rows), np.unique(ids)
        m, v = self.m[there], self.v[there]
        self.m[there] = m + (1 - b1) * (g[there] - m)
        self.v[there] = v + (1 - b2) * (g[there] ** 2 - v)
        rate = lr * np.sqrt(1 - b2**self.steps) / (1 - b1**self.steps)
        self.w[there] -= rate * self.m[there] / (np.sqrt(self.v[there]) + eps)


STEPS: dict[str, tuple[Callable[[list[Tensor]], Optimizer], Callable[[ByHand, Any, Any], None]]] = {
    "sgd": (lambda p: SGD(p, lr=0.1), lambda o, ids, g: o.sgd(ids, g, 0.1)),
    "momentum": (lambda p: SGD(p, lr=0.1, momentum=0.9), lambda o, ids, g: o.sgd(ids, g, 0.1, 0.9)),
    "nesterov": (lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True),
                 lambda o, ids, g: o.sgd(ids, g, 0.1, 0.9, True)),
    "adam": (lambda p: SparseAdam(p, lr=0.1), lambda o, ids, g: o.sparse_adam(ids, g, 0.1, 0.9, 0.999, 1e-8)),
    "adam with an eps that counts": (lambda p: SparseAdam(p, lr=0.1, b1=0.5, b2=0.7, eps=0.3),
                                     lambda o, ids, g: o.sparse_adam(ids, g, 0.1, 0.5, 0.7, 0.3)),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("rows", "width", "count"), SIZES)
def test_steps(name: str, rows: int, width: int, count: int, backend: str) -> None:
    make, by_hand = STEPS[name]
    start = drawn(rows, width)
    layer = nn.Embedding(rows, width, sparse=True)
    layer.weight.assign(start)
    optimizer, want = make([layer.weight]), ByHand(start)
    place = layer.weight.lazydata.storage
    for step in range(4):
        ids, gradient = looked_up(rows, count, seed=step), drawn(count, width, seed=step)
        optimizer.zero_grad()
        (layer(Tensor(ids)) * Tensor(gradient)).sum().backward()
        optimizer.step()
        by_hand(want, ids, gradient.astype(np.float64))
        np.testing.assert_allclose(layer.weight.numpy(), want.w, rtol=2e-4, atol=2e-5)
    assert place is not None and layer.weight.lazydata.storage is place  # in place


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_rows_that_are_out_of_range_are_left_out(name: str, backend: str) -> None:
    layer = nn.Embedding(3, 2, sparse=True)
    before = layer.weight.numpy()
    optimizer = STEPS[name][0]([layer.weight])
    layer(Tensor([7, -9, 1])).sum().backward()
    optimizer.step()
    moved = (layer.weight.numpy() - before).round(4)
    assert moved[[0, 2]].tolist() == [[0.0, 0.0]] * 2 and (moved[1] < -0.05).all()


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adam"])
@pytest.mark.parametrize("padding", [None, 0])
def test_steps_beside_torch(name: str, padding: int | None) -> None:
    torch: Any = pytest.importorskip("torch")
    theirs_made = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        "adam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
    }
    for rows, width, count in SIZES[:-1]:
        ours = nn.Embedding(rows, width, padding_idx=padding, sparse=True)
        theirs = torch.nn.Embedding(rows, width, padding_idx=padding, sparse=True)
        ours.weight.assign(drawn(rows, width))
        theirs.weight.data = torch.tensor(drawn(rows, width))
        other = Tensor.ones(1, 1), torch.ones(1, 1, requires_grad=True)  # without a gradient: not counted
        optimizers = STEPS[name][0]([other[0], ours.weight]), theirs_made[name]([other[1], theirs.weight])
        for step in range(4):
            ids, weights = looked_up(rows, count, seed=step), drawn(count, width, seed=step)
            for optimizer in optimizers:
                optimizer.zero_grad()
            (ours(Tensor(ids)).square() * Tensor(weights)).sum().backward()
            (theirs(torch.tensor(ids)).square() * torch.tensor(weights)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
            np.testing.assert_allclose(ours.weight.numpy(), theirs.weight.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_steps_of_half_precision_round_each_row_once(name: str, backend: str) -> None:
    table = Tensor.ones(3, 1, dtype="float16", requires_grad=True)
    optimizer = STEPS[name][0]([table])
    optimizer.lr = 1e-4
    table.embedding(Tensor([1] * 20), sparse=True).sum().backward()
    optimizer.step()
    want = 1 - 20e-4 if name == "sgd" else 1.0  # one by one, SGD's would all be lost
    assert table[1].item() == float(np.float16(want)) and table[0].item() == 1.0


@pytest.mark.parametrize("kind", [Adam, AdamW])
def test_optimisers_of_dense_gradients_refuse_it(kind: Any) -> None:
    dense, layer = Tensor([1.0], requires_grad=True), nn.Embedding(5, 2, sparse=True)
    optimizer = kind([dense, layer.weight])
    before = layer.weight.numpy()
    (layer(Tensor([1])).sum() * dense).backward()
    with pytest.raises(RuntimeError, match=rf"{kind.__name__}: parameter 1, of shape \(5, 2\), .*SparseAdam"):
        optimizer.step()
    assert dense.item() == 1.0 and layer.weight.numpy().tolist() == before.tolist()  # nothing is half done
    layer.weight.grad = grad_of(layer.weight).to_dense()
    optimizer.step()
    assert dense.item() != 1.0


def test_what_needs_the_whole_table_is_refused() -> None:
    dense, layer = Tensor([1.0], requires_grad=True), nn.Embedding(5, 2, sparse=True)
    decaying = SGD([dense, layer.weight], lr=0.1, weight_decay=0.01)
    (layer(Tensor([1])).sum() * dense).backward()
    with pytest.raises(RuntimeError, match=r"SGD: parameter 1, of shape \(5, 2\), .* weight decay"):
        decaying.step()
    with pytest.raises(RuntimeError, match=r"SparseAdam: parameter 0, of shape \(1,\), has a dense gradient"):
        SparseAdam([dense, layer.weight]).step()
    assert dense.item() == 1.0
    for numbers in ({"b1": 1.0}, {"b2": -0.1}, {"eps": -1.0}, {"lr": -1.0}):
        with pytest.raises(ValueError, match="SparseAdam"):
            SparseAdam([dense], **numbers)  # type: ignore[arg-type]


def test_a_group_of_optimisers(backend: str) -> None:
    layer, head = nn.Embedding(5, 2, sparse=True), nn.Linear(2, 1)
    group = OptimizerGroup(SparseAdam([layer.weight], lr=0.1), Adam(nn.state.get_parameters(head), lr=0.1))
    before = head(layer(Tensor([1, 2]))).square().sum().item()
    for _ in range(8):
        group.zero_grad()
        head(layer(Tensor([1, 2]))).square().sum().backward()
        group.step()
    assert head(layer(Tensor([1, 2]))).square().sum().item() < before


def test_gradients_are_forgotten_and_filled_with_zeros(backend: str) -> None:
    layer = nn.Embedding(5, 2, sparse=True)
    optimizer = SGD([layer.weight], lr=1.0)
    layer(Tensor([1])).sum().backward()
    grad = grad_of(layer.weight)
    optimizer.zero_grad(set_to_none=False)
    assert layer.weight.grad is grad and grad.is_sparse and grad.indices().shape == (0,)
    assert grad.to_dense().tolist() == [[0.0, 0.0]] * 5
    before = layer.weight.numpy()
    optimizer.step()
    assert layer.weight.numpy().tolist() == before.tolist()
    layer(Tensor([4])).sum().backward()
    assert layer.weight.grad is grad and grad.indices().tolist() == [4]
    optimizer.zero_grad()
    assert layer.weight.grad is None


def test_state_is_saved_and_restored(backend: str) -> None:
    start = drawn(7, 3)

    def made() -> tuple[nn.Embedding, SparseAdam]:
        layer = nn.Embedding(7, 3, sparse=True)
        layer.weight.assign(start)
        return layer, SparseAdam([layer.weight], lr=0.1)

    def step(layer: nn.Embedding, optimizer: Optimizer, seed: int) -> None:
        optimizer.zero_grad()
        layer(Tensor(looked_up(7, 5, seed=seed))).square().sum().backward()
        optimizer.step()

    (one, first), (other, second) = made(), made()
    for seed in range(3):
        step(one, first, seed)
    saved = nn.state.get_state_dict(first.state_dict())
    assert sorted(saved) == ["param_groups.0.lr", "state.0.exp_avg", "state.0.exp_avg_sq", "state.0.step"]
    second.load_state_dict({name: Tensor(value.numpy()) for name, value in saved.items()})
    other.weight.assign(one.weight.numpy())
    for layer, optimizer in ((one, first), (other, second)):
        step(layer, optimizer, 9)
    assert one.weight.numpy().tolist() == other.weight.numpy().tolist()


@pytest.mark.parametrize("power", [1.0, 2.0, 3.5, float("inf")])
@pytest.mark.parametrize("bound", [0.5, 1e6])
def test_the_norm_of_gradients_is_bounded(power: float, bound: float, backend: str) -> None:
    found = []
    for sparse in (True, False):
        table, other = table_of(7, 3), Tensor(drawn(2, 5), requires_grad=True)
        backward(table, looked_up(7, 20, around=9), sparse, drawn(20, 3))
        other.square().sum().backward()
        grads = grad_of(table), grad_of(other)
        want = np.concatenate([grad.to_dense().numpy().ravel() for grad in grads])
        norm = nn.clip_grad_norm_([table, Tensor.ones(2), other], bound, power)
        np.testing.assert_allclose(norm.item(), np.linalg.norm(want, power), rtol=1e-4)
        got = np.concatenate([grad.to_dense().numpy().ravel() for grad in grads])
        np.testing.assert_allclose(got, want * min(1, bound / np.linalg.norm(want, power)), rtol=1e-4, atol=1e-6)
        assert table.grad is grads[0] and grads[0].is_sparse is sparse
        found.append(norm.item())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_the_norm_counts_no_row_that_is_out_of_range(backend: str) -> None:
    table = Tensor.ones(3, 1, requires_grad=True)
    table.embedding(Tensor([5, 1, 1, -9]), sparse=True).sum().backward()
    assert nn.clip_grad_norm_(table, 1.0).item() == 2.0
    np.testing.assert_allclose(grad_of(table).to_dense().numpy(), [[0.0], [1.0], [0.0]], rtol=1e-5)


def test_elements_of_gradients_are_bounded(backend: str) -> None:
    grads = []
    for sparse in (True, False):
        table = table_of(7, 3)
        backward(table, looked_up(7, 20), sparse, drawn(20, 3))
        nn.clip_grad_value_([table], 0.75)
        assert grad_of(table).is_sparse is sparse
        grads.append(grad_of(table).to_dense().numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-5, atol=1e-6)
    assert np.abs(grads[0]).max() == 0.75


def test_clipping_without_gradients_and_with_bad_bounds() -> None:
    assert nn.clip_grad_norm_([], 1.0).item() == 0.0 and nn.clip_grad_norm_(Tensor.ones(2), 1.0).item() == 0.0
    empty = Tensor.ones(3, 2, requires_grad=True)
    empty.embedding(Tensor([]).cast("int32"), sparse=True).sum().backward()
    assert nn.clip_grad_norm_([empty], 1.0).item() == 0.0
    nn.clip_grad_value_([empty], 1.0)
    for bad in (lambda: nn.clip_grad_norm_([], -1.0), lambda: nn.clip_grad_norm_([], 1.0, 0.0),
                lambda: nn.clip_grad_value_([], -1.0)):  # fmt: skip
        with pytest.raises(ValueError, match="clip_grad"):
            bad()


def test_transforms_of_functions_that_look_up_rows(backend: str) -> None:
    table, ids = Tensor(drawn(4, 2)), Tensor([[2, 0, 2], [1, 1, 0]])

    def cubes(table: Tensor, ids: Tensor, sparse: bool = True) -> Tensor:
        return (table.embedding(ids, padding_idx=1, sparse=sparse) ** 3).sum()

    def dense(table: Tensor, ids: Tensor) -> Tensor:
        return cubes(table, ids, False)

    for one, other in (
        (grad(cubes)(table, ids[0]), grad(dense)(table, ids[0])),
        (vmap(grad(cubes), (None, 0))(table, ids), vmap(grad(dense), (None, 0))(table, ids)),
        (hessian(cubes)(table, ids[0]), hessian(dense)(table, ids[0])),
    ):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


def test_a_recorded_function_may_return_it(backend: str) -> None:
    table = table_of(4, 2)

    @TinyJit
    def slope(ids: Tensor) -> Tensor:
        return table.embedding(ids, sparse=True).square().sum().gradient(table)[0]

    for turn in range(5):
        ids, want = looked_up(4, 3, seed=turn), np.zeros((4, 2))
        np.add.at(want, ids, 2 * table.numpy()[ids])
        np.testing.assert_allclose(slope(Tensor(ids)).numpy(), want, rtol=1e-5)


# *** what is touched ***


@pytest.mark.parametrize("name", ["sgd", "adam"])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_step_touches_the_rows_that_it_reads(name: str, recorded: bool) -> None:
    with Context(DEV="CPU"):
        rows, width, count = 1_000_000, 8, 256
        layer = nn.Embedding(rows, width, sparse=True)
        optimizer = STEPS[name][0]([layer.weight])
        layer.weight.realize(*nn.state.get_state_dict(optimizer.state_dict()).values())
        nbytes = rows * width * 4

        def step(ids: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = layer(ids).square().sum().backward()
            optimizer.step()
            return loss.realize()

        run = TinyJit(step) if recorded else step
        for turn in range(4):
            ids = Tensor(looked_up(rows, count, seed=turn)).realize()
            memory = GlobalCounters.mem_peak = GlobalCounters.mem_used
            touched = GlobalCounters.global_mem
            run(ids)
            assert GlobalCounters.mem_peak - memory < nbytes // 10
            assert GlobalCounters.global_mem - touched < nbytes // 10
        assert grad_of(layer.weight).is_sparse


@pytest.mark.parametrize("name", STEPS)
def test_a_recorded_step_is_the_same(name: str, backend: str) -> None:
    rows, width, count = 23, 5, 17
    tables = []
    for recorded in (False, True):
        layer = nn.Embedding(rows, width, sparse=True)
        layer.weight.assign(drawn(rows, width))
        optimizer = STEPS[name][0]([layer.weight])

        def step(ids: Tensor, layer: nn.Embedding = layer, optimizer: Optimizer = optimizer) -> Tensor:
            optimizer.zero_grad()
            (layer(ids).square().sum() + layer(ids[:3]).sum()).backward()  # two gradients of one table
            optimizer.step()
            return layer.weight.detach()[0] + 0

        run = TinyJit(step) if recorded else step
        for turn in range(6):
            run(Tensor(looked_up(rows, count, seed=turn, around=3)))
        tables.append(layer.weight.numpy())
    np.testing.assert_array_equal(tables[0], tables[1])


@pytest.mark.parametrize("dense_too", [False, True])
def test_a_record_leaves_gradients_for_a_step_outside(dense_too: bool, backend: str) -> None:
    layer = nn.Embedding(11, 2, sparse=True)

    @TinyJit
    def backward(ids: Tensor) -> None:
        layer(ids).square().sum().backward()

    optimizer = SGD([layer.weight], lr=0.1)
    want = layer.weight.numpy()
    for turn in range(6):
        ids = looked_up(11, 7, seed=turn)
        optimizer.zero_grad()
        backward(Tensor(ids))
        grad = np.zeros_like(want)
        np.add.at(grad, ids, 2 * want[ids])
        assert grad_of(layer.weight).is_sparse and grad_of(layer.weight).indices().tolist() == ids.tolist()
        if dense_too:  # the dense table is that of this call
            np.testing.assert_allclose(grad_of(layer.weight).numpy(), grad, rtol=1e-5, atol=1e-6)
        optimizer.step()
        want -= np.float32(0.1) * grad
        np.testing.assert_allclose(layer.weight.numpy(), want, rtol=1e-4, atol=1e-6)


def test_a_recorded_step_of_gradients_from_outside(backend: str) -> None:
    layer = nn.Embedding(11, 2, sparse=True)
    optimizer = SparseAdam([layer.weight], lr=0.1)
    want = ByHand(layer.weight.numpy())
    step = TinyJit(optimizer.step)
    for turn in range(3):
        ids = looked_up(11, 7, seed=turn)
        optimizer.zero_grad()
        layer(Tensor(ids)).sum().backward()
        grad_of(layer.weight).realize()
        step()
        want.sparse_adam(ids, np.ones((7, 2)), 0.1, 0.9, 0.999, 1e-8)
        np.testing.assert_allclose(layer.weight.numpy(), want.w, rtol=1e-4, atol=1e-5)


def test_a_record_in_which_a_sparse_gradient_would_grow_is_refused(backend: str) -> None:
    layer = nn.Embedding(11, 2, sparse=True)
    layer(Tensor([1])).sum().backward()

    @TinyJit
    def backward(ids: Tensor) -> None:
        layer(ids).sum().backward()

    with pytest.raises(ValueError, match="row-sparse gradient of a tensor .* call zero_grad"):
        for _ in range(3):
            backward(Tensor([1, 2]))
