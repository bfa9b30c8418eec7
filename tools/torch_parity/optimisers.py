"""Optimisers and schedules of the learning rate beside PyTorch's, step by step, as a table.

The settings are those of PyTorch's own tests (``optim_db`` of ``torch.testing``): for processors, for cards, and the
flags that choose one of PyTorch's implementations. Twenty steps are made from the same weights with the same gradients;
after half of them what PyTorch's optimiser has saved is loaded into a new one here, which goes on. What is compared:
parameters, what is kept for them, names in ``state_dict``, and the settings of the groups. Schedules make thirty steps,
and are loaded from PyTorch's state after half of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytg import Tensor, nn

from .comparing import Row, made, shown, tensor, unequal
from .deliberate import OPTIMISERS, reason

STEPS = 20
EPOCHS = 30
KINDS = ("float32", "float64", "complex64")
SHAPES = ((3, 2), (4,), ())
_TOLERANCES = {"float32": (1e-4, 1e-5), "float64": (1e-6, 1e-7), "complex64": (1e-4, 1e-5)}
"""Of float64 less than its digits: rates are held in float32 here, so that a recorded step reads them anew."""
_MUON = (5e-2, 3e-2)
"""PyTorch iterates in bfloat16."""
FLAGS = ("foreach", "fused", "differentiable", "capturable")
"""Settings that choose one of PyTorch's implementations."""
_REFUSED = (RuntimeError, ValueError, TypeError, IndexError, KeyError, AssertionError, UserWarning)


def _weights(name: str, dtype: str, torch: Any) -> list[Any]:
    shapes = ((3, 2), (4, 4)) if name == "Muon" else ((5, 3),) if name == "SparseAdam" else SHAPES
    return [(torch.rand(shape, dtype=getattr(torch, dtype)) - 0.5).requires_grad_() for shape in shapes]


def _gradients(weights: list[Any], sparse: bool, torch: Any) -> list[Any]:
    found = [torch.rand_like(w.detach()) - 0.4 for w in weights]
    rows = torch.tensor([[0, 3]])
    return [torch.sparse_coo_tensor(rows, g[:2], g.shape) for g in found] if sparse else found


def _given(gradient: Any, torch: Any) -> Tensor:
    """A gradient of PyTorch's as one here; sparse ones by their rows."""
    if not gradient.is_sparse:
        return tensor(gradient, torch)
    gradient = gradient.coalesce()
    table = Tensor.zeros(*gradient.shape).requires_grad_()
    rows, values = tensor(gradient.indices()[0], torch), tensor(gradient.values(), torch)
    (nn.functional.embedding(rows, table, sparse=True) * values).sum().backward()
    assert table.grad is not None
    return table.grad


def _groups(parameters: list[Any], several: bool) -> Any:
    return [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.037}] if several else parameters


def stepped(
    info: Any, settings: dict[str, Any], dtype: str, several: bool, torch: Any
) -> str | None:  # fmt: skip
    """How twenty steps differ; None if they do not.

    Raises:
      RuntimeError: if PyTorch's optimiser refuses the settings.
    """
    name, closed = info.name, info.step_requires_closure
    start = _weights(name, dtype, torch)
    with_flags = {key: value for key, value in settings.items() if key not in FLAGS}
    try:
        theirs = info.optim_cls(_groups(start, several), **with_flags)
    except _REFUSED as error:
        raise RuntimeError(str(error)) from error
    mine = [tensor(weight, torch).requires_grad_() for weight in start]
    kind = getattr(nn.optim, name)
    ours = kind(_groups(mine, several), **made(settings, torch))
    tolerance = _MUON if name == "Muon" else _TOLERANCES[dtype]
    for number in range(STEPS):
        if number == STEPS // 2:
            wrong = _saved(theirs, ours)
            if wrong is not None:
                return wrong
            ours = kind(_groups(mine, several), **made(settings, torch))
            ours.load_state_dict(theirs.state_dict())
        if closed:
            theirs.step(_closure(theirs, start, torch.ones(())))
            ours.step(_closure(ours, mine, Tensor.ones()))
        else:
            for weight, own, gradient in zip(start, mine, _gradients(start, info.only_supports_sparse_grads, torch),
                                             strict=True):  # fmt: skip
                weight.grad, own.grad = gradient, _given(gradient, torch)
            theirs.step()
            ours.step()
        wrong = unequal([w.detach() for w in start], mine, tolerance, True)
        if wrong is not None:
            return f"step {number}: {wrong}"
    return _kept(theirs, ours, tolerance)


def _closure(optimiser: Any, weights: list[Any], one: Any) -> Callable[[], Any]:
    def closure() -> Any:
        optimiser.zero_grad()
        total = sum(((abs(w) ** 2).sum() - one) ** 2 + (w.real if w.is_complex() else w).sum() for w in weights)
        total.backward()
        return total

    return closure


def _saved(theirs: Any, ours: Any) -> str | None:
    """How the names of the states differ."""
    want, got = theirs.state_dict(), ours.state_dict()
    if set(want["state"]) != set(got["state"]):
        return f"state of parameters {list(want['state'])}, here {list(got['state'])}"
    for number, kept in want["state"].items():
        missing = [key for key, value in kept.items() if key not in got["state"][number] and value is not None]
        if missing:
            return f"no {', '.join(missing)} in the state: {', '.join(got['state'][number])}"
    for left, right in zip(want["param_groups"], got["param_groups"], strict=True):
        missing = [key for key in left if key not in right and key not in FLAGS]
        if missing:
            return f"no {', '.join(missing)} in a group: {', '.join(right)}"
    return None


def _kept(theirs: Any, ours: Any, tolerance: tuple[float, float]) -> str | None:
    """How what is kept, and the settings of groups, differ at the end."""
    want, got = theirs.state_dict(), ours.state_dict()
    for number, kept in want["state"].items():
        for key, value in kept.items():
            if hasattr(value, "shape") and value.dim():
                wrong = unequal(value, got["state"][number][key], (tolerance[0] * 5, tolerance[1] * 5), True)
                if wrong is not None:
                    return f"{key} of parameter {number}: {wrong}"
    for left, right in zip(theirs.param_groups, ours.param_groups, strict=True):
        for key, value in left.items():
            if key in ("params", *FLAGS):
                continue
            if not _equal(value, right[key]):
                return f"{key} of a group is {value!r}, here {right[key]!r}"
    return None


def _equal(left: Any, right: Any) -> bool:
    """Whether two settings are the same: numbers, pairs of them, or words."""
    if isinstance(left, (tuple, list)):
        return all(map(_equal, left, right))
    if left is None or isinstance(left, str):
        return bool(left == right)
    return bool(np.allclose(float(left), float(right)))


def _settings(info: Any) -> Iterator[tuple[dict[str, Any], bool]]:
    """What each optimiser is made with, and whether it has two groups."""
    seen = []
    for device in ("cpu", "cuda"):
        for one in info.optim_inputs_func(device=device):
            if repr(one.kwargs) not in seen:
                seen.append(repr(one.kwargs))
                yield one.kwargs, False
    if info.supports_param_groups:
        yield {"lr": 0.02}, True
    for flag in info.supported_impls:
        for value in (True, False):
            yield {flag: value}, False


def _refusals(info: Any, row: Row, torch: Any) -> None:
    """What PyTorch's optimiser refuses is to be refused."""
    usual = torch.nn.Parameter(torch.randn(2, 3))
    for wrong in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        one = wrong.optimizer_error_input
        given = [usual] if one.params is None else one.params
        row.wrong_inputs += 1
        leaves: list[tuple[Any, Any]] = []
        made_of: dict[int, Tensor] = {}

        def own(value: Any, made_of: dict[int, Tensor] = made_of) -> Any:
            if isinstance(value, torch.Tensor):
                if id(value) not in made_of:
                    made_of[id(value)] = made(value, torch, leaves)  # noqa: B023
                    if value.grad is not None:
                        made_of[id(value)].grad = tensor(value.grad, torch)
                return made_of[id(value)]
            if isinstance(value, (list, tuple)):
                return type(value)(map(own, value))
            return {key: own(part) for key, part in value.items()} if isinstance(value, dict) else value

        try:
            ours = getattr(nn.optim, info.name)(own(given), **made(one.kwargs, torch))
            if "STEP" in wrong.error_on.name:
                ours.step()
        except _REFUSED:
            continue
        row.note("accepts", f"({shown(given)}, {one.kwargs}): {one.desc}", OPTIMISERS)


def examined(info: Any, most: int, torch: Any) -> Row:
    """One optimiser, with so many settings, and what is found of it."""
    row = Row(info.name, f"nn.optim.{info.name}" if hasattr(nn.optim, info.name) else "")
    if not row.ours:
        why = reason(row.name, "missing", OPTIMISERS)
        row.meant, row.notes = int(why is not None), [] if why is None else [f"meant: {why}"]
        return row
    begin = time.perf_counter()
    every = list(_settings(info))
    for dtype in KINDS:
        if dtype == "complex64" and not info.supports_complex:
            continue
        count = min(len(every), most if dtype == "float32" else max(1, most // 3))
        for settings, several in [every[place * len(every) // count] for place in range(count)]:
            text = f"{dtype} {settings}{' in two groups' if several else ''}"
            row.tried += 1
            torch.manual_seed(0)
            try:
                wrong = stepped(info, settings, dtype, several, torch)
            except Exception as error:
                row.note("refuses", f"{text}: {type(error).__name__}: {str(error)[:200]}", OPTIMISERS)
                continue
            if wrong is not None:
                row.note("differs", f"{text}: {wrong}", OPTIMISERS)
    _refusals(info, row, torch)
    row.seconds = time.perf_counter() - begin
    return row


SCHEDULES: dict[str, list[Callable[[Any, Any], Any]]] = {
    "LambdaLR": [lambda of, o: of.LambdaLR(o, lambda n: 0.95**n),
                 lambda of, o: of.LambdaLR(o, [lambda n: 0.9**n, lambda n: 1 / (n + 1)])],
    "MultiplicativeLR": [lambda of, o: of.MultiplicativeLR(o, lambda n: 0.9 + 0.01 * (n % 3))],
    "StepLR": [lambda of, o: of.StepLR(o, 7, gamma=0.5)],
    "MultiStepLR": [lambda of, o: of.MultiStepLR(o, milestones=[5, 5, 17], gamma=0.3)],
    "ConstantLR": [lambda of, o: of.ConstantLR(o), lambda of, o: of.ConstantLR(o, factor=0.25, total_iters=9)],
    "LinearLR": [lambda of, o: of.LinearLR(o), lambda of, o: of.LinearLR(o, 0.2, 0.8, 13)],
    "ExponentialLR": [lambda of, o: of.ExponentialLR(o, 0.93)],
    "PolynomialLR": [lambda of, o: of.PolynomialLR(o), lambda of, o: of.PolynomialLR(o, 23, 1.7)],
    "CosineAnnealingLR": [lambda of, o: of.CosineAnnealingLR(o, 11, eta_min=0.003),
                          lambda of, o: of.CosineAnnealingLR(o, T_max=40)],
    "CosineAnnealingWarmRestarts": [lambda of, o: of.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2, eta_min=0.002)],
    "CyclicLR": [lambda of, o: of.CyclicLR(o, 0.01, 0.4, 7),
                 lambda of, o: of.CyclicLR(o, 0.01, 0.4, 5, 3, mode="triangular2"),
                 lambda of, o: of.CyclicLR(o, [0.01, 0.02], 0.4, 5, mode="exp_range", gamma=0.95),
                 lambda of, o: of.CyclicLR(o, 0.01, 0.4, scale_fn=lambda n: 1 / (5**n), scale_mode="iterations"),
                 lambda of, o: of.CyclicLR(o, 0.01, 0.4, 7, cycle_momentum=False)],
    "OneCycleLR": [lambda of, o: of.OneCycleLR(o, max_lr=0.5, total_steps=60),
                   lambda of, o: of.OneCycleLR(o, [0.5, 0.3], 60, pct_start=0.2, anneal_strategy="linear"),
                   lambda of, o: of.OneCycleLR(o, 0.5, epochs=6, steps_per_epoch=10, three_phase=True)],
    "SequentialLR": [lambda of, o: of.SequentialLR(o, [of.LinearLR(o, 0.1, 1.0, 5), of.CosineAnnealingLR(o, 20),
                                                       of.ExponentialLR(o, 0.9)], milestones=[5, 20])],
    "ChainedScheduler": [lambda of, o: of.ChainedScheduler([of.ConstantLR(o, 0.3, 4), of.ExponentialLR(o, 0.9),
                                                            of.CosineAnnealingLR(o, 50, 0.001)], optimizer=o)],
    "ReduceLROnPlateau": [lambda of, o: of.ReduceLROnPlateau(o, patience=2),
                          lambda of, o: of.ReduceLROnPlateau(o, "max", 0.5, 1, threshold_mode="abs", cooldown=2,
                                                             min_lr=[0.01, 0.02])],
    "SWALR": [lambda of, o: of.SWALR(o, swa_lr=0.05, anneal_epochs=7, anneal_strategy="linear"),
              lambda of, o: of.SWALR(o, 0.05)],
}  # fmt: skip
"""By name, schedules of an optimiser with two groups, made of what a module has."""
FOUND = ("last_epoch", "base_lrs", "best", "num_bad_epochs", "T_max", "T_0", "gamma", "step_size", "total_steps")
"""Attributes of schedules that are compared where PyTorch's has them."""


class _Schedules:
    """The schedules of a side, of both of its modules."""

    def __init__(self, *modules: Any) -> None:
        self.modules = modules

    def __getattr__(self, name: str) -> Any:
        return next(getattr(module, name) for module in self.modules if hasattr(module, name))


def scheduled(make: Callable[[Any, Any], Any], optimiser: str, torch: Any) -> str | None:
    """How thirty steps of a schedule differ; None if they do not."""
    of = _Schedules(torch.optim.lr_scheduler, torch.optim.swa_utils), _Schedules(nn.lr_scheduler, nn.optim.swa_utils)
    options: dict[str, Any] = {"momentum": 0.9} if optimiser == "SGD" else {}
    p, q = (torch.zeros(1).requires_grad_() for _ in range(2))
    theirs = getattr(torch.optim, optimiser)([{"params": [p]}, {"params": [q], "lr": 0.05}], lr=0.2, **options)

    def own() -> Any:
        pair = [{"params": [Tensor.zeros(1)]}, {"params": [Tensor.zeros(1)], "lr": 0.05}]
        return getattr(nn.optim, optimiser)(pair, lr=0.2, **options)

    ours = own()
    a, b = make(of[0], theirs), make(of[1], ours)
    missing: list[str] = []
    for epoch in range(EPOCHS):
        wrong = _rates(theirs, ours, a, b)
        if wrong is not None:
            return f"epoch {epoch}: {wrong}"
        given = (1.0 / (1 + epoch // 4),) if type(a).__name__ == "ReduceLROnPlateau" else ()
        theirs.step()
        a.step(*given)
        b.step(*given)
        if epoch == EPOCHS // 2:
            saved, settings = a.state_dict(), theirs.state_dict()
            ours = own()
            b = make(of[1], ours)
            ours.load_state_dict(settings)
            b.load_state_dict(saved)
            missing = [name for name in saved if not name.startswith("_") and not hasattr(b, name)]
    return f"no attribute {', '.join(missing)}" if missing else None


def _rates(theirs: Any, ours: Any, a: Any, b: Any) -> str | None:
    for left, right in zip(theirs.param_groups, ours.param_groups, strict=True):
        for key in ("lr", "momentum", "betas", "initial_lr"):
            if key in left and not np.allclose(left[key], right[key], rtol=1e-5, atol=1e-8):
                return f"{key} is {left[key]}, here {right[key]}"
    if not np.allclose(a.get_last_lr(), b.get_last_lr(), rtol=1e-5):
        return f"get_last_lr() is {a.get_last_lr()}, here {b.get_last_lr()}"
    for name in FOUND:
        if hasattr(a, name) and not np.allclose(getattr(a, name), getattr(b, name)):
            return f"{name} is {getattr(a, name)}, here {getattr(b, name)}"
    return None


def rows(only: Callable[[str], bool], most: int, share: tuple[int, int], torch: Any) -> list[Row]:
    """What was found of each optimiser and schedule."""
    from torch.testing._internal.common_optimizers import optim_db

    found = [examined(info, most, torch) for info in [one for one in optim_db if only(one.name)][share[0] :: share[1]]]
    for name in [name for name in SCHEDULES if only(name)][share[0] :: share[1]]:
        row = Row(name, f"nn.lr_scheduler.{name}")
        for number, make in enumerate(SCHEDULES[name]):
            for optimiser in ("SGD", "Adam"):
                row.tried += 1
                try:
                    wrong = scheduled(make, optimiser, torch)
                except Exception as error:
                    row.note("refuses", f"{number} of {optimiser}: {type(error).__name__}: {str(error)[:200]}",
                             OPTIMISERS)  # fmt: skip
                    continue
                if wrong is not None:
                    row.note("differs", f"{number} of {optimiser}: {wrong}", OPTIMISERS)
        found.append(row)
    return found
