"""Hooks of all modules, and what a module is asked for by PyTorch's names: beside the same of one module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn.hooks import EVERYWHERE

KINDS = ["forward_pre_hook", "forward_hook", "full_backward_hook", "full_backward_pre_hook", "backward_hook"]


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_of_all_modules_see_and_change_what_those_of_one_do(kind: str) -> None:
    """The same function, registered with one layer or with all of them, where there is one layer."""

    def hook(module: Any, *seen: Any) -> Any:
        called.append((module, [np.asarray(one[0].numpy()) if isinstance(one, tuple) else one.numpy() for one in seen]))
        return seen[-1] * 3 if isinstance(seen[-1], Tensor) else (seen[0][0] * 3,)

    found = []
    layer = nn.Softplus()
    for register in (getattr(layer, f"register_{kind}"), getattr(nn, f"register_module_{kind}")):
        called: list[Any] = []
        x = Tensor([-1.0, 0.5], requires_grad=True)
        with register(hook):
            out = layer(x)
            out.sum().backward()
        assert x.grad is not None
        found.append((called, out.numpy(), x.grad.numpy()))
        layer(x).sum().backward()
        assert len(called) == 1  # it is removed
    (one, *rest), (every, *others) = found
    assert [module for module, _ in one] == [module for module, _ in every] == [layer]
    for got, want in zip([*every[0][1], *others], [*one[0][1], *rest], strict=True):
        np.testing.assert_array_equal(got, want)
    assert not any(EVERYWHERE.values())


def test_hooks_of_all_modules_come_before_those_of_one() -> None:
    order: list[str] = []
    layer = nn.Sequential(nn.ReLU())
    layer.register_forward_hook(lambda *_: order.append("own"))
    layer.register_forward_pre_hook(lambda *_: order.append("own pre"))

    def named(name: str) -> Any:
        return lambda module, *_: order.append(f"{name} {type(module).__name__}")

    with nn.register_module_forward_hook(named("all")), nn.register_module_forward_pre_hook(named("all pre")):
        layer(Tensor([1.0]))
    assert order == ["all pre Sequential", "own pre", "all pre ReLU", "all ReLU", "all Sequential", "own"]


def test_hooks_of_all_modules_are_called_after_an_error_where_they_ask_for_it() -> None:
    seen: list[Any] = []

    def hook(module: Any, args: Any, kwargs: Any, out: Any) -> None:
        seen.append((kwargs, out))

    class Failing(nn.Module):
        def forward(self, x: Tensor, fail: bool) -> Tensor:
            raise OSError("no")

    with nn.register_module_forward_hook(hook, with_kwargs=True, always_call=True), pytest.raises(OSError):
        Failing()(Tensor([1.0]), fail=True)
    assert seen == [({"fail": True}, None)]


def test_what_a_module_holds_is_read_and_not_written() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.inner, self.scale = nn.Linear(2, 3), nn.Parameter([1.0])
            self.register_buffer("mean", Tensor([2.0]))
            self.frozen, self.count = nn.Parameter([1.0], requires_grad=False), 3

    model = Model()
    assert list(model._modules) == ["inner"] and model._modules["inner"] is model.inner
    assert list(model._parameters) == ["scale", "frozen"] and model._parameters["scale"] is model.scale
    assert list(model._buffers) == ["mean"]
    named = {name for name, _ in (*model.named_parameters(), *model.named_buffers()) if "." not in name}
    assert {*model._parameters, *model._buffers} == named
    for held in (model._modules, model._parameters, model._buffers):
        with pytest.raises(TypeError):
            held["new"] = None  # type: ignore[index]


MADE: dict[str, Callable[[], Any]] = {
    "BatchNorm1d": lambda: nn.BatchNorm1d(3), "Bilinear": lambda: nn.Bilinear(2, 3, 2), "GRU": lambda: nn.GRU(2, 3),
    "Conv2d": lambda: nn.Conv2d(2, 3, 1), "Embedding": lambda: nn.Embedding(3, 2), "PReLU": lambda: nn.PReLU(),
    "EmbeddingBag": lambda: nn.EmbeddingBag(3, 2), "GroupNorm": lambda: nn.GroupNorm(2, 4), "RNN": lambda: nn.RNN(2, 3),
    "InstanceNorm1d": lambda: nn.InstanceNorm1d(3, affine=True), "LayerNorm": lambda: nn.LayerNorm(3),
    "Linear": lambda: nn.Linear(2, 3), "MultiheadAttention": lambda: nn.MultiheadAttention(4, 2),
    "Transformer": lambda: nn.TransformerEncoderLayer(4, 2, 4), "complex": lambda: nn.Linear(2, 3).to("complex64"),
    "Parameter": lambda: nn.ParameterList([nn.Parameter([1.0])]),
    "weight_norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 3)),
    "pruned": lambda: nn.utils.prune.l1_unstructured(nn.Linear(2, 3), "weight", 1),
}  # fmt: skip


@pytest.mark.parametrize("made", MADE)
def test_frozen_parameters_stay_parameters(made: str) -> None:
    """PyTorch's way to freeze a part and to thaw it again goes through ``parameters()`` both times."""
    model = nn.Sequential(MADE[made](), nn.Linear(2, 2))
    before = [name for name, _ in model.named_parameters()], [name for name, _ in model.named_buffers()]
    assert "0.weight" in before[0] or made not in ("Linear", "Conv2d", "Embedding", "complex")
    for wish in (False, True):
        for tensor in model[0].parameters():
            tensor.requires_grad = wish
        assert ([name for name, _ in model.named_parameters()], [name for name, _ in model.named_buffers()]) == before
        assert all(tensor.requires_grad is wish for tensor in model[0].parameters())
    model.requires_grad_(False)
    assert [name for name, _ in model.named_parameters()] == before[0]
    kept = {id(tensor) for tensor in model[1].parameters()}
    group = nn.optim.SGD(model[1].requires_grad_().parameters(), lr=0.1)
    assert {id(tensor) for tensor in group.params} == kept


def test_what_becomes_a_buffer_is_no_parameter() -> None:
    model, weight = nn.Module(), nn.Parameter([1.0])
    model.register_buffer("weight", weight)
    assert list(model.parameters()) == [] and next(iter(model.buffers())) is weight
    frozen = nn.Embedding.from_pretrained(Tensor([[1.0], [2.0]]))
    assert [name for name, _ in frozen.named_parameters()] == ["weight"] and not frozen.weight.requires_grad


@pytest.mark.parametrize("strict", [True, False])
def test_hooks_after_a_state_decide_which_names_may_lack(strict: bool) -> None:
    def forgive(layer: Any, keys: Any) -> None:
        keys.missing_keys.clear()

    def add(layer: Any, keys: Any) -> None:
        keys.unexpected_keys.append("more")

    layer = nn.Linear(2, 3)
    with layer.register_load_state_dict_post_hook(forgive):
        layer.load_state_dict({"weight": Tensor.zeros(3, 2)}, strict=strict)
        assert not layer.weight.numpy().any()
    with layer.register_load_state_dict_post_hook(add):
        state = layer.state_dict()
        if strict:
            with pytest.raises(KeyError, match="not in the model: more"):
                layer.load_state_dict(state)
        else:
            assert layer.load_state_dict(state, strict=False).unexpected_keys == ["more"]
    with pytest.raises(KeyError, match="bias"):
        layer.load_state_dict({"weight": Tensor.ones(3, 2)})
    assert not layer.weight.numpy().any()  # without hooks nothing is written of a state that is refused


def test_hooks_before_a_state_see_and_change_what_the_module_has_of_it() -> None:
    seen: list[str] = []

    def rename(layer: Any, state: Any, prefix: str, *rest: Any) -> None:
        seen.extend(state)
        for name in list(state):
            state[name.replace("old_", "")] = state.pop(name)

    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    model[1].register_load_state_dict_pre_hook(rename)
    given = {"0.weight": Tensor([[2.0]]), "1.old_weight": Tensor([[3.0]])}
    model.load_state_dict(given)
    assert seen == ["1.old_weight"] and list(given) == ["0.weight", "1.old_weight"]
    assert [layer.weight.item() for layer in model] == [2.0, 3.0]
    with pytest.raises(KeyError, match="old_weight"):
        model.load_state_dict({"0.old_weight": Tensor([[2.0]]), "1.weight": Tensor([[3.0]])})


@pytest.mark.parametrize("given", ["", 2, [], None])
def test_a_state_is_a_dict(given: Any) -> None:
    with pytest.raises(TypeError, match="load_state_dict: "):
        nn.Module().load_state_dict(given)


def test_older_hook_before_a_state() -> None:
    seen: list[int] = []
    layer = nn.Linear(2, 3)
    with (
        layer._register_load_state_dict_pre_hook(lambda *args: seen.append(len(args))),
        layer._register_load_state_dict_pre_hook(lambda module, *args: seen.append(len(args)), with_module=True),
    ):
        layer.load_state_dict(layer.state_dict())
    assert seen == [7, 7]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 2, 2)])
def test_gradients_of_convolutions(size: int, stride: int, padding: int, dilation: int, groups: int) -> None:
    """Against the gradient of the convolution itself, which is beside PyTorch's elsewhere."""
    rng = np.random.default_rng(11)
    x = Tensor(rng.normal(size=(2, 4, *[5] * size)).astype(np.float32), requires_grad=True)
    weight = Tensor(rng.normal(size=(6, 4 // groups, *[2] * size)).astype(np.float32), requires_grad=True)
    rest = (stride, padding, dilation, groups)
    out = getattr(nn.functional, f"conv{size}d")(x, weight, None, *rest)
    seed = Tensor(rng.normal(size=out.shape).astype(np.float32))
    (out * seed).sum().backward()
    assert x.grad is not None and weight.grad is not None
    with Tensor.no_grad():
        got = getattr(nn.grad, f"conv{size}d_input")(x.shape, weight, seed, *rest)
        np.testing.assert_allclose(got.numpy(), x.grad.numpy(), atol=1e-5)
        got = getattr(nn.grad, f"conv{size}d_weight")(x, weight.shape, seed, *rest)
        np.testing.assert_allclose(got.numpy(), weight.grad.numpy(), atol=1e-5)
    with pytest.raises(ValueError, match=f"conv{size}d_input: .*the result is of shape"):
        getattr(nn.grad, f"conv{size}d_input")(x.shape, weight, seed[:1], *rest)
    if size == 1:
        again = nn.grad.conv1d_input(x.shape, weight, seed, *rest).square().sum().gradient(weight)[0]
        assert again.shape == weight.shape and again.numpy().any()


@pytest.mark.parametrize("offsets", [[1, 2], [0, 4], [0, 2, 1], [-1, 2]])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_hold_all_rows(offsets: list[int], mode: str) -> None:
    """Rows before the first bag would be in none, in silence."""
    with pytest.raises(ValueError, match="embedding_bag: offsets"):
        nn.functional.embedding_bag(Tensor([0, 1, 1]), Tensor.ones(2, 3), Tensor(offsets), mode=mode)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float64"])
@pytest.mark.parametrize("method", [nn.utils.prune.L1Unstructured(1), nn.utils.prune.RandomStructured(1, 0)])
def test_masks_of_a_container_have_the_dtype_of_the_tensor(method: Any, dtype: str) -> None:
    both = nn.utils.prune.PruningContainer(method)
    mask = both.compute_mask(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1, 1], [1, 0]]).cast(dtype))
    assert mask.dtype.name == "float32" and set(mask.flatten().tolist()) == {0.0, 1.0}


def test_lazy_layers_take_their_input_by_name() -> None:
    for layer in (nn.LazyLinear(3), nn.LazyConv1d(3, 1), nn.LazyBatchNorm1d()):
        assert layer(input=Tensor.ones(2, 5, 5)).shape[0] == 2
    with pytest.raises(TypeError, match="an input is wanted"):
        nn.LazyLinear(3)()


def test_slopes_are_numbers() -> None:
    for param in (True, [1], {"a": "b"}, "0.1"):
        with pytest.raises((ValueError, TypeError)):
            nn.init.calculate_gain("leaky_relu", param)  # type: ignore[arg-type]
