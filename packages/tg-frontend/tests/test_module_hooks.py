"""Hooks of modules and optimisers, states beside tensors, and tensors that move."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn

RNG = np.random.default_rng(37)


def draw(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def same(got: Tensor | None, want: Any) -> None:
    assert got is not None
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)


class Scaled(nn.Module):
    """x * by, for hooks with names."""

    def forward(self, x: Tensor, by: float = 1.0) -> Tensor:
        if by < 0:
            raise ArithmeticError("negative")
        return x * by


def test_the_order_of_hooks() -> None:
    called: list[str] = []
    layer = Scaled()
    for name, first in (("a", False), ("b", True), ("c", False)):
        layer.register_forward_pre_hook(lambda m, args, name=name: called.append(f"pre {name}"), prepend=first)
        layer.register_forward_hook(lambda m, args, out, name=name: called.append(name), prepend=first)
    layer(Tensor([1.0]))
    assert called == ["pre b", "pre a", "pre c", "b", "a", "c"]


def test_hooks_with_names() -> None:
    layer = Scaled()
    handle = layer.register_forward_pre_hook(lambda m, args, kw: (args, {"by": kw["by"] + 1}), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kw, out: out + kw["by"], with_kwargs=True)
    assert layer(Tensor([5.0]), by=2).tolist() == [18.0]
    handle.remove()
    assert layer(Tensor([5.0]), by=2).tolist() == [12.0]
    layer.register_forward_pre_hook(lambda m, args, kw: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"gives None or \(args, kwargs\)"):
        layer(Tensor([5.0]), by=2)


def test_hooks_after_errors() -> None:
    seen: list[Any] = []
    layer = Scaled()
    layer.register_forward_hook(lambda m, args, out: seen.append(("plain", out)))
    layer.register_forward_hook(lambda m, args, out: seen.append(("always", out)), always_call=True)
    with pytest.raises(ArithmeticError):
        layer(Tensor([1.0]), -1.0)
    assert seen == [("always", None)]
    layer(Tensor([1.0]))
    assert [name for name, _ in seen] == ["always", "plain", "always"]


@pytest.mark.parametrize("wish", [True, False])
@pytest.mark.parametrize("derived", [True, False])
def test_gradients_through_hooks(wish: bool, derived: bool) -> None:
    """A chain of three layers, beside numpy; inputs without a wish have None, also where they were computed."""
    w, v, x0 = draw(4, 3), draw(2, 4), draw(5, 3)
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Tanh(), nn.Linear(4, 2, bias=False))
    model[0].weight.assign(Tensor(w))
    model[2].weight.assign(Tensor(v))
    seen: dict[int, Any] = {}

    def hook(layer: Any, inside: Any, outside: Any) -> Any:
        seen[next(n for n in range(3) if model[n] is layer)] = inside, outside
        return tuple(None if g is None else g * 2 for g in inside)

    for layer in model:
        layer.register_full_backward_hook(hook)
    model[1].register_full_backward_pre_hook(lambda layer, outside: (outside[0] * 3,))
    x = Tensor(x0, requires_grad=wish or None)
    hidden = np.tanh((2 * x0 if derived else x0) @ w.T)
    model(x * 2 if derived else x).sum().backward()
    back = np.ones((5, 2)) @ v
    same(seen[2][0][0], back)
    same(seen[1][1][0], back * 2 * 3)
    same(seen[1][0][0], back * 6 * (1 - hidden**2))
    outer = back * 12 * (1 - hidden**2)
    same(seen[0][1][0], outer)
    same(model[0].weight.grad, outer.T @ (2 * x0 if derived else x0))
    assert list(seen) == [2, 1, 0]
    if wish:
        same(seen[0][0][0], outer @ w)
        same(x.grad, outer @ w * 2 * (2 if derived else 1))
    else:
        assert seen[0][0] == (None,)


def test_hooks_of_gradients_give_all_or_none() -> None:
    layer, x = nn.ReLU(), Tensor(draw(3), requires_grad=True)
    with layer.register_full_backward_hook(lambda layer, inside, outside: (inside[0], inside[0])):
        out = layer(x).sum()
    layer(x).sum().backward()  # the hook is removed for calls from here on
    with pytest.raises(RuntimeError, match="gave 2 gradients; 1 are wanted"):
        out.backward()


class Counter(nn.Module):
    """A layer with a number beside its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 1)
        self.count = 0

    def get_extra_state(self) -> int:
        return self.count

    def set_extra_state(self, state: int) -> None:
        self.count = state


def test_states_beside_tensors() -> None:
    model, other = nn.Sequential(Counter(), nn.ReLU()), nn.Sequential(Counter(), nn.ReLU())
    model[0].count = 7
    state = model.state_dict()
    assert list(state) == ["0.inner.weight", "0.inner.bias", "0._extra_state"]
    keys = other.load_state_dict(state)
    assert other[0].count == 7 and keys == ([], []) and repr(keys) == "<All keys matched successfully>"
    del state["0._extra_state"]
    with pytest.raises(KeyError, match="_extra_state"):
        other.load_state_dict(state)
    keys = other.load_state_dict({**state, "more": Tensor([1.0])}, strict=False)
    assert keys.missing_keys == ["0._extra_state"] and keys.unexpected_keys == ["more"]


def test_hooks_of_states() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    inner, called = model[1], []
    inner.register_state_dict_pre_hook(lambda layer, prefix, keep: called.append(prefix))
    inner.register_state_dict_post_hook(lambda layer, state, prefix, _: state.pop(f"{prefix}bias"))
    inner.register_load_state_dict_pre_hook(
        lambda layer, state, prefix, *_: state.setdefault(f"{prefix}bias", Tensor([5.0]))
    )
    inner.register_load_state_dict_post_hook(lambda layer, keys: called.append(tuple(keys)))
    state = model.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.weight"]
    model.load_state_dict(state)
    assert inner.bias is not None and inner.bias.tolist() == [5.0] and called == ["1.", ([], [])]
    assert list(state) == ["0.weight", "0.bias", "1.weight"]  # the caller's state stays
    inner.register_load_state_dict_pre_hook(lambda *given: given[-1].append("too old"))
    with pytest.raises(RuntimeError, match="too old"):
        model.load_state_dict(state)


def test_layers_that_are_put_elsewhere() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()))
    model.set_submodule("1.0", nn.Tanh())
    model.set_submodule("1.more", nn.GELU())
    assert isinstance(model[1][0], nn.Tanh) and isinstance(model.get_submodule("1.more"), nn.GELU)
    with pytest.raises(AttributeError, match="has no layer '1.other'"):
        model.set_submodule("1.other", nn.ReLU(), strict=True)
    with pytest.raises(AttributeError, match="has no layer 'x'"):
        model.set_submodule("x.y", nn.ReLU())
    with pytest.raises(AttributeError, match="a list of 1 layers"):
        nn.ModuleDict({"a": nn.ModuleList([nn.ReLU()])}).set_submodule("a.3", nn.ReLU())
    with pytest.raises(ValueError, match="empty"):
        model.set_submodule("", nn.ReLU())


def test_tensors_that_move() -> None:
    layer = nn.BatchNorm1d(3)
    weight = layer.weight
    layer.to_empty(device="NUMPY")
    assert layer.weight is weight and {t.device for t in nn.state.get_parameters(layer)} == {"NUMPY"}
    layer.load_state_dict(nn.BatchNorm1d(3).state_dict())
    assert layer.weight is not None and layer.weight.tolist() == [1.0] * 3
    layer.to_empty(device="NULL")
    assert layer.weight.device == "NULL"
    layer.to_empty(device="NUMPY").load_state_dict(nn.BatchNorm1d(3).state_dict())
    assert layer.cpu() is layer and layer.weight.device == "CPU"
    layer.type("float16")
    assert {t.dtype.name for t in nn.state.get_parameters(layer)} == {"float16"}
    outer = nn.Sequential(nn.Linear(2, 2))
    outer.scale = nn.Parameter([1.0])  # type: ignore[attr-defined]
    outer.to_empty(device="NULL", recurse=False)
    assert outer.scale.device == "NULL" and outer[0].weight.device != "NULL"


def test_marks_of_buffers_stay_with_copies() -> None:
    model = nn.Module()
    model.register_buffer("mask", Tensor([1.0]), persistent=False)
    model.table = nn.Buffer([2.0], persistent=False)  # type: ignore[attr-defined]
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert list(made.state_dict()) == [] and [name for name, _ in made.named_buffers()] == ["mask", "table"]


class Doubled(nn.optim.SGD):
    """An optimiser with a step of its own that calls that of its base."""

    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


@pytest.mark.parametrize("kind", [nn.optim.SGD, Doubled])
def test_hooks_of_steps(kind: Any) -> None:
    weight, called = Tensor([1.0]), []
    optimizer = kind([weight], lr=0.5)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: called.append(("before", weight.item())))
    after = optimizer.register_step_post_hook(lambda opt, args, kwargs: called.append(("after", weight.item())))
    weight.sum().backward()
    optimizer.step()
    assert called == [("before", 1.0), ("after", 0.5)]
    after.remove()
    optimizer.step()
    assert len(called) == 3
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: args)
    with pytest.raises(RuntimeError, match=r"None or \(args, kwargs\)"):
        optimizer.step()
    assert not optimizer._stepping


def test_hooks_of_other_steps() -> None:
    weight, called = Tensor([1.0]), list[str]()
    optimizer = nn.optim.LBFGS([weight], max_iter=1)

    def another(closure: Any) -> Any:
        called.append("own")
        return closure()

    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((lambda: another(args[0]),), {}))
    optimizer.step(lambda: (weight * weight).sum().backward())
    assert called == ["own"]


def test_hooks_are_called_once_where_gradients_are_differentiated() -> None:
    called: list[Any] = []
    layer = nn.MSELoss()
    layer.register_full_backward_hook(lambda layer, of_inputs, of_results: called.append(of_results))
    x, y = Tensor([1.5, 2.0, -3.0], requires_grad=True), Tensor([0.5, 1.0, 7.0])
    slope = layer(x, y).gradient(x)[0]
    assert len(called) == 1
    assert np.allclose(slope.sum().gradient(x)[0].numpy(), 2 / 3)
    assert len(called) == 1  # the second derivative does not come by the result
    layer(x, y).backward(create_graph=True)
    assert len(called) == 2
    loss = layer(x, y)
    loss.backward(retain_graph=True)
    loss.backward()
    assert len(called) == 4
