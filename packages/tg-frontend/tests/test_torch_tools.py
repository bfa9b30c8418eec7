"""Tools of PyTorch's ``nn.utils``, data sets and bases of layers: beside numpy, or beside what they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor, nn
from tg_frontend.nn import functional as F

N: Any = nn
RNG = np.random.default_rng(31)


def draw(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def same(got: Tensor, want: Any, tolerance: float = 1e-5) -> None:
    want = want.numpy() if isinstance(want, Tensor) else want
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


def _seen(norm: Any) -> Any:
    """A normalisation with statistics and weights that are not those at first."""
    count = norm.num_features
    norm.running_mean.assign(Tensor(draw(count)))
    norm.running_var.assign(Tensor(np.abs(draw(count)) + 0.5))
    if norm.weight is not None:
        norm.weight.assign(Tensor(draw(count)))
        norm.bias.assign(Tensor(draw(count)))
    return norm


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_normalisations_in_the_layer_before(axes: int, bias: bool, affine: bool) -> None:
    norm = _seen(getattr(N, f"BatchNorm{axes}d")(6, affine=affine))
    x = Tensor(draw(2, 4, *(7, 5, 6)[:axes]))
    for layer in (getattr(N, f"Conv{axes}d")(4, 6, 3, groups=2, bias=bias),
                  getattr(N, f"ConvTranspose{axes}d")(4, 6, 3, groups=2, bias=bias)):  # fmt: skip
        both = nn.Sequential(layer, norm).eval()
        fused = nn.utils.fuse_conv_bn_eval(layer, norm)
        same(fused(x), both(x), 1e-4)
        assert fused is not layer and list(fused.parameters()) == [fused.weight, fused.bias]
    if axes == 1:
        linear = nn.Linear(5, 6, bias)
        both = nn.Sequential(linear, norm).eval()
        same(nn.utils.fuse_linear_bn_eval(linear, norm)(Tensor(draw(7, 5))[:0]), np.zeros((0, 6)))
        y = Tensor(draw(7, 5))
        same(nn.utils.fuse_linear_bn_eval(linear, norm)(y), both(y), 1e-4)
        with pytest.raises(ValueError, match="6 channels for 3 features"):
            nn.utils.fuse_linear_bn_eval(nn.Linear(5, 3), norm)
    with pytest.raises(ValueError, match="in evaluation"):
        nn.utils.fuse_conv_bn_eval(layer.train(), norm)
    with pytest.raises(ValueError, match="running statistics"):
        nn.utils.fuse_conv_bn_eval(layer.eval(), nn.BatchNorm1d(6, track_running_stats=False).eval())


@pytest.mark.parametrize("bias", [True, False])
def test_what_does_not_learn_before_a_normalisation_does_not_learn_with_it(bias: bool) -> None:
    norm = _seen(N.BatchNorm1d(6)).eval()
    for layer, fuse in ((nn.Conv1d(4, 6, 3, bias=bias), nn.utils.fuse_conv_bn_eval),
                        (nn.ConvTranspose1d(4, 6, 3, bias=bias), nn.utils.fuse_conv_bn_eval),
                        (nn.Linear(5, 6, bias), nn.utils.fuse_linear_bn_eval)):  # fmt: skip
        model: Any = layer.eval()
        merge: Any = fuse
        if bias:
            model.bias.requires_grad = False
            fused = merge(model, norm)
            assert (fused.weight.requires_grad, fused.bias.requires_grad) == (True, False)
        fused = merge(model.requires_grad_(False), norm)
        assert (fused.weight.requires_grad, fused.bias.requires_grad) == (False, False)


def test_models_with_other_tensors() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ModuleList([nn.Linear(5, 2)])[0])
    x = Tensor(draw(7, 3))
    before = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    given = {"0.weight": Tensor(draw(5, 3), requires_grad=True), "1.bias": Tensor(draw(2))}
    call = nn.utils.stateless.functional_call
    want = x.numpy() @ given["0.weight"].numpy().T + before["0.bias"]
    want = want @ before["1.weight"].T + given["1.bias"].numpy()
    out = call(model, given, x)
    same(out, want)
    same(call(model, [{"0.weight": given["0.weight"]}, {"1.bias": given["1.bias"]}], (x,)), want)
    out.sum().backward()
    assert given["0.weight"].grad is not None
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
    with pytest.raises(RuntimeError, match="has no tensor 2.weight"):
        call(model, {"2.weight": x}, x)
    with pytest.raises(RuntimeError, match="not given: 0.bias, 1.weight"):
        call(model, given, x, strict=True)
    with pytest.raises(ValueError, match=r"1\.bias is in two"):
        call(model, [given, {"1.bias": x}], x)
    with pytest.raises(ValueError, match="shapes"):
        call(model, {"0.weight": Tensor(draw(5, 4))}, x)
    same(model(x), x.numpy() @ before["0.weight"].T @ before["1.weight"].T
         + before["0.bias"] @ before["1.weight"].T + before["1.bias"])  # fmt: skip


class Counting(nn.Module):
    """Counts its calls, and scales by that."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", Tensor([0.0]))
        self.inner = nn.Linear(3, 2)

    def forward(self, x: Tensor, fail: bool = False) -> Tensor:
        self.count = self.count + 1
        if fail:
            raise KeyError("afterwards")
        out: Tensor = self.inner(x) * self.count
        return out


@pytest.mark.parametrize("several", [False, True])
def test_what_a_call_puts_in_the_place_of_a_given_tensor(several: bool) -> None:
    model, x, call = Counting(), Tensor(draw(5, 3)), nn.utils.stateless.functional_call
    assert model.inner.bias is not None
    weight, count = Tensor(draw(2, 3)), Tensor([4.0])
    weights, counts = {"inner.weight": weight}, {"count": count}
    given: Any = [weights, counts] if several else {**weights, **counts}
    same(call(model, given, x), (x.numpy() @ weight.numpy().T + model.inner.bias.numpy()) * 5)
    now = (counts if several else given)["count"]
    assert now.tolist() == [5.0] and count.tolist() == [4.0] and model.count.tolist() == [0.0]
    assert (weights if several else given)["inner.weight"] is weight
    with pytest.raises(KeyError):
        call(model, given, x, {"fail": True})
    assert (counts if several else given)["count"].tolist() == [6.0] and model.count.tolist() == [0.0]
    call(model, {"inner.weight": weight}, x)  # the model's own
    assert model.count.tolist() == [1.0]


def test_tied_tensors_of_a_call() -> None:
    first, second = nn.Linear(3, 3, False), nn.Linear(3, 3, False)
    second.weight = first.weight
    model, x, w = nn.Sequential(first, second), Tensor(draw(2, 3)), Tensor(draw(3, 3))
    call = nn.utils.stateless.functional_call
    same(call(model, {"0.weight": w}, x), x.numpy() @ w.numpy().T @ w.numpy().T)
    own = first.weight.numpy()
    same(call(model, {"0.weight": w}, x, tie_weights=False), x.numpy() @ w.numpy().T @ own.T)
    with pytest.raises(ValueError, match=r"two tensors for 1\.weight"):
        call(model, {"0.weight": w, "1.weight": Tensor(draw(3, 3))}, x)
    assert second.weight is first.weight


@pytest.mark.parametrize("separate", [False, True])
def test_attention_with_parameters_as_arguments(separate: bool) -> None:
    """As the layer; keys that are projected already give the same as those that are not."""
    widths = {"kdim": 5, "vdim": 7} if separate else {}
    layer = N.MultiheadAttention(6, 3, **widths)
    q, k, v = Tensor(draw(4, 2, 6)), Tensor(draw(3, 2, 5 if separate else 6)), Tensor(draw(3, 2, 7 if separate else 6))
    mask = Tensor(np.array([[False, False, True], [False, True, False]]))
    want, shares = layer(q, k, v, key_padding_mask=mask)
    rest: dict[str, Any] = {"training": False, "key_padding_mask": mask}
    rest |= {"use_separate_proj_weight": separate, "q_proj_weight": layer.q_proj_weight}
    rest |= {"k_proj_weight": layer.k_proj_weight, "v_proj_weight": layer.v_proj_weight}
    fixed = (6, 3, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0, layer.out_proj.weight,
             layer.out_proj.bias)  # fmt: skip
    got, weights = F.multi_head_attention_forward(q, k, v, *fixed, **rest)
    same(got, want)
    assert weights is not None
    same(weights, shares)
    parts = (layer.k_proj_weight, layer.v_proj_weight) if separate else layer.in_proj_weight.chunk(3)[1:]
    biases = layer.in_proj_bias.chunk(3)[1:]
    heads = [x.linear(w.T, b).reshape(3, 6, 2).transpose(0, 1) for x, w, b in zip((k, v), parts, biases, strict=True)]
    static, _ = F.multi_head_attention_forward(q, k, v, *fixed, **rest, static_k=heads[0], static_v=heads[1])
    same(static, want)
    with pytest.raises(ValueError, match="static keys or values of shape"):
        F.multi_head_attention_forward(q, k, v, *fixed, **rest, static_k=heads[0][:5])
    with pytest.raises(ValueError, match="for widths"):
        F.multi_head_attention_forward(q, v if separate else q[:, :1], v, *fixed, **rest)


def test_bases_of_recurrent_layers() -> None:
    assert all(isinstance(one, nn.RNNBase) for one in (nn.RNN(3, 5), nn.LSTM(3, 5), nn.GRU(3, 5)))
    assert all(isinstance(one, nn.RNNCellBase) for one in (nn.RNNCell(3, 5), nn.LSTMCell(3, 5), nn.GRUCell(3, 5)))
    assert (nn.RNN(3, 5, nonlinearity="relu").mode, nn.LSTM(3, 5).mode) == ("RNN_RELU", "LSTM")
    base = nn.RNNBase("GRU", 3, 5, 2, bidirectional=True)
    assert {k: v.shape for k, v in base.state_dict().items()} == {
        k: v.shape for k, v in nn.GRU(3, 5, 2, bidirectional=True).state_dict().items()
    }
    with pytest.raises(ValueError, match="mode 'X'; there are RNN_TANH"):
        nn.RNNBase("X", 3, 5)


def test_older_names() -> None:
    with pytest.warns(FutureWarning, match="NLLLoss2d is an older name"):
        assert N.NLLLoss2d is nn.NLLLoss
    with pytest.warns(FutureWarning, match=r"nn\.init\.constant is an older name of nn\.init\.constant_"):
        same(N.init.constant(Tensor.zeros(3), 2.0), np.full(3, 2.0))
    for home, name in ((N.init, "zeroes"), (N, "Convolution"), (N.utils, "clip"), (N.Module(), "forwards")):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
            getattr(home, name)
    for home, name in ((N, "DataParallel"), (N.data, "IterDataPipe"), (N.ReLU(), "xpu"), (N.amp, "custom_fwd")):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': "):
            getattr(home, name)


def test_data_sets_of_data_sets() -> None:
    class Counting(nn.data.IterableDataset):
        def __init__(self, count: int) -> None:
            self.count = count

        def __iter__(self) -> Any:
            return iter(range(self.count))

        def __len__(self) -> int:
            return self.count

    chain = Counting(3) + Counting(2)
    assert isinstance(chain, nn.data.ChainDataset) and list(chain) == list(chain) == [0, 1, 2, 0, 1]
    assert len(chain) == 5
    assert [batch.tolist() for batch in nn.data.DataLoader(chain, batch_size=2)] == [[0, 1], [2, 0], [1]]
    x, y = Tensor(draw(5, 2)), np.arange(5)
    for stacked in (nn.data.StackDataset(x, y), nn.data.StackDataset(x=x, y=y)):
        batches = list(nn.data.DataLoader(stacked, batch_size=3))
        first = batches[0] if isinstance(batches[0], tuple | list) else (batches[0]["x"], batches[0]["y"])
        same(first[0], x.numpy()[:3])
        assert first[1].tolist() == [0, 1, 2] and len(batches) == 2
    calls: list[tuple[list[Any], dict[str, Any]]] = [([], {}), ([[1]], {"x": [2]}), ([[1], [2, 3]], {})]
    for args, named in calls:
        with pytest.raises(ValueError, match="StackDataset"):
            nn.data.StackDataset(*args, **named)
    made = nn.data.default_convert([(np.float32(1.5), "a"), {"b": np.arange(2)}, 3])
    assert made[0][0].item() == 1.5 and made[0][1] == "a" and made[1]["b"].tolist() == [0, 1] and made[2] == 3


def test_averages_of_many() -> None:
    x, y = draw(3), draw(2, 2)
    averages = [Tensor(x), Tensor(y)]
    nn.optim.swa_utils.get_swa_multi_avg_fn()(averages, [Tensor(3 * x), Tensor(5 * y)], Tensor(3))
    same(averages[0], x + 2 * x / 4)
    same(averages[1], y + 4 * y / 4)
