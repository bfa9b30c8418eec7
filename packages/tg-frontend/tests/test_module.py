"""Models that inherit: written as PyTorch's, found by name, in training or not."""

from __future__ import annotations

import copy
import math
import pickle
from collections import OrderedDict
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, TinyJit, nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(Tensor.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(self.norm(x)).dropout(0.5) * self.scale


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(7), Block(7)])
        self.head = nn.Sequential(nn.Linear(7, 3), nn.ReLU())
        self.register_buffer("offset", Tensor.zeros(3))

    def forward(self, x: Tensor, *, twice: bool = False) -> Tensor:
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(x) + self.offset  # type: ignore[attr-defined]
        return out * 2 if twice else out


X = np.random.default_rng(5).standard_normal((11, 7)).astype(np.float32)


def test_names_are_those_of_attributes() -> None:
    model = Model()
    names = [name for name, _ in model.named_parameters()]
    assert "blocks.1.inner.weight" in names and "blocks.0.scale" in names and "head.0.bias" in names
    assert {"offset", "blocks.0.norm.running_mean"} <= {name for name, _ in model.named_buffers()}
    assert not {id(p) for p in model.parameters()} & {id(b) for b in model.buffers()}
    assert set(model.state_dict()) == set(nn.state.get_state_dict(model))
    assert [name for name, _ in model.named_children()] == ["head"] or "blocks" in dict(model.named_children())
    kinds = [type(m).__name__ for m in model.modules()]
    assert kinds.count("Block") == 2 and kinds.count("Linear") == 3 and kinds[0] == "Model"
    seen: list[Any] = []
    model.apply(seen.append)
    assert seen[-1] is model and len(seen) == len(kinds)


def test_states_are_in_the_order_of_pytorch() -> None:
    """Its own parameters, its other tensors, then layers: by that the states of optimisers are numbered."""

    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.ModuleDict({"norm": nn.BatchNorm1d(2), "out": nn.Linear(2, 2)})
            self.register_buffer("mean", Tensor.zeros(2))
            self.scale = nn.Parameter(Tensor.ones(2))
            self.parts = nn.ParameterList([Tensor.ones(1)])
            self.frozen = nn.Parameter(Tensor.ones(2), requires_grad=False)

    model = nn.Sequential(Late(), nn.Linear(2, 2))
    own = ["scale", "frozen", "mean"]
    norm = [f"inner.norm.{name}" for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]
    rest = ["inner.out.weight", "inner.out.bias", "parts.0"]
    assert list(model.state_dict()) == [*(f"0.{name}" for name in (*own, *norm, *rest)), "1.weight", "1.bias"]
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    assert optimizer.params[0] is model[0].scale
    order = list(model.state_dict())
    assert list(model.requires_grad_(False).state_dict()) == order == list(model.requires_grad_().state_dict())
    assert model[0].frozen.requires_grad and not model[0].mean.requires_grad


def test_train_and_eval_decide_over_what_stands_around() -> None:
    model = Model()
    assert model.training is None
    plain = model(Tensor(X)).numpy()
    with Tensor.train():
        assert (model(Tensor(X)).numpy() != plain).any()
        model.eval()
        before = model.blocks[0].norm.running_mean.numpy().copy()
        model(Tensor(X)).realize()
        np.testing.assert_array_equal(model.blocks[0].norm.running_mean.numpy(), before)
    model.train()
    one, other = (model(Tensor(X)).numpy() for _ in range(2))
    assert (one != other).any() and not Tensor.training
    model.train()
    model.blocks[0].eval()
    assert model.training and model.blocks[0].training is False


def test_it_learns() -> None:
    model = Model().train()
    adam = nn.optim.Adam(model.parameters(), lr=0.01)
    target = Tensor(np.abs(X[:, :3]))

    @TinyJit
    def step(x: Tensor) -> Any:
        adam.zero_grad()
        loss = (model(x) - target).square().mean()
        loss.backward()
        adam.step()
        return loss.realize()

    with Tensor.train():
        losses = [step(Tensor(X)).item() for _ in range(60)]
    assert losses[-1] < losses[0]


def test_states_and_copies() -> None:
    one, other = Model().eval(), Model().eval()
    other.load_state_dict(one.state_dict())
    want = one(Tensor(X)).numpy()
    for model in (other, copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(model(Tensor(X)).numpy(), want)
    with pytest.raises(KeyError, match="not in the state: offset"):
        other.load_state_dict({k: v for k, v in one.state_dict().items() if k != "offset"})


MOVES: dict[str, Callable[[nn.Module], nn.Module]] = {
    **{f"{name}()": methodcaller(name) for name in ("half", "float", "double", "bfloat16", "cpu")},
    **{f"to {name}": methodcaller("to", name) for name in ("float64", "float16", "NUMPY", "complex64")},
    "to both": methodcaller("to", "NUMPY", "float64"),
    "to a tensor's": lambda model: model.to(Tensor.ones(1, device="NUMPY").double()),
    "type": methodcaller("type", "float64"),
}


@pytest.mark.parametrize("way", MOVES)
@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_move_with_their_tensors(way: str, sparse: bool) -> None:
    """What is added to them after a move joins what was there before."""
    model = nn.Embedding(5, 3, sparse=sparse) if sparse else nn.Embedding(5, 3)

    def add() -> None:
        rows = model(Tensor([1, 3, 1], device=model.weight.device))
        (rows * Tensor([1.0, 2.0, 4.0], device=rows.device, dtype=rows.dtype).reshape(1, 3)).sum().backward()

    add()
    want = model.weight.grad.numpy() * 2  # type: ignore[union-attr]
    assert MOVES[way](model) is model
    weight = model.weight
    for part in weight._floats():
        assert part.grad is not None and (part.grad.dtype, part.grad.device) == (part.dtype, part.device)
    if not weight.is_complex():
        assert (weight.grad._row_sparse() is not None) == sparse  # type: ignore[union-attr]
        add()
        assert weight.grad is not None and np.array_equal(weight.grad.float().numpy(), want)
    else:
        assert weight.grad is not None and np.array_equal(weight.grad.numpy() * 2, want)


def test_dtypes_and_gradients() -> None:
    model = Model().eval()
    weight = model.head[0].weight
    want = model(Tensor(X)).numpy()
    assert model.double() is model and weight.dtype.name == "float64"
    counts = model.blocks[0].norm.num_batches_tracked
    assert counts.dtype.name == "int32"
    np.testing.assert_allclose(model(Tensor(X.astype(np.float64))).numpy(), want, rtol=1e-5, atol=1e-6)
    assert model.to("NUMPY", "float32") is model and weight.device == "NUMPY" and weight.dtype.name == "float32"
    model.to(device="CPU").float()
    model.requires_grad_(False)
    assert all(p.requires_grad is False for p in (*model.parameters(), *model.buffers()))
    assert weight in set(model.parameters())
    model.requires_grad_()
    model(Tensor(X, device="CPU")).sum().backward()
    assert weight.grad is not None and model.offset.grad is None  # type: ignore[attr-defined]
    model.zero_grad()
    assert weight.grad is None
    with pytest.raises(TypeError, match="a dtype of floats or complex numbers is wanted, got int32"):
        model.to("int32")


def test_it_is_shown_as_a_tree() -> None:
    text = repr(Model())
    assert text.startswith("Model(\n  (blocks): ModuleList(\n    (0): Block(\n")
    assert "(inner): Linear(in_features=7" in text
    assert repr(nn.Sequential(Block(2))).count("Block") == 1


def test_what_is_missing_is_named() -> None:
    with pytest.raises(NotImplementedError, match="Empty has no forward"):
        type("Empty", (nn.Module,), {})()(Tensor([1.0]))


class Masked(nn.Module):
    """A model with a tensor of each kind."""

    def __init__(self) -> None:
        self.weight = nn.Parameter([1.0, 2.0])
        self.register_buffer("mean", Tensor([3.0]))
        self.register_buffer("mask", Tensor([4.0]), persistent=False)
        self.places = nn.Buffer([5.0], persistent=False)
        self.count = nn.Buffer([6.0])


def test_buffers_that_are_not_in_the_state() -> None:
    model = nn.Sequential(Masked())
    kept, all_of_them = ["0.weight", "0.mean", "0.count"], ["0.weight", "0.mean", "0.mask", "0.places", "0.count"]
    for one in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert list(one.state_dict()) == kept
        assert [name for name, _ in one.named_buffers()] == all_of_them[1:]
        assert [name for name, _ in one.named_parameters()] == ["0.weight"]
        one.load_state_dict({name: tensor.detach() * 0 + 9 for name, tensor in one.state_dict().items()})
        assert [tensor.tolist()[0] for tensor in one.buffers()] == [9, 4, 5, 9]
        with pytest.raises(KeyError, match="not in the model: 0.mask"):
            one.load_state_dict({**one.state_dict(), "0.mask": np.ones(1)})
    model.to("float16")
    assert {tensor.dtype.name for tensor in model.buffers()} == {"float16"}
    inner = model[0]
    inner.mask = Tensor([7.0])  # the name is not in the state, whatever it holds
    assert list(model.state_dict()) == kept
    inner.register_buffer("mask", Tensor([8.0]))
    assert "0.mask" in model.state_dict()
    assert "x.places" not in nn.state.get_state_dict(inner, "x")


def test_layers_that_there_are_not_are_refused_in_words() -> None:
    with pytest.raises(AttributeError, match=r"'Container': write nn.Module"):
        _ = nn.Container  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'DataParallel': a model runs on one device"):
        _ = nn.DataParallel  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'Linaer'"):
        _ = nn.Linaer  # type: ignore[attr-defined]


def test_hooks_names_and_lookups() -> None:
    model = nn.Sequential({"first": nn.Linear(3, 5), "act": nn.ReLU(inplace=True), "last": nn.Linear(5, 2)})
    assert list(model.state_dict()) == ["first.weight", "first.bias", "last.weight", "last.bias"]
    assert model.first is model[0] and model[1:][0] is model.act and len(model[:2]) == 2
    seen: list[tuple[int, ...]] = []
    with model.last.register_forward_pre_hook(lambda layer, args: seen.append(args[0].shape)):
        model(Tensor.ones(7, 3))
    model(Tensor.ones(7, 3))
    assert seen == [(7, 5)]
    assert model.get_submodule("last") is model.last and model.get_parameter("first.bias").shape == (5,)
    with pytest.raises(AttributeError, match="has no layer 'second'"):
        model.get_submodule("second")
    order: list[str] = []
    model.apply(lambda layer: order.append(type(layer).__name__))
    assert order == ["Linear", "ReLU", "Linear", "Sequential"]
    wide = nn.Linear(3, 5, dtype="float64")  # type: ignore[call-arg]
    assert wide.weight.dtype.name == wide.bias.dtype.name == "float64"  # type: ignore[union-attr]


def test_parameters_get_gradients_beside_the_input() -> None:
    x, layer = Tensor.ones(2, 3, requires_grad=True), nn.Linear(3, 4)
    layer(x).sum().backward()
    assert x.grad is not None and layer.weight.grad is not None and layer.bias.grad is not None  # type: ignore[union-attr]


def test_in_place_layers_write_to_their_input() -> None:
    x = Tensor([-1.0, 2.0], requires_grad=True)
    y = x * 2
    z = nn.ReLU(inplace=True)(y)
    assert z is y and y.tolist() == [0.0, 4.0]
    (z * z).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 16.0]


@pytest.mark.parametrize("kind", [nn.ModuleDict, nn.ParameterDict])
def test_what_a_dict_holds_is_an_attribute(kind: Callable[..., Any]) -> None:
    held = nn.Linear(2, 3) if kind is nn.ModuleDict else Tensor.ones(3)
    made = kind({"first": held})
    assert made.first is made["first"] and not hasattr(made, "second")
    with pytest.raises(AttributeError, match="no attribute 'second', and there is no such key"):
        _ = made.second
    copied = copy.deepcopy(made)
    assert copied.first is copied["first"] is not held


def test_tied_weights_through_attributes_of_a_dict_are_one() -> None:
    table, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
    parts = nn.ModuleDict({"table": table, "layers": nn.ModuleList([nn.Linear(3, 3)])})
    parts.table.weight = head.weight
    assert nn.state.get_state_dict(parts)["table.weight"] is head.weight


def test_the_order_of_a_dict_of_parameters() -> None:
    """Of a plain dict it is that of its names, as PyTorch has it, so that states of optimisers find their tensors."""
    one = Tensor([1.0])
    learnt: Any = nn.ParameterDict({"d": one, "c": Tensor([2.0])})
    learnt["z"] = Tensor([3.0])
    learnt.update({"y": Tensor([4.0]), "x": Tensor([5.0])})
    learnt.update(OrderedDict([("w", Tensor([6.0])), ("v", Tensor([7.0]))]))
    learnt.update([("u", Tensor([8.0])), ("t", Tensor([9.0]))])
    assert [name for name, _ in learnt.named_parameters()] == list("cdzxywvut") and learnt["d"] is one
    both = learnt | {"b": one, "a": one}
    assert type(both) is nn.ParameterDict and list(both) == list("cdzxywvutab") and "a" not in learnt
    learnt |= nn.ParameterDict([("s", Tensor([10.0])), ("r", Tensor([11.0]))])
    assert type(learnt) is nn.ParameterDict and list(learnt) == list("cdzxywvutsr")


class Embeds(nn.Module):
    """A fixed table, as positions have it, and a mask beside what is learnt."""

    def __init__(self) -> None:
        self.table = Tensor.arange(6.0).reshape(2, 3).sin()
        self.mask = Tensor.empty(2, 2).fill_(-math.inf).triu_(1)
        self.asked = Tensor.ones(3, requires_grad=True)
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer((x + self.table) * self.asked) + self.mask.exp().sum()
        return out


def test_what_a_module_merely_holds_is_not_learnt() -> None:
    """As in PyTorch, where such a tensor is in no state either: one without it is loaded."""
    model = Embeds()
    assert [name for name, _ in model.named_parameters()] == ["asked", "layer.weight", "layer.bias"]
    before = [model.table.tolist(), model.mask.tolist(), model.asked.tolist()]
    optimiser = nn.optim.SGD(model.parameters(), lr=0.5)
    model.requires_grad_(True)
    model(Tensor.ones(2, 3)).sum().backward()
    optimiser.step()
    after = [model.table.tolist(), model.mask.tolist(), model.asked.tolist()]
    assert before[:2] == after[:2] and before[2] != after[2]
    state = model.state_dict()
    assert set(state) == {"asked", "table", "mask", "layer.weight", "layer.bias"}
    theirs = {name: value for name, value in state.items() if name not in ("table", "mask")}
    fresh = Embeds()
    assert fresh.load_state_dict(theirs).missing_keys == [] and fresh.asked.tolist() == after[2]
    with pytest.raises(nn.state.StateError, match="not in the state: layer.bias"):
        fresh.load_state_dict({name: value for name, value in theirs.items() if name != "layer.bias"})
    with pytest.raises(nn.state.StateError, match="not in the state: mask"):  # of a plain object all are asked for
        nn.state.load_state_dict({"mask": Tensor.ones(2)}, {})


def test_what_a_list_or_dict_of_parameters_holds_is_learnt() -> None:
    learnt = nn.ParameterList([Tensor.ones(1)])
    learnt.append(Tensor.ones(2)).extend([Tensor.ones(3)])
    learnt += [Tensor.ones(4)]
    learnt.insert(0, Tensor.ones(5))
    learnt[1] = Tensor.ones(6)
    learnt[2:3] = [Tensor.ones(7), Tensor.ones(8)]
    assert [p.shape for p in copy.deepcopy(learnt).parameters()] == [(n,) for n in (5, 6, 7, 8, 3, 4)]
    names = nn.ParameterDict({"a": Tensor.ones(1)})
    names["b"] = Tensor.ones(2)
    assert names.setdefault("c", Tensor.ones(3)).shape == (3,) and names.setdefault("a", None).shape == (1,)
    names |= {"d": Tensor.ones(4)}
    assert [p.shape for p in names.copy().parameters()] == [(n,) for n in (1, 2, 3, 4)]
    assert list(nn.ParameterList([nn.Buffer([1.0])]).parameters()) == []
