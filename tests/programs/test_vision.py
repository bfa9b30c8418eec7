"""A vision transformer and a residual network, as users write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tinytg import GlobalCounters, Tensor, TinyJit, nn

Array = npt.NDArray[Any]


class Layer:
    """Attention and two linear layers, each behind a normalisation and added to what comes in."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = [nn.Linear(width, 2 * width), Tensor.gelu, nn.Linear(2 * width, width)]

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = q.scaled_dot_product_attention(k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(y)
        return x + self.norm2(x).sequential(self.mlp)


class ViT:
    """Images (batch, 1, 8, 8) in patches of 2 x 2, and one token more of which the scores are made."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.cls, self.places = Tensor.zeros(1, 1, width), Tensor.randn(1, 17, width) * 0.02
        self.layers = [Layer(width, heads) for _ in range(layers)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.cls.expand(x.shape[0], -1, -1).cat(x, dim=1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


@pytest.mark.slow
def test_a_vision_transformer_reads_digits() -> None:
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's digits")
    images = Tensor((datasets.load_digits().images / 8 - 1).astype("float32")).unsqueeze(1)
    digits = Tensor(datasets.load_digits().target.astype("int32"))
    Tensor.manual_seed(0)
    model = ViT(48, 3, 2)
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=4e-3, weight_decay=0.01)
    schedule = nn.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300, warmup=20)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y, label_smoothing=0.05).backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(0)
    for _ in range(300):
        rows = Tensor(rng.integers(0, 1500, 64))
        step(images[rows], digits[rows])
        schedule.step()
    with Tensor.no_grad():
        right = (model(images[1500:]).argmax(1) == digits[1500:]).float().mean().item()
    assert right > 0.85, right


class BasicBlock:
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: list[Any] = []
        if stride != 1 or inputs != outputs:
            self.downsample = [nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)]

    def __call__(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (out + x.sequential(self.downsample)).relu()


class ResNet18:
    """torchvision's, with its names."""

    def __init__(self, classes: int = 1000) -> None:
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64)
        self.layer1 = [BasicBlock(64, 64, 1), BasicBlock(64, 64, 1)]
        self.layer2 = [BasicBlock(64, 128, 2), BasicBlock(128, 128, 1)]
        self.layer3 = [BasicBlock(128, 256, 2), BasicBlock(256, 256, 1)]
        self.layer4 = [BasicBlock(256, 512, 2), BasicBlock(512, 512, 1)]
        self.fc = nn.Linear(512, classes)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu().max_pool2d(3, stride=2, padding=1)
        x = x.sequential([*self.layer1, *self.layer2, *self.layer3, *self.layer4])
        return self.fc(x.mean((2, 3)))


def convolved(x: Array, weight: Array, stride: int, padding: int) -> Array:
    size = weight.shape[-1]
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]
    out: Array = np.einsum("bchwij,ocij->bohw", windows, weight, optimize=True)
    return out


class Reference:
    """The network in inference by numpy, from the state alone."""

    def __init__(self, state: dict[str, Array]) -> None:
        self.state = state

    def norm(self, x: Array, name: str) -> Array:
        def at(what: str) -> Array:
            return self.state[f"{name}.{what}"].astype(np.float64)[:, None, None]

        return (x - at("running_mean")) / np.sqrt(at("running_var") + 1e-5) * at("weight") + at("bias")

    def block(self, x: Array, name: str, stride: int) -> Array:
        out = convolved(x, self.state[f"{name}.conv1.weight"], stride, 1)
        out = convolved(np.maximum(self.norm(out, f"{name}.bn1"), 0), self.state[f"{name}.conv2.weight"], 1, 1)
        if f"{name}.downsample.0.weight" in self.state:
            x = self.norm(convolved(x, self.state[f"{name}.downsample.0.weight"], stride, 0), f"{name}.downsample.1")
        out = self.norm(out, f"{name}.bn2") + x
        return np.maximum(out, 0, out=out)

    def __call__(self, x: Array) -> Array:
        x = np.maximum(self.norm(convolved(x.astype(np.float64), self.state["conv1.weight"], 2, 3), "bn1"), 0)
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        x = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2].max((-1, -2))
        for layer, stride in enumerate((1, 2, 2, 2), start=1):
            x = self.block(self.block(x, f"layer{layer}.0", stride), f"layer{layer}.1", 1)
        scores: Array = x.mean((2, 3)) @ self.state["fc.weight"].T + self.state["fc.bias"]
        return scores


@pytest.mark.slow
def test_a_residual_network() -> None:
    """It learns eight images by heart; then it gives what the formulas give with the running statistics."""
    before = GlobalCounters.mem_used
    Tensor.manual_seed(0)
    model = ResNet18()
    parameters = [p for p in nn.state.get_parameters(model) if p.requires_grad is not False]
    assert sum(int(p.numel()) for p in parameters) == 11_689_512
    optimizer = nn.optim.SGD(parameters, lr=0.03, momentum=0.9)
    rng = np.random.default_rng(0)
    images, classes = rng.standard_normal((8, 3, 32, 32)).astype(np.float32), np.arange(8, dtype=np.int32) * 111

    first = convolved(images.astype(np.float64), model.conv1.weight.numpy(), 2, 3)

    @TinyJit
    @Tensor.train()
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y).backward()
        optimizer.step()
        return loss

    losses = [float(step(Tensor(images), Tensor(classes)).item())]
    np.testing.assert_allclose(model.bn1.running_mean.numpy(), 0.1 * first.mean((0, 2, 3)), atol=1e-5)
    np.testing.assert_allclose(model.bn1.running_var.numpy(), 0.9 + 0.1 * first.var((0, 2, 3), ddof=1), rtol=1e-4)
    losses += [float(step(Tensor(images), Tensor(classes)).item()) for _ in range(14)]
    assert 6 < losses[0] < 8 and losses[-1] < 0.1, losses
    state = nn.state.get_state_dict(model)
    assert len(state) == 122 and state["bn1.num_batches_tracked"].item() == 15

    with Tensor.no_grad():
        scores = model(Tensor(images[:5])).numpy()
    want = Reference({name: tensor.numpy() for name, tensor in state.items()})(images[:5])
    np.testing.assert_allclose(scores, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())
    assert GlobalCounters.mem_used - before < 1 << 30
