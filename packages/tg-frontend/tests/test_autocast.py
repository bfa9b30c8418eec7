"""Mixed precision: what is cast, what gradients are, and a model that learns in float16 as it does in float32."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tg_frontend import JitError, Tensor, TinyJit, nn
from tg_frontend.nn import functional as F
from tg_frontend.nn.amp import GradScaler, autocast
from tg_frontend.ops.autocast import LOW, WIDE

RNG = np.random.default_rng(7)


def f(*shape: int, low: float = 0.1) -> Tensor:
    return Tensor(RNG.uniform(low, 0.9, shape).astype(np.float32))


SHAPES: list[tuple[int, ...]] = [(5,), (3, 5), (5, 5), (2, 3, 5)]
DATA = {shape: RNG.uniform(0.1, 0.9, shape).astype(np.float32) for shape in SHAPES}


def kept(*shape: int) -> Tensor:
    return Tensor(DATA[shape])


V, M, S, B = (partial(kept, *shape) for shape in DATA)
LOW_CASES: dict[str, Any] = {
    "matmul": lambda: M().matmul(S()), "__matmul__": lambda: M() @ S(), "dot": lambda: M().dot(S()),
    "linear": lambda: M().linear(S(), V()), "mm": lambda: M().mm(S()), "mv": lambda: M().mv(V()),
    "bmm": lambda: B().bmm(B().transpose(1, 2)), "addmm": lambda: V().addmm(M(), S()),
    "addmv": lambda: f(3).addmv(M(), V()), "addr": lambda: M().addr(f(3), V()),
    "baddbmm": lambda: f(2, 3, 3).baddbmm(B(), B().transpose(1, 2)),
    "addbmm": lambda: f(3, 3).addbmm(B(), B().transpose(1, 2)),
    "einsum": lambda: Tensor.einsum("ij,jk->ik", M(), S()), "prelu": lambda: M().prelu(V()),
    "conv1d": lambda: f(1, 2, 9).conv1d(f(3, 2, 4)), "conv2d": lambda: f(1, 2, 5, 7).conv2d(f(3, 2, 3, 3)),
    "conv3d": lambda: f(1, 1, 4, 3, 5).conv3d(f(2, 1, 2, 2, 2)),
    "conv_transpose1d": lambda: f(1, 2, 5).conv_transpose1d(f(2, 3, 3)),
    "conv_transpose2d": lambda: f(1, 2, 3, 5).conv_transpose2d(f(2, 3, 2, 2)),
    "conv_transpose3d": lambda: f(1, 2, 2, 3, 2).conv_transpose3d(f(2, 1, 2, 2, 2)),
    "scaled_dot_product_attention": lambda: B().scaled_dot_product_attention(B(), B()),
    "F.linear": lambda: F.linear(M(), S(), V()), "F.conv1d": lambda: F.conv1d(f(1, 2, 9), f(3, 2, 4)),
    "nn.Linear": lambda: nn.Linear(5, 2)(M()), "nn.Conv2d": lambda: nn.Conv2d(2, 3, 3)(f(1, 2, 5, 7)),
}  # fmt: skip
UNARY = (
    "acos asin cosh sinh tan exp exp2 expm1 log log2 log10 log1p erfinv reciprocal rsqrt sum prod cumsum cumprod "
    "logcumsumexp logsumexp norm softmax log_softmax softmin softplus layernorm normalize var std"
).split()
PAIRS = "l1_loss mse_loss huber_loss smooth_l1_loss kl_div poisson_nll_loss binary_crossentropy_logits dist".split()


@pytest.mark.parametrize("name", LOW_CASES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_are_in_low_precision(name: str, dtype: str) -> None:
    want = LOW_CASES[name]()
    assert want.dtype.name == "float32"
    with Tensor.autocast(dtype=dtype):
        got = LOW_CASES[name]()
    assert got.dtype.name == dtype
    if name[0] != "n" and not any(part in name for part in ("conv", "addr", "addmv", "bmm")):  # others draw anew
        np.testing.assert_allclose(got.float().numpy(), want.numpy(), rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", [*UNARY, *PAIRS, "pow", "cross_entropy", "cdist"])
def test_what_grows_is_in_float32(name: str) -> None:
    half = f(3, 5).half()
    others = {"pow": (2.0,), "cumprod": (1,), "cross_entropy": (Tensor([0, 4, 1]),), "cdist": (f(2, 5).half(),)}
    args: Any = others.get(name, (f(3, 5).half(),) if name in PAIRS else ())
    assert name in WIDE and getattr(half, name)(*args).dtype.name != "float64"
    with autocast(dtype="float16"):
        got = getattr(half, name)(*args)
        assert got.dtype.name == "float32"
    wide = [x.float() if isinstance(x, Tensor) and x.is_floating_point() else x for x in args]
    np.testing.assert_allclose(got.numpy(), getattr(half.float(), name)(*wide).numpy(), rtol=1e-6)


def test_every_name_is_one_of_a_method_or_function() -> None:
    for name in LOW | WIDE:
        assert hasattr(Tensor, name) or hasattr(F, name) or name in ("chain_matmul", "multi_dot"), name


def test_float64_and_other_devices_stay() -> None:
    x = kept(3, 5).double()
    with autocast(dtype="bfloat16"):
        assert (x @ kept(5, 5).double()).dtype.name == "float64" and x.exp().dtype.name == "float64"
        assert (Tensor([1, 2]) @ Tensor([3, 4])).dtype.kind == "int"
    with autocast("METAL", dtype="bfloat16"):
        assert (kept(3, 5) @ kept(5, 5)).dtype.name == "float32"
    with autocast(kept(3, 5).device.lower(), "bfloat16"):
        assert (kept(3, 5) @ kept(5, 5)).dtype.name == "bfloat16"


def test_blocks_nest_and_decorate() -> None:
    @autocast(dtype="bfloat16")
    def product() -> str:
        return (kept(3, 5) @ kept(5, 5)).dtype.name

    assert product() == "bfloat16"
    with autocast(dtype="float16"):
        with autocast(enabled=False):
            assert (kept(3, 5) @ kept(5, 5)).dtype.name == "float32"
            with autocast(dtype="bfloat16"):
                assert (kept(3, 5) @ kept(5, 5)).dtype.name == "bfloat16"
        assert (kept(3, 5) @ kept(5, 5)).dtype.name == "float16"
    assert (kept(3, 5) @ kept(5, 5)).dtype.name == "float32"
    with pytest.raises(ValueError, match="autocast: float16 or bfloat16"):
        autocast(dtype="float32")
    with autocast(dtype="float16"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        F.binary_cross_entropy(kept(3, 5), kept(3, 5))


def test_gradients_have_the_dtype_of_what_they_belong_to() -> None:
    layer, x = nn.Linear(5, 2), Tensor(kept(3, 5).numpy(), requires_grad=True)
    with autocast(dtype="bfloat16"):
        loss = (layer(x) ** 2).mean()
    loss.backward()
    assert loss.dtype.name == "float32" and layer.weight.grad is not None and x.grad is not None
    assert layer.weight.grad.dtype.name == x.grad.dtype.name == "float32"
    found = layer.weight.grad.numpy()
    layer.zero_grad()
    (layer(Tensor(kept(3, 5).numpy())) ** 2).mean().backward()
    again = layer.weight.grad
    assert again is not None
    np.testing.assert_allclose(found, again.numpy(), rtol=0.05, atol=0.02)


def test_a_checkpoint_is_computed_again_in_its_precision() -> None:
    x = Tensor(kept(3, 5).numpy(), requires_grad=True)
    seen: list[str] = []

    def part(v: Tensor) -> Tensor:
        out = v @ kept(5, 5)
        seen.append(out.dtype.name)
        return out

    with autocast(dtype="bfloat16"):
        out = nn.checkpoint(part, x)
    out.float().sum().backward()
    assert seen == ["bfloat16", "bfloat16"] and x.grad is not None


def test_a_record_is_of_one_precision(backend: str) -> None:
    x, w = f(3, 5).realize(), f(5, 2).realize()
    product: Any = TinyJit(lambda v: (v @ w).realize())
    with autocast(dtype="bfloat16"):
        for _ in range(4):
            assert product(x).dtype.name == "bfloat16"
    with pytest.raises(JitError, match="precision"):
        product(x)


def test_a_step_that_overflows_is_left_out(backend: str) -> None:
    for make in (lambda p: nn.optim.SGD(p, lr=0.5, momentum=0.9), lambda p: nn.optim.Adam(p, lr=0.1), _Own):
        w = Tensor([1.0, 2.0])
        optimizer, scaler = make([w]), GradScaler(init_scale=1024.0, growth_interval=2)
        scales, values = [], []
        for factor in (1.0, 1e38, 1.0, 1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale((w * w * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
            values.append(w.tolist())
        assert scales == [1024.0, 512.0, 512.0, 1024.0, 1024.0]
        assert values[0] == values[1] != values[2]
        plain, other = Tensor([1.0, 2.0]), None
        other = make([plain])
        for _ in range(4):
            other.zero_grad()
            (plain * plain).sum().backward()
            other.step()
        np.testing.assert_allclose(values[-1], plain.numpy(), rtol=1e-6)


class _Own(nn.optim.Optimizer):
    def __init__(self, params: Any) -> None:
        super().__init__(params, 0.25)

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        for param, gradient in ready:
            param.assign(param.detach() - gradient * self.lr)
        return []


def test_the_scaler_is_strict_about_its_order() -> None:
    w = Tensor([1.0])
    optimizer, scaler = nn.optim.SGD([w]), GradScaler()
    with pytest.raises(RuntimeError, match="no gradient was looked at"):
        scaler.update()
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="called already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called already"):
        scaler.step(optimizer)
    other = GradScaler(enabled=False)
    assert other.scale(w) is w and other.get_scale() == 1.0 and other.state_dict() == {}
    half = Tensor([1.0]).half().requires_grad_()
    half.sum().backward()
    with pytest.raises(ValueError, match="a gradient of float16"):
        GradScaler().unscale_(nn.optim.SGD([half]))
    again = GradScaler(init_scale=2.0)
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 65536.0


def _digits() -> tuple[Any, Any]:
    """Ten drawn pictures, and noisy copies of them."""
    rng = np.random.default_rng(3)
    prototypes = rng.uniform(0, 1, (10, 64))
    labels = rng.integers(0, 10, 512)
    return (prototypes[labels] + rng.normal(0, 0.35, (512, 64))).astype(np.float32), labels


@pytest.mark.parametrize("recorded", [False, True])
def test_a_model_learns_in_float16_as_in_float32(recorded: bool) -> None:
    images, labels = _digits()

    def accuracy(mixed: bool) -> float:
        Tensor.manual_seed(11)
        model = nn.Sequential(nn.Linear(64, 48), nn.LayerNorm(48), nn.ReLU(), nn.Linear(48, 10))
        optimizer, scaler = nn.optim.Adam(model.parameters(), lr=5e-3), GradScaler(enabled=mixed, growth_interval=20)

        def step(x: Tensor, y: Tensor) -> Tensor:
            optimizer.zero_grad()
            with autocast(dtype="float16", enabled=mixed):
                loss = model(x).cross_entropy(y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.realize()

        run: Any = TinyJit(step) if recorded else step
        for number in range(60 if recorded else 16):
            begin = number * 64 % 384
            run(Tensor(images[begin : begin + 64]).realize(), Tensor(labels[begin : begin + 64]).realize())
        assert all(p.dtype.name == "float32" for p in model.parameters())
        right = model(Tensor(images[384:])).argmax(1).numpy() == labels[384:]
        return float(right.mean())

    plain, mixed = accuracy(False), accuracy(True)
    assert plain > 0.9 and abs(plain - mixed) < 0.04


def test_products_of_two_vectors_keep_their_precision() -> None:
    """PyTorch lists ``dot`` with what is computed in the widest dtype; ``matmul`` is computed in the lower one."""
    x, y = Tensor([1.0, 2.0**-9, 1.0]), Tensor([1.0, 1.0, -1.0])
    with Tensor.autocast(dtype="bfloat16"):
        assert x.dot(y).dtype.name == x.dot(y.bfloat16()).dtype.name == "float32"
        assert x.bfloat16().dot(y.bfloat16()).dtype.name == x.matmul(y).dtype.name == "bfloat16"
        assert x.dot(y).item() == 2.0**-9
        assert Tensor.ones(2, 3).dot(x).dtype.name == "bfloat16"
