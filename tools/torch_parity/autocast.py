"""Dtypes of results under autocast, beside those that PyTorch gives.

``python -m tools.torch_parity.autocast --write`` calls the operations of PyTorch's own tests with one sample of float32
and one of bfloat16 under ``torch.autocast("cpu")``, and writes down the calls and the dtypes of what they gave; without
``--write`` the calls are repeated here, and differences printed. PyTorch's lists for CUDA have no effect on a machine
without a card: they are those of its documentation.
"""

from __future__ import annotations

import argparse
import importlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tinytg import Tensor, dtypes

FILE = Path(__file__).parent.parent.parent / "tests" / "data" / "torch_autocast.json"
KINDS = ("float32", "bfloat16")
_SMALL = 400  # elements that a sample's tensors may have together
_TRIED = 60  # samples among which one is sought
LEFT_OUT = ("_", "masked.", "ops.aten.", "torch.ops.", "sparse.", "to_sparse", "jiterator", "nested", "chalf", "cfloat",
            "cdouble", "as_strided", "view_as_complex", "view_as_real", "resize_", "lobpcg")  # fmt: skip

_WHOLE = "PyTorch casts the products inside of it; here a decomposition is computed whole"
REASONS = {
    "corrcoef": "PyTorch multiplies what it centred in 16 bits; here products of deviations are in float32",
    "cov": "PyTorch multiplies what it centred in 16 bits; here products of deviations are in float32",
    "stft": "return_complex=False is refused in words",
    "nn.functional.pad:reflect": "PyTorch's list has no reflection of volumes; here all of them are in float32",
    "nn.functional.interpolate:area": "PyTorch takes its pool of volumes; here it stays as for areas",
    "tensordot": "PyTorch multiplies without a product of matrices where all other axes have one place",
    **dict.fromkeys(("svd_lowrank", "pca_lowrank", "linalg.pinv", "linalg.pinv:hermitian"), _WHOLE),
    "linalg.matrix_power": "inverses of bfloat16 are refused in words",
}
"""Why results have other dtypes here, by operation."""


def written(value: Any, torch: Any) -> Any:
    """An argument as JSON: tensors of floats by shape, others by their elements.

    Raises:
      TypeError: if it is something that JSON cannot say.
    """
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        if value.is_complex():
            raise TypeError("complex")
        floats = value.is_floating_point()
        return {"kind": kind, "shape": list(value.shape), **({} if floats else {"values": value.tolist()})}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [written(part, torch) for part in value]}
    if value is None or type(value) in (bool, int, str) or (type(value) is float and np.isfinite(value)):
        return value
    raise TypeError(type(value).__name__)


def read(value: Any) -> Any:
    """An argument of a call that was written down."""
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        return getattr(dtypes, value["dtype"])
    if "shape" in value:
        if "values" in value:
            return Tensor(np.array(value["values"], dtype=value["kind"]).reshape(value["shape"]))
        count = int(np.prod(value["shape"]))
        floats = Tensor(np.linspace(0.3, 0.9, count, dtype=np.float32).reshape(value["shape"]))
        return floats.cast(value["kind"])
    parts = [read(part) for part in (value["list"] if "list" in value else value["tuple"])]
    return parts if "list" in value else tuple(parts)


def _sizes(value: Any, torch: Any) -> int:
    if isinstance(value, torch.Tensor):
        return int(value.numel())
    if isinstance(value, dict):
        return sum(_sizes(part, torch) for part in value.values())
    return sum(_sizes(part, torch) for part in value) if isinstance(value, (list, tuple)) else 0


def _calls(op: Any, kind: str, torch: Any) -> Iterator[tuple[Any, ...]]:
    """Samples of an operation that can be written down, with floats of a dtype."""
    if torch.float32 not in op.supported_dtypes("cpu"):
        return
    torch.manual_seed(1)

    def turned(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(getattr(torch, kind)) if value.is_floating_point() else value
        return type(value)(map(turned, value)) if type(value) in (list, tuple) else value

    for number, sample in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=False)):
        if number == _TRIED:
            return
        every = turned((sample.input, *sample.args))
        named = {key: turned(value) for key, value in sample.kwargs.items()}
        if 0 < _sizes((every, named), torch) <= _SMALL:
            try:
                texts = [written(one, torch) for one in every], {k: written(v, torch) for k, v in named.items()}
            except TypeError:
                continue
            yield (every, named, *texts)


def _kinds(value: Any) -> list[str]:
    """The dtypes of the tensors of a result, in order."""
    if isinstance(value, (list, tuple)):
        return [kind for part in value for kind in _kinds(part)]
    dtype = getattr(value, "dtype", None)
    return [] if dtype is None else [getattr(dtype, "name", str(dtype).removeprefix("torch."))]


def _given(call: Any) -> list[str] | None:
    """The dtypes of what a call gives; None if it fails."""
    try:
        return _kinds(call())
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None


def recorded() -> dict[str, Any]:
    """By operation, calls of either dtype, with the dtypes of the results without autocast (null where that fails) and
    with it: of calls that differ in what comes out, the first."""
    torch = importlib.import_module("torch")
    operations = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    found: dict[str, Any] = {}
    for op in operations:
        name = op.name + (f":{op.variant_test_name}" if op.variant_test_name else "")
        if op.name.startswith(LEFT_OUT):
            continue
        cases: dict[str, Any] = {}
        for kind in KINDS:
            for every, kwargs, args, named in _calls(op, kind, torch):
                plain = _given(lambda: op.op(*every, **kwargs))  # noqa: B023
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    cast = _given(lambda: op.op(*every, **kwargs))  # noqa: B023
                if cast:
                    case = {"args": args, "kwargs": named, "plain": plain, "cast": cast}
                    cases.setdefault(f"{kind} {plain} {cast}", case)
        if cases:
            found[name] = list(cases.values())
    return found


def differences(names: dict[str, Any]) -> dict[str, list[str]]:
    """Of operations that were written down, calls that give other dtypes here."""
    from .__main__ import ARRANGED, kept, lookup

    found: dict[str, list[str]] = {}
    for name, cases in names.items():
        here = lookup(name.partition(":")[0])
        if here is None:
            continue
        arranged = ARRANGED.get(name)
        ours = here[1] if arranged is None else arranged(here[1])
        for case in cases:
            args, kwargs = [read(one) for one in case["args"]], kept({k: read(v) for k, v in case["kwargs"].items()})
            plain = None if case["plain"] is None else _given(lambda: ours(*args, **kwargs))  # noqa: B023
            if plain != case["plain"]:
                continue  # what is not taken here, or has another dtype, is for the table of operations
            with Tensor.autocast("cpu", "bfloat16"):
                cast = _given(lambda: ours(*args, **kwargs)) or ["an error"]  # noqa: B023
            if cast != case["cast"]:
                given = "/".join(one["kind"] for one in case["args"] if isinstance(one, dict) and "kind" in one)
                found.setdefault(name, []).append(f"{given}: {','.join(case['cast'])}, here {','.join(cast)}")
    return found


def main() -> int:
    """Entry point: writes down what PyTorch gives, or prints differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="call PyTorch and write down what it gives")
    if parser.parse_args().write:
        with warnings.catch_warnings(action="ignore"):
            names = recorded()
        FILE.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in names.items()) + "\n}\n")
    for name, lines in differences(json.loads(FILE.read_text(encoding="utf-8"))).items():
        print(f"{name}: {REASONS.get(name, 'not meant')}", *lines, sep="\n    ")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
