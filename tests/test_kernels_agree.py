"""An elementwise value has the same bits in whatever kernel it is computed: by itself, or with what it is made of.

Which products and sums share a kernel is the scheduler's choice, and a value that two kernels need may be computed in
both: were one of them rounded otherwise, an index and the fraction that belongs to it would disagree. WEBGPU is not
among the devices: its language has no word that forbids drivers to fuse a multiplication with an addition. Dtypes that
a device stores but does not compute with, as bfloat16, are not among the dtypes: within a kernel they are fp32.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tg_lazy import Context
from tg_runtime import Device, parse_dev
from tinytg import Tensor, dtypes

SETTINGS = ("CPU:LLVM", "CPU:CLANG", "NUMPY", "MOCK+CUDA:PTX", "CL", "HOSTQ")
BINARY: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda a, b: a * b, lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b + a,
    lambda a, b: a / b, Tensor.maximum, lambda a, b: (a < b).where(a, b * 0.7),
)  # fmt: skip
UNARY: tuple[Callable[[Tensor], Tensor], ...] = (
    Tensor.exp, Tensor.sin, Tensor.tanh, Tensor.sigmoid, Tensor.floor, lambda a: -a, lambda a: a.abs().sqrt(),
    lambda a: a * 0.1, lambda a: a * 3 + 0.3, lambda a: a.square(), Tensor.gelu, lambda a: a - a.floor(),
)  # fmt: skip


def chain(seed: int, start: list[Tensor], after: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """The values of a random program; what each step gives goes through ``after``."""
    draw = random.Random(seed)
    values = list(start)
    for _ in range(draw.randrange(2, 7)):
        if draw.random() < 0.7:
            made = draw.choice(BINARY)(draw.choice(values), draw.choice(values))
        else:
            made = draw.choice(UNARY)(draw.choice(values))
        values.append(after(made))
    return values[len(start) :]


def bits(x: Tensor) -> list[int]:
    """The bits of a tensor's elements, every NaN the same."""
    values = x.numpy()
    values[np.isnan(values)] = np.nan
    whole: list[int] = values.view(f"i{values.itemsize}").tolist()
    return whole


def check(setting: str, seeds: range) -> None:
    """Runs the programs of some seeds with every dtype that a device computes with."""
    (entry,) = parse_dev(setting)
    name = setting.rpartition("+")[2].partition(":")[0]
    problem = Device.load(name).unavailable(entry)
    if problem is not None:
        pytest.skip(f"{name}: {problem}")
    with Context(DEV=setting):
        renderer = Device[name].renderer
        for dtype in (dtypes.float32, dtypes.float16, dtypes.float64):
            if renderer is not None and not renderer.supports_dtype(dtype):
                continue
            generator = np.random.default_rng(len(seeds))
            count = int(generator.integers(1, 300))  # of all programs, whose steps are then the same few kernels
            a, b, c = (Tensor(generator.normal(0, 3, count)).cast(dtype).realize() for _ in range(3))
            assert bits(a * b + c) == bits((a * b).realize() + c), f"{dtype}: a product and a sum"
            for seed in seeds:
                start = [Tensor(generator.normal(0, 3, count)).cast(dtype).realize() for _ in range(2)]
                alone = chain(seed, start, Tensor.realize)
                last = chain(seed, start, lambda x: x)[-1]
                assert bits(alone[-1]) == bits(last), f"{dtype}, seed {seed}: the last step, alone and of one kernel"
                if seed % 4 == 0:
                    together = chain(seed, start, lambda x: x)
                    Tensor.realize(*together)
                    for step, (x, y) in enumerate(zip(alone, together, strict=True)):
                        assert bits(x) == bits(y), f"{dtype}, seed {seed}: step {step}, alone and together"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_value_has_the_same_bits_alone_and_with_others(setting: str) -> None:
    check(setting, range({"CL": 0, "CPU:CLANG": 2}.get(setting, 5)))  # these compile for up to half a second a kernel


@pytest.mark.drawn(2)
@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_many_values_have_the_same_bits(setting: str) -> None:
    check(setting, range(5, {"CL": 17, "CPU:CLANG": 37}.get(setting, 150)))
