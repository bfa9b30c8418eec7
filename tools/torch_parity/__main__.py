"""Operations beside PyTorch's: its own sample inputs, values, gradients and errors, as a table.

``python -m tools.torch_parity`` runs the samples of PyTorch's own tests (``torch.testing``). Each operation is called
by PyTorch's name: a method of ``Tensor``, or a function of ``tinytg.nn.functional``, ``linalg``, ``special``, ``fft``
and ``signal.windows``. What a row says:
- ``same``: every sample gives PyTorch's values, dtype, shape and gradients;
- ``differs``: how many give other ones, and the first of them;
- ``refuses``: how many of the samples raise an error here, and the first;
- ``accepts``: how many inputs that PyTorch refuses are taken here;
- ``missing``: there is nothing of this name;
- ``meant``: all that is not as there is meant, and ``deliberate.py`` says why.

``--modules``, ``--optimisers`` and ``--attributes`` are such tables of layers, of optimisers with schedules of the
learning rate, and of what tensors say of themselves.

A value that differs from PyTorch's is right where it is at least as near to what PyTorch computes in float64.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

import tinytg
from tinytg import Tensor, functions, linalg

from . import attributes, modules, names, optimisers
from .comparing import TOLERANCES, Called, Changed, Row, array, flat, gradients, kind, made, shown, table, unequal
from .deliberate import ATTRIBUTES, MODULES, OPTIMISERS, Reason, reason

KINDS = ("float32", "float64", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8", "bool",
         "bfloat16", "float16")  # fmt: skip
GRADIENTS = ("float32", "float64", "complex64", "complex128")
EXACT = ("float64", "complex128")
"""Dtypes in which PyTorch's results are what is exact."""
ROOMS = ("linalg", "special", "fft", "nn.functional", "signal.windows")
LEFT_OUT = ("masked.", "ops.aten.", "_", "torch.ops.", "sparse.", "to_sparse", "view_as_complex", "view_as_real",
            "resize_", "jiterator", "nested", "chalf", "cfloat", "cdouble", "as_strided_partial_views")  # fmt: skip
"""What is about storage, sparse or nested tensors, or PyTorch's own programming."""
RANDOM = ("dropout", "rrelu", "bernoulli", "multinomial", "normal", "uniform", "rand", "cauchy", "exponential",
          "geometric", "log_normal", "empty", "fractional_max_pool", "lowrank")  # fmt: skip
"""Operations whose values are drawn, or left as they are: shapes and dtypes are compared."""


def _second_first(f: Called) -> Called:
    return lambda a, b, *rest, **kw: f(b, a, *rest, **kw)


def _first_two(f: Called) -> Called:
    return lambda *args, **kw: tuple(f(*args, **kw))[:2]


def _of_a_product(f: Called) -> Called:
    return lambda a, b, **kw: f(a @ b.mT, **kw)


def _of_a_copy(f: Called) -> Called:
    return lambda x, *args, **kw: f(x.clone(), *args, **kw)


def _at_the_top(name: str) -> Callable[[Called], Called]:
    return lambda _: getattr(tinytg, name)


ARRANGED: dict[str, Callable[[Called], Called]] = {
    "nn.functional.embedding": _second_first,
    "nn.functional.embedding_bag": _second_first,
    "where": _second_first,
    "special.polygamma:special_polygamma_n_0": _second_first,
    **{f"polygamma:polygamma_n_{n}": _second_first for n in range(5)},
    "einsum": lambda f: lambda operands, formula: f(formula, *operands),
    **{name: _at_the_top(name) for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
    **dict.fromkeys(("linalg.pinv:singular", "pca_lowrank", "svd_lowrank"), _of_a_product),
    "linalg.lstsq:grad_oriented": _first_two,
    "zero_": _of_a_copy,
    "normal:in_place": lambda _: _of_a_copy(Tensor.normal_),
    "uniform": lambda _: _of_a_copy(Tensor.uniform_),
}
"""Operations whose samples are not in the order of the arguments, or are of a function that is made of them."""


def _symmetric(gradient: Any) -> Any:
    return gradient + np.swapaxes(gradient, -1, -2)


def _hermitian(gradient: Any) -> Any:
    return gradient + np.swapaxes(gradient, -1, -2).conj()


CHANGED: dict[str, Changed] = {
    "linalg.eigh": (0, _symmetric),
    **dict.fromkeys(("cholesky", "linalg.cholesky", "linalg.cholesky_ex"), (0, _hermitian)),
    "cholesky_inverse": (0, np.tril), "cholesky_solve": (1, np.tril),
}  # fmt: skip
"""Functions of a symmetric or triangular matrix: which operand that is, and what of its gradient changes anything
while it is one."""
TIED = ("mode", "sort", "msort", "argsort", "topk", "kthvalue", "median", "nanmedian", "max", "min", "cummax", "cummin",
        "argmax", "argmin")  # fmt: skip
"""Operations that may choose any of equal elements: positions are not compared."""
INSTEAD = ("memory_format", "device", "layout", "pin_memory", "requires_grad")
"""Keywords that are left out: there is one device here, and one layout."""


def lookup(name: str) -> tuple[str, Callable[..., Any]] | None:
    """What goes by PyTorch's name here."""
    room, _, last = name.rpartition(".")
    if room in ROOMS:
        try:
            home = importlib.import_module(f"tinytg.{room}")
        except ImportError:
            home = None
        found = getattr(home, last, None)
        if found is not None:
            return f"tinytg.{name}", found
        if room == "fft":
            return None
    if room not in ("", *ROOMS):
        return None
    if not room and last in functions.__all__:
        return f"tinytg.{last}", getattr(functions, last)
    found = getattr(Tensor, last, None)
    if found is None and last in linalg.__all__ and not room:
        return f"tinytg.{last}", getattr(linalg, last)
    if isinstance(found, property):
        return f"Tensor.{last}", attrgetter(last)
    return None if found is None else (f"Tensor.{last}", found)


def processed(sample: Any, result: Any) -> Any:
    """What of a result is to be compared: singular vectors, for example, are given but for their signs."""
    try:
        return sample.output_process_fn_grad(result)
    except (AttributeError, TypeError, ValueError):
        return result


def nearer(op: Any, sample: Any, want: Any, got: Any, torch: Any) -> bool:
    """Whether the results here are at least as near as PyTorch's to those that it computes in float64."""

    def precise(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.is_complex():
                return value.detach().to(torch.complex128)
            return value.detach().double() if value.is_floating_point() else value
        if isinstance(value, dict):
            return {key: precise(part) for key, part in value.items()}
        return type(value)(map(precise, value)) if type(value) in (list, tuple) else value

    try:
        args, kwargs = precise(sample.args), precise(sample.kwargs)
        exact = flat(processed(sample, op.op(precise(sample.input), *args, **kwargs)))
    except (RuntimeError, ValueError, TypeError):
        return False
    for a, b, c in zip(flat(want), flat(got), exact, strict=True):
        if not isinstance(a, torch.Tensor):
            continue
        if kind(a).removeprefix("torch.") != kind(b) or array(a).shape != array(b).shape:
            return False
        theirs, ours = (np.abs(array(part).astype(array(c).dtype) - array(c)).max(initial=0) for part in (a, b))
        if not ours <= theirs:
            return False
    return True


def call_of(sample: Any) -> str:
    """The arguments of a sample in few words."""
    parts = [*map(shown, (sample.input, *sample.args)), *(f"{k}={shown(v)}" for k, v in sample.kwargs.items())]
    return f"({', '.join(parts)})"[:160]


def kept(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that have a meaning here."""
    return {key: value for key, value in kwargs.items() if key not in INSTEAD}


def samples(op: Any, kinds: list[str], most: int, strided: bool, torch: Any) -> Iterator[tuple[str, Any]]:
    """Samples of the dtypes that the operation takes, evenly picked.

    Args:
      op: the operation.
      kinds: the dtypes.
      most: of float32 at most; of others a third of that.
      strided: whether tensors are views of larger memory.
      torch: the module.
    """
    for wanted in kinds:
        dtype = getattr(torch, wanted)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        differentiable = wanted in GRADIENTS and op.supports_autograd
        found = list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))
        count = most if wanted == "float32" else max(1, most // 3)
        step = max(1, len(found) / count)
        for i in range(min(count, len(found))):
            sample = found[int(i * step)]
            yield wanted, sample.noncontiguous() if strided else sample


def try_sample(op: Any, ours: Callable[..., Any], wanted: str, sample: Any, row: Row, torch: Any) -> None:
    """Calls both sides with a sample."""
    leaves: list[tuple[Any, Any]] = []
    where = f"{wanted}{call_of(sample)}"
    try:
        want = processed(sample, op.op(sample.input, *sample.args, **sample.kwargs))
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
        return  # an environment without a library that the operation wants
    if any(isinstance(leaf, torch.Tensor) and leaf.is_sparse for leaf in flat(want)):
        return
    row.tried += 1
    try:
        first, args, kwargs = (made(v, torch, leaves) for v in (sample.input, sample.args, kept(sample.kwargs)))
        got = processed(sample, ours(first, *args, **kwargs))
        drawn = any(part in row.name for part in RANDOM) or sample.kwargs.get("dropout_p", 0) > 0
        if op.name in TIED:
            want, got = flat(want)[:1], flat(got)[:1]
            drawn = drawn or op.name.startswith("arg")
        tolerance = TOLERANCES.get(wanted, TOLERANCES["float32"])
        wrong = unequal(want, got, tolerance, not drawn)
        if wrong is not None and wanted in TOLERANCES and wanted not in EXACT and nearer(op, sample, want, got, torch):
            wrong = None
        if wrong is None and wanted in GRADIENTS and not drawn and op.supports_autograd:
            wrong = gradients(want, got, leaves, tolerance, torch, CHANGED.get(row.name, (None, None)))
    except Exception as error:
        row.note("refuses", f"{where}: {type(error).__name__}: {str(error)[:200]}")
        return
    if wrong is not None:
        row.note("differs", f"{where}: {wrong}")


def try_errors(op: Any, ours: Callable[..., Any], row: Row, torch: Any) -> None:
    """What PyTorch refuses is to be refused."""
    if op.error_inputs_func is None:
        return
    for wrong in op.error_inputs("cpu"):
        sample = wrong.sample_input
        leaves = flat([sample.input, list(sample.args), sample.kwargs])
        if any(isinstance(leaf, torch.Tensor) and leaf.is_sparse for leaf in leaves):
            continue
        if sample.kwargs.get("layout", torch.strided) is not torch.strided:
            continue
        try:
            op.op(sample.input, *sample.args, **sample.kwargs)
            continue  # refused elsewhere only
        except Exception as refused:
            said = str(refused).partition("\n")[0][:100]
        row.wrong_inputs += 1
        try:
            got = ours(*(made(v, torch) for v in (sample.input, *sample.args)), **made(kept(sample.kwargs), torch))
            for leaf in flat(got):
                if isinstance(leaf, Tensor):
                    leaf.realize()
        except Exception:
            continue
        row.note("accepts", f"{call_of(sample)}: {said}")


def examine(op: Any, kinds: list[str], most: int, strided: bool, torch: Any) -> Row:
    """One operation, and what is found of it: see :func:`samples`."""
    row = Row(op.name + (f":{op.variant_test_name}" if op.variant_test_name else ""))
    found = lookup(op.name)
    if found is None and row.name not in ARRANGED:
        why = reason(row.name, "missing")
        row.meant, row.notes = int(why is not None), [] if why is None else [f"meant: {why}"]
        return row
    row.ours, ours = found or (f"Tensor.{op.name}_", getattr(Tensor, f"{op.name}_"))
    if row.name in ARRANGED:
        ours = ARRANGED[row.name](ours)
    begin = time.perf_counter()
    for wanted, sample in samples(op, kinds, most, strided, torch):
        try_sample(op, ours, wanted, sample, row, torch)
    try_errors(op, ours, row, torch)
    row.seconds = time.perf_counter() - begin
    return row


def chosen(torch_ops: list[Any], only: list[str], share: tuple[int, int]) -> list[Any]:
    """The operations that are wanted."""
    ops = [op for op in torch_ops if not op.name.startswith(LEFT_OUT)]
    return [op for op in ops if _wanted(op.name, only)][share[0] :: share[1]]


def _wanted(name: str, only: list[str]) -> bool:
    return not only or any(fnmatchcase(name, part) for part in only)


def others(options: argparse.Namespace, share: tuple[int, int], torch: Any) -> tuple[list[Row], list[Reason]]:
    """The rows of another table than that of operations, and what is meant in it."""
    if options.attributes:
        if options.write:
            attributes.write(torch)
        return [row for row in attributes.rows() if _wanted(row.name, options.only)], ATTRIBUTES
    if options.optimisers:
        return optimisers.rows(lambda name: _wanted(name, options.only), options.samples, share, torch), OPTIMISERS
    if options.write:
        modules.write(torch)
    return modules.rows(lambda name: _wanted(name, options.only), options.samples, share, torch), MODULES


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; the status is 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.torch_parity", description=__doc__)
    parser.add_argument("only", nargs="*", help="names of operations, as linalg.svd or linalg.*; all by default")
    parser.add_argument("--samples", type=int, default=12, help="of each operation and dtype at most")
    parser.add_argument("--kinds", default=",".join(KINDS), help="dtypes, with commas between; all by default")
    parser.add_argument("--strided", action="store_true", help="operands are views of larger memory")
    parser.add_argument("--share", default="0/1", metavar="I/N", help="every Nth operation, from the Ith")
    parser.add_argument("--json", metavar="PATH", help="where the rows go")
    parser.add_argument("--verbose", action="store_true", help="every difference, not the first two of each")
    parser.add_argument("--modules", action="store_true", help="layers, not operations")
    parser.add_argument("--optimisers", action="store_true", help="optimisers and schedules of the learning rate")
    parser.add_argument("--attributes", action="store_true", help="attributes of tensors, beside a record")
    parser.add_argument("--names", action="store_true", help="which public names are here, or say what is used instead")
    parser.add_argument(
        "--write", action="store_true",
        help="with --names, --modules or --attributes: write down what is installed, first",
    )
    options = parser.parse_args(arguments)
    if options.names:
        if options.write:
            names.write()
        text, missing = names.table(options.verbose)
        print(text)
        return int(missing > 0)
    import torch

    first, _, count = options.share.partition("/")
    warnings.simplefilter("ignore")
    share = int(first), int(count)
    if options.modules or options.optimisers or options.attributes:
        found, among = others(options, share, torch)
        print(table(found, options.verbose, among))
        if options.json:
            Path(options.json).write_text(json.dumps([asdict(row) for row in found], indent=1))
        return int(any(row.state() not in ("same", "meant") for row in found))
    from torch.testing._internal.common_methods_invocations import op_db

    rows = []
    for op in chosen(op_db, options.only, share):
        for generator in (random, np.random):
            generator.seed(0)
        torch.manual_seed(0)
        try:
            rows.append(examine(op, options.kinds.split(","), options.samples, options.strided, torch))
        except Exception as error:
            rows.append(Row(op.name, "?", notes=[f"the runner: {type(error).__name__}: {str(error)[:200]}"], differs=1))
        if options.json:
            Path(options.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print(table(rows, options.verbose))
    return int(any(row.differs for row in rows))


if __name__ == "__main__":
    sys.exit(main())
