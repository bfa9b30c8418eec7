"""Measure by how much functions of floats are off, in units in the last place, and write what came out.

    python -m tools.accuracy                               # every function, dtype and device that is here
    python -m tools.accuracy --only sin cos --dev CPU      # some
    python -m tools.accuracy --points 4000000              # float32 more densely; --points all takes every pattern
    python -m tools.accuracy --page                        # and write docs/accuracy.md and docs/accuracy.json

float16 and bfloat16 are measured at every bit pattern, float32 at patterns evenly spread over all of them and around
points where functions are hard, float64 at random patterns and around the same points. Results are compared with
numpy's long doubles, of float64 with mpmath's numbers of 140 bits. A wrong sign of zero, NaN or infinity counts as an
infinite error.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tg_dtype import DType, dtypes
from tg_lazy import Context
from tg_runtime import Device, parse_dev
from tinytg import Tensor

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
RESULTS = PAGE.with_suffix(".json")
# The second has no vectors and no fused multiply-add. Drivers of OpenCL and WebGPU take minutes to compile all of it.
DEVICES = (
    "CPU:LLVM", "CPU:LLVM:native,-avx,-avx2,-avx512f,-fma", "CPU:CLANG", "NUMPY", "MOCK+CUDA:PTX", "CL", "WEBGPU",
)  # fmt: skip
SLOW = frozenset({"CL", "WEBGPU"})
KINDS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)
CHUNK = 1 << 22
Array = NDArray[Any]
Long = np.longdouble


def _sigmoid(x: Any) -> Any:
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power)


def _vectorized(function: Callable[[float], float]) -> Callable[[Any], Any]:
    wide = np.vectorize(function, otypes=[np.float64])
    return lambda x: wide(x.astype(np.float64)).astype(Long)


@dataclass(frozen=True)
class Function:
    """What is measured.

    Attributes:
      name: of the method of Tensor.
      exact: the same of numpy's long doubles, precise enough for every dtype but float64.
      precise: the name of the function in mpmath, or the function given mpmath.
      operands: how many numbers it takes.
      rounded: whether the result is the exact one, rounded once.
    """

    name: str
    exact: Callable[..., Any]
    precise: str | Callable[[Any], Callable[..., Any]]
    operands: int = 1
    rounded: bool = False

    def apply(self, x: Tensor, *others: Tensor) -> Tensor:
        """Calls the method."""
        found: Tensor = getattr(x, self.name)(*others)
        return found

    def bound(self, dtype: DType) -> float:
        """The greatest error that is allowed."""
        if self.rounded:
            return 0.5
        return 2.5 if dtype.itemsize >= 4 else 1.0


FUNCTIONS = (
    Function("exp", np.exp, "exp"),
    Function("exp2", np.exp2, lambda mp: lambda x: mp.mpf(2) ** x),
    Function("expm1", np.expm1, "expm1"),
    Function("log", np.log, "log"),
    Function("log2", np.log2, lambda mp: lambda x: mp.log(x) / mp.log(2)),
    Function("log10", np.log10, lambda mp: lambda x: mp.log(x) / mp.log(10)),
    Function("log1p", np.log1p, "log1p"),
    Function("sin", np.sin, "sin"),
    Function("cos", np.cos, "cos"),
    Function("tan", np.tan, "tan"),
    Function("asin", np.arcsin, "asin"),
    Function("acos", np.arccos, "acos"),
    Function("atan", np.arctan, "atan"),
    Function("sinh", np.sinh, "sinh"),
    Function("cosh", np.cosh, "cosh"),
    Function("tanh", np.tanh, "tanh"),
    Function("asinh", np.arcsinh, "asinh"),
    Function("acosh", np.arccosh, "acosh"),
    Function("atanh", np.arctanh, "atanh"),
    Function("erf", _vectorized(math.erf), "erf"),
    Function("erfc", _vectorized(math.erfc), "erfc"),
    Function("sqrt", np.sqrt, "sqrt", rounded=True),
    Function("rsqrt", lambda x: 1 / np.sqrt(x), lambda mp: lambda x: 1 / mp.sqrt(x)),
    Function("reciprocal", lambda x: 1 / x, lambda mp: lambda x: 1 / x, rounded=True),
    Function("sigmoid", _sigmoid, lambda mp: lambda x: 1 / (1 + mp.exp(-x))),
    Function("softplus", lambda x: np.logaddexp(x, 0), lambda mp: lambda x: mp.log1p(mp.exp(x))),
    Function("pow", np.power, lambda mp: lambda x, y: x**y, operands=2),
    Function("atan2", np.arctan2, "atan2", operands=2),
    Function("fmod", np.fmod, lambda mp: mp.fmod, operands=2, rounded=True),
    Function("remainder", np.remainder, lambda mp: mp.fmod, operands=2, rounded=True),
)
# Where algorithms change, results overflow or vanish, and where functions were once far off.
POINTS = (
    0.0, 1.0, 2.0, 0.5, 0.25, math.pi / 4, math.pi / 2, math.pi, 2.4375, 1.1875, 0.6875, 0.4375, 0.625, 0.8,
    math.log(2) / 2, math.sqrt(0.5), math.sqrt(2), 26.7035, 31.88, 88.72284, 87.33655, 103.97, 709.782712893384,
    708.3964, 745.1332, 10.0545, 26.543, 9.19455, 16.0, 20.0, 40.0, 8192.0, 2.0**28, 1e10, 1e20, 710.4758600739439,
    89.41599, 17.328680, 37.0, 6381956970095103 * 2.0**797, 1e-10, 1e-5, 2.0**-12, 2.0**-26, 0.0374755859375,
)  # fmt: skip


def values(dtype: DType) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """numpy's types of the values (float32 for bfloat16) and of the bits."""
    real = np.dtype(dtype.name) if dtype is not dtypes.bfloat16 else np.dtype(np.float32)
    return real, np.dtype(f"uint{dtype.bits}")


def decoded(bits: Array, dtype: DType) -> Array:
    """Bit patterns as values."""
    if dtype is dtypes.bfloat16:
        wide: Array = (bits.astype(np.uint32) << 16).view(np.float32)
        return wide
    found: Array = bits.view(values(dtype)[0])
    return found


def around(dtype: DType, density: int = 60) -> Array:
    """The neighbours of the points, of multiples of pi / 2 and of 1, of both signs; limits; subnormals.

    Args:
      density: how many there are.
    """
    real, _ = values(dtype)
    random = np.random.default_rng(11)
    with np.errstate(all="ignore"):
        centers = np.concatenate([np.array(POINTS), np.arange(density * 3) * math.pi / 2]).astype(real)
        count = density * 20
        near = (1 + random.uniform(-0.5, 0.5, count) * 2.0 ** -random.integers(0, 50, count)).astype(real)
        spread = np.concatenate([random.uniform(-n, n, count) for n in (1.0, 3.0, 30.0, 110.0, 750.0)]).astype(real)
        info = np.finfo(real)
        edges = np.array([0, info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan], real)
    steps = [centers]
    up = down = centers
    for _ in range(density // 4 if dtype is dtypes.float32 else 1):
        up, down = np.nextafter(up, real.type(np.inf)), np.nextafter(down, real.type(-np.inf))
        steps += [up, down]
    found = np.concatenate([*steps, near, spread, edges])
    return np.concatenate([found, -found])


def arguments(dtype: DType, points: int) -> Iterator[tuple[Array, ...]]:
    """Arguments of a function of one number, in pieces.

    Args:
      points: how many patterns of float32, evenly spread; 0 for all.
    """
    if dtype.bits == 16:
        yield (decoded(np.arange(1 << 16, dtype=np.uint16), dtype),)
        return
    if dtype is dtypes.float64:
        bits = np.random.default_rng(5).integers(0, 2**64, max(points // 100, 500), np.uint64)
        exponents = np.random.default_rng(6).uniform(-40, 10, len(bits))
        signs = np.where(bits & 1, 1.0, -1.0)
        yield (np.concatenate([around(dtype, 20), bits.view(np.float64), np.exp2(exponents) * signs]),)
        return
    stride = max((1 << 32) // points, 1) if points else 1
    hard = around(dtype, min(points // 1000, 60) if points else 60)
    for start in range(0, 1 << 32, CHUNK * stride):
        stop = min(start + CHUNK * stride, 1 << 32)
        patterns = np.arange(start, stop, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
        yield (np.concatenate([hard, patterns]),)


def pairs(dtype: DType, name: str, points: int) -> tuple[Array, ...]:
    """Arguments of a function of two numbers, about ``points`` / 5 of them."""
    real, kind = values(dtype)
    random = np.random.default_rng(7)
    count = 2000 if dtype is dtypes.float64 else max(points // 10, 2000)
    some = np.array([0, 1, 2, 3, 0.5, 0.1, 7, 1e10, np.inf, np.nan, 1e-40, 1e30])
    with np.errstate(all="ignore"):
        both = np.concatenate([some, -some]).astype(real)
        grid = np.stack(np.meshgrid(both, both))
        patterns = [decoded(random.integers(0, 2**dtype.bits, count, kind), dtype) for _ in range(2)]
        base = np.exp2(random.uniform(-10, 10, count)).astype(real)
        other = random.uniform(-30, 30, count).astype(real)
        if name == "pow":
            limit = float(np.finfo(real).maxexp) * 1.2
            other = (random.uniform(-limit, limit, count) / np.log2(base.astype(np.float64))).astype(real)
        if dtype is dtypes.bfloat16:
            base, other, grid = (_rounded_to_bfloat16(x) for x in (base, other, grid))
    return (np.concatenate([patterns[0], grid[0].ravel(), base]),
            np.concatenate([patterns[1], grid[1].ravel(), other]))  # fmt: skip


def _rounded_to_bfloat16(x: Array) -> Array:
    return decoded((np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16), dtypes.bfloat16)


@functools.cache
def multiprecision() -> Any:
    """mpmath, at 140 bits."""
    mp: Any = importlib.import_module("mpmath")
    mp.mp.prec = 140
    return mp


def exact(function: Function, given: Sequence[Array], dtype: DType) -> tuple[Array, Array]:
    """The exact results, as the sum of a long double and of what is left of it."""
    with np.errstate(all="ignore"):
        plain = np.asarray(function.exact(*(x.astype(Long) for x in given)), Long)
        if function.name in ("fmod", "remainder"):
            wide = np.float64 if dtype is dtypes.float64 else Long
            plain = np.asarray(function.exact(*(x.astype(wide) for x in given)), Long)
    rest = np.zeros(len(plain), Long)
    if dtype is not dtypes.float64 or function.name in ("fmod", "remainder"):
        return plain, rest
    mp = multiprecision()
    made = getattr(mp, function.precise) if isinstance(function.precise, str) else function.precise(mp)
    # Elsewhere the result is a limit, a special value or the argument, of which the long double knows.
    usual = np.isfinite(plain) & (plain != 0) & (np.abs(plain) < 1e308) & (np.abs(plain) > 1e-307)
    if function.operands == 2:
        for x in given:
            usual &= np.isfinite(x) & (x != 0)
    for place in np.flatnonzero(usual):
        value = mp.re(made(*(mp.mpf(float(x[place])) for x in given)))
        high = float(value)
        plain[place], rest[place] = high, float(value - high)
    return plain, rest


def errors(got: Array, wanted: tuple[Array, Array], dtype: DType) -> Array:
    """How far off results are, in units in the last place of the exact ones."""
    exponent, mantissa = dtypes.finfo(dtype)
    lowest = 2 - (1 << (exponent - 1))
    largest = (2 - 2.0**-mantissa) * 2.0 ** ((1 << (exponent - 1)) - 1)
    high, low = wanted
    with np.errstate(all="ignore"):
        _, power = np.frexp(high)
        unit = np.ldexp(Long(1), np.maximum(power - 1, lowest) - mantissa)
        error = np.abs((got.astype(Long) - high) - low) / unit
        nearest = np.rint(high / unit) * unit
        limit = np.where(np.abs(nearest) > largest, np.copysign(np.inf, high), nearest)
    agree = (got.astype(Long) == limit) | (np.isnan(got) & np.isnan(high))
    error = np.where(np.isfinite(limit) & np.isfinite(got), error, np.where(agree, 0, np.inf))
    zeros = (got == 0) & (high == 0) & (np.signbit(got) != np.signbit(high))
    found: Array = np.where(zeros, np.inf, error)
    return found


def computed(function: Function, given: Sequence[Array], dtype: DType) -> Array:
    """The results on the device in force."""
    tensors = [Tensor(x.copy()).cast(dtype).realize() for x in given]
    out = function.apply(*tensors)
    found: Array = out.cast(dtypes.float32).numpy() if dtype is dtypes.bfloat16 else out.numpy()
    return found


@dataclass
class Worst:
    """The greatest error that was seen, and where."""

    error: float = 0.0
    at: tuple[float, ...] = ()

    def see(self, error: Array, given: Sequence[Array]) -> None:
        """Looks at more of them."""
        place = int(np.argmax(error))
        if not self.at or error[place] > self.error:
            self.error, self.at = float(error[place]), tuple(float(x[place]) for x in given)

    def __str__(self) -> str:
        if not self.at:
            return ""
        return f"{self.error:.2f} at {', '.join(f'{x:.9g}' for x in self.at)}"


def measure(function: Function, dtype: DType, devices: Sequence[str], points: int) -> dict[str, Worst]:
    """The greatest error on each device."""
    found = {device: Worst() for device in devices}
    for given in arguments(dtype, points) if function.operands == 1 else [pairs(dtype, function.name, points)]:
        wanted = exact(function, given, dtype)
        for device in devices:
            with Context(DEV=device):
                if lacks(device, dtype):
                    continue
                found[device].see(errors(computed(function, given, dtype), wanted, dtype), given)
    return found


def lacks(device: str, dtype: DType) -> bool:
    """Whether a device has no such dtype at all."""
    with Context(DEV=device):
        opened = Device[parse_dev(device)[0].device]
        renderer = getattr(opened, "renderer", None)
        return dtype is dtypes.float64 and renderer is not None and not renderer.supports_dtype(dtype)


def missing(device: str) -> str:
    """Why a device cannot be measured here; empty if it can."""
    (entry,) = parse_dev(device)
    return Device.load(entry.device).unavailable(entry) or ""


INTRODUCTION = """# Accuracy

How far functions of floats are off at most, in units in the last place (ulp) of the exact result, and for which
argument. float16 and bfloat16 are measured at every bit pattern, float32 at patterns spread evenly over all of them and
around points where functions are hard, float64 at random patterns and around the same points. The exact results are
those of numpy's long doubles and of mpmath. Signs of zeros, infinities and NaN are C's (ISO/IEC 9899, annex F)
and count as infinitely wrong otherwise. `python -m tools.accuracy --page` measures and writes this page.

The bounds, which the tests hold: 2.5 ulp in float32 and float64, 1 ulp in float16 and bfloat16, which are computed in
float32 and rounded. sqrt and reciprocal are rounded correctly, and so are fmod, which is exact, and remainder. What is
made of these, such as gelu or silu = x * sigmoid(x), is as accurate as that lets it be.

A device that flushes subnormal numbers to zero, as its specification may let it, does so here too: WEBGPU does, and CL
where the driver says so. So does, of factors and of sums, the CPU's instruction that adds products of bfloat16 in pairs
(VDPBF16PS), which is used where it is fast: Zen 4 and later, Cooper Lake; and that of tile registers (TDPBF16PS, AMX),
from Sapphire Rapids on. Of CUDA C++, EXP, EXP2, LOG, LOG2, SIN and COS are CUDA's own (2 ulp by its guide). PTX has
EXP2 as an instruction, which is approximate (2 ulp on the hardware; the page's MOCK device computes it on the host).
"""


def merged(results: dict[str, Any], measured: dict[DType, dict[str, dict[str, Worst]]]) -> dict[str, Any]:
    """What is known, by dtype, function and device, with what was measured now."""
    for dtype, functions in measured.items():
        for name, devices in functions.items():
            known = results.setdefault(dtype.name, {}).setdefault(name, {})
            known |= {device: [worst.error, *worst.at] for device, worst in devices.items() if worst.at}
    return results


def page(results: dict[str, Any]) -> str:
    """The page from what is known."""
    text = INTRODUCTION
    for dtype in KINDS:
        functions = results.get(dtype.name, {})
        devices = [device for device in DEVICES if any(device in known for known in functions.values())]
        text += f"\n## {dtype.name}\n\n| function | bound | {' | '.join(f'`{d}`' for d in devices)} |\n"
        text += f"|---|---|{'---|' * len(devices)}\n"
        for function in FUNCTIONS:
            known = functions.get(function.name, {})
            cells = [str(Worst(known[d][0], tuple(known[d][1:]))) if d in known else "" for d in devices]
            text += f"| {function.name} | {function.bound(dtype)} | {' | '.join(cells)} |\n"
    return text


def main(argv: Sequence[str]) -> int:
    """Measures, prints, and writes the page if asked to. The status is 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[f.name for f in FUNCTIONS], help="functions")
    parser.add_argument("--dev", nargs="*", default=DEVICES, help="settings of DEV")
    parser.add_argument("--dtype", nargs="*", default=[d.name for d in KINDS], help="dtypes")
    parser.add_argument("--points", default="400000", help="patterns of float32, or all")
    parser.add_argument("--page", action="store_true", help="write docs/accuracy.md")
    options = parser.parse_args(argv)
    points = 0 if options.points == "all" else int(options.points)
    for device in options.dev:
        if missing(device):
            print(f"{device}: {missing(device)}", file=sys.stderr)
    devices = [device for device in options.dev if not missing(device)]
    results: dict[DType, dict[str, dict[str, Worst]]] = {}
    good = True
    for dtype in KINDS:
        if dtype.name not in options.dtype:
            continue
        results[dtype] = {}
        for function in FUNCTIONS:
            if function.name not in options.only:
                continue
            found = results[dtype][function.name] = measure(function, dtype, devices, points)
            for device, worst in found.items():
                fine = worst.error <= function.bound(dtype)
                good &= fine
                print(f"{dtype.name} {function.name} {device}: {worst}{'' if fine else ' TOO MUCH'}", flush=True)
    if options.page:
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(merged(known, results), indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(known), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
