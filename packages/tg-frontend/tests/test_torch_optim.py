"""Optimisers and schedules step by step beside PyTorch's, where that is installed; shapes and settings are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tg_frontend import Tensor, TinyJit, nn

torch: Any = pytest.importorskip("torch")
Array = npt.NDArray[np.float32]

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05}), ("SGD", {"momentum": 0.5, "maximize": True}),
    ("Adam", {}), ("Adam", {"betas": (0.5, 0.75), "weight_decay": 0.1, "amsgrad": True}), ("Adam", {"maximize": True}),
    ("AdamW", {}), ("AdamW", {"weight_decay": 0.5, "eps": 1e-3, "amsgrad": True, "maximize": True}),
    ("NAdam", {}), ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}), ("RAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}), ("Adamax", {"betas": (0.7, 0.8), "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}), ("RMSprop", {"centered": True, "momentum": 0.7, "weight_decay": 0.1}),
    ("RMSprop", {"alpha": 0.5, "maximize": True}), ("RMSprop", {"momentum": 0.3}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.3, "initial_accumulator_value": 0.2, "weight_decay": 0.1}),
    ("Adadelta", {}), ("Adadelta", {"rho": 0.5, "eps": 1e-2, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {}), ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.02), "maximize": True}),
    ("ASGD", {}), ("ASGD", {"lambd": 0.1, "alpha": 0.9, "t0": 2.0, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {}), ("Adafactor", {"weight_decay": 0.3, "d": 2.0, "eps": (1e-3, 0.5), "maximize": True}),
]  # fmt: skip


def _data(seed: int, count: int = 7) -> tuple[list[Array], list[list[Array]]]:
    """Parameters of drawn shapes, and their gradients in so many steps."""
    rng = np.random.default_rng(seed)
    shapes = [(), (int(rng.integers(1, 9)),), tuple(rng.integers(1, 8, 2)), tuple(rng.integers(1, 5, 3))]
    params = [np.asarray(rng.uniform(-1, 1, shape), np.float32) for shape in shapes]
    grads = [[np.asarray(rng.uniform(-1, 1, shape), np.float32) for shape in shapes] for _ in range(count)]
    return params, grads


def _pair(name: str, params: list[Array], options: dict[str, Any], groups: bool = False) -> tuple[Any, ...]:
    theirs = [torch.tensor(p, requires_grad=True) for p in params]
    ours = [Tensor(p, requires_grad=True) for p in params]

    def given(tensors: list[Any]) -> Any:
        if not groups:
            return tensors
        return [{"params": tensors[:1]}, {"params": tensors[1:], "lr": 0.037, "weight_decay": 0.07}]

    return theirs, ours, getattr(torch.optim, name)(given(theirs), **options), getattr(nn.optim, name)(
        given(ours), **options)  # fmt: skip


def _step(theirs: list[Any], ours: list[Tensor], a: Any, b: Any, grads: list[Array]) -> None:
    for t, o, g in zip(theirs, ours, grads, strict=True):
        t.grad, o.grad = torch.tensor(g), Tensor(g)
    a.step()
    b.step()


def _same(theirs: list[Any], ours: list[Tensor], tolerance: float = 3e-6) -> None:
    for t, o in zip(theirs, ours, strict=True):
        assert tuple(t.shape) == o.shape
        np.testing.assert_allclose(o.numpy(), t.detach().numpy(), rtol=tolerance * 5, atol=tolerance)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_steps(name: str, options: dict[str, Any], groups: bool) -> None:
    if groups and "weight_decay" not in getattr(torch.optim, name)([torch.zeros(1)]).defaults:
        pytest.skip("it has no weight decay")
    params, grads = _data(len(name) + len(options))
    theirs, ours, a, b = _pair(name, params, options, groups)
    for number, every in enumerate(grads):
        _step(theirs, ours, a, b, every)
        _same(theirs, ours)
        if number == 3:  # a state of PyTorch's in an optimiser of ours, and the tensors of both go on alike
            split = [dict(group) | {"params": list(group["params"])} for group in b.param_groups]
            again = getattr(nn.optim, name)(split)
            again.load_state_dict(a.state_dict())
            b = again
    for t, o in zip(theirs, b._kept, strict=True):
        for key, value in o.items():
            want = a.state[t].get({"max_exp_avg_sq": "max_exp_avg_sq"}.get(key, key))
            if want is not None:
                np.testing.assert_allclose(value.numpy(), np.asarray(want), rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_rates_that_change_before_every_step(name: str, options: dict[str, Any]) -> None:
    params, grads = _data(len(name) + len(options))
    theirs, ours, a, b = _pair(name, params, options)
    for rate, every in zip(np.random.default_rng(len(name)).uniform(0.001, 0.05, len(grads)), grads, strict=True):
        a.param_groups[0]["lr"] = b.param_groups[0]["lr"] = float(rate)
        _step(theirs, ours, a, b, every)
        _same(theirs, ours)


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "ASGD"])
def test_parameters_without_a_gradient_do_not_count_the_step(name: str) -> None:
    options: dict[str, Any] = {"momentum": 0.9, "dampening": 0.5} if name == "SGD" else {}
    params, grads = _data(3)
    theirs, ours, a, b = _pair(name, params, options)
    for number, every in enumerate(grads):
        for i, (t, o, g) in enumerate(zip(theirs, ours, every, strict=True)):
            there = (number + i) % 3 != 0
            t.grad, o.grad = (torch.tensor(g), Tensor(g)) if there else (None, None)
        a.step()
        b.step()
        _same(theirs, ours)


def test_muon_moves_as_torch_does() -> None:
    """PyTorch iterates in bfloat16, so that both agree within that."""
    rng = np.random.default_rng(0)
    for shape in ((7, 5), (5, 11), (6, 6)):
        for fn in (None, "match_rms_adamw"):
            p = rng.uniform(-1, 1, shape).astype(np.float32)
            theirs, ours, a, b = _pair("Muon", [p], {"lr": 0.1, "adjust_lr_fn": fn})
            for _ in range(3):
                _step(theirs, ours, a, b, [rng.uniform(-1, 1, shape).astype(np.float32)])
            _same(theirs, ours, 2e-2)


def test_lbfgs_evaluates_as_torch_does() -> None:
    target = np.random.default_rng(1).uniform(-1, 1, (3, 2)).astype(np.float32)
    t, o = torch.zeros(3, 2, requires_grad=True), Tensor(np.zeros((3, 2), np.float32), requires_grad=True)
    a, b = torch.optim.LBFGS([t], lr=0.7, max_iter=4), nn.optim.LBFGS([o], lr=0.7, max_iter=4)

    def theirs() -> Any:
        a.zero_grad()
        loss = ((t - torch.tensor(target)) ** 4).sum() + (t * t).sum()
        loss.backward()
        return loss

    def ours() -> Any:
        b.zero_grad()
        return (((o - Tensor(target)) ** 4).sum() + (o * o).sum()).backward()

    for _ in range(3):
        assert abs(float(a.step(theirs).detach()) - float(b.step(ours).item())) < 1e-5
        _same([t], [o], 1e-5)


def test_sparse_adam() -> None:
    table = np.random.default_rng(2).uniform(-1, 1, (9, 3)).astype(np.float32)
    theirs = torch.nn.Embedding.from_pretrained(torch.tensor(table), freeze=False, sparse=True)
    ours = nn.Embedding(9, 3, sparse=True)
    nn.state.load_state_dict(ours, {"weight": table})
    a = torch.optim.SparseAdam(list(theirs.parameters()), lr=0.1)
    b = nn.optim.SparseAdam([ours.weight], lr=0.1)
    for rows in ([0, 3, 3], [1], [3, 8, 0]):
        a.zero_grad()
        b.zero_grad()
        (theirs(torch.tensor(rows)) ** 2).sum().backward()
        (ours(Tensor(rows)) ** 2).sum().backward()
        a.step()
        b.step()
        _same([theirs.weight], [ours.weight])


def _schedules(of: Any, optimizer: Any) -> dict[str, Any]:
    return {
        "step": lambda: of.StepLR(optimizer, 7, 0.5), "multi": lambda: of.MultiStepLR(optimizer, [5, 3, 31], 0.3),
        "exponential": lambda: of.ExponentialLR(optimizer, 0.93),
        "linear": lambda: of.LinearLR(optimizer, 0.2, 0.8, 13), "constant": lambda: of.ConstantLR(optimizer, 0.25, 9),
        "lambda": lambda: of.LambdaLR(optimizer, lambda n: 1 / (n + 1)),
        "lambdas": lambda: of.LambdaLR(optimizer, [lambda n: 0.9**n, lambda n: 0.8**n]),
        "multiplicative": lambda: of.MultiplicativeLR(optimizer, lambda n: 0.9 + 0.01 * (n % 3)),
        "cosine": lambda: of.CosineAnnealingLR(optimizer, 11, 0.003),
        "restarts": lambda: of.CosineAnnealingWarmRestarts(optimizer, 5, 2, 0.002),
        "one": lambda: of.OneCycleLR(optimizer, 0.5, total_steps=60),
        "one line": lambda: of.OneCycleLR(optimizer, [0.5, 0.3], 60, pct_start=0.2, anneal_strategy="linear"),
        "one in three": lambda: of.OneCycleLR(optimizer, 0.5, epochs=6, steps_per_epoch=10, three_phase=True),
        "cyclic": lambda: of.CyclicLR(optimizer, 0.01, 0.4, 7),
        "cyclic 2": lambda: of.CyclicLR(optimizer, 0.01, 0.4, 5, 3, mode="triangular2"),
        "cyclic exp": lambda: of.CyclicLR(optimizer, [0.01, 0.02], 0.4, 5, mode="exp_range", gamma=0.95),
        "polynomial": lambda: of.PolynomialLR(optimizer, 23, 1.7),
        "sequential": lambda: of.SequentialLR(optimizer, [
            of.LinearLR(optimizer, 0.1, 1.0, 5), of.CosineAnnealingLR(optimizer, 20), of.ExponentialLR(optimizer, 0.9),
        ], [5, 30]),
        "chained": lambda: of.ChainedScheduler([
            of.ConstantLR(optimizer, 0.3, 4), of.ExponentialLR(optimizer, 0.9),
            of.CosineAnnealingLR(optimizer, 50, 0.001),
        ]),
        "two at once": lambda: (of.LinearLR(optimizer, 0.1, 1.0, 8), of.StepLR(optimizer, 6, 0.5)),
    }  # fmt: skip


def _rates(optimizer: Any) -> list[list[float]]:
    names = [name for name in ("lr", "momentum") if name in optimizer.param_groups[0]]
    return [[float(group[name]) for name in names] for group in optimizer.param_groups]


@pytest.mark.parametrize("momentum", ["SGD", "Adam"])
@pytest.mark.parametrize("name", _schedules(None, None))
def test_schedules(name: str, momentum: str) -> None:
    options = {"momentum": 0.9} if momentum == "SGD" else {}
    both = []
    theirs, ours = (torch.optim.lr_scheduler, torch.zeros, torch.optim), (nn.lr_scheduler, Tensor.zeros, nn.optim)
    for of, tensor, optim in (theirs, ours):
        p, q = tensor(1).requires_grad_(), tensor(1).requires_grad_()
        optimizer = getattr(optim, momentum)([{"params": [p]}, {"params": [q], "lr": 0.05}], lr=0.2, **options)
        found = _schedules(of, optimizer)[name]()
        schedules = found if isinstance(found, tuple) else (found,)
        out = [_rates(optimizer)]
        for _ in range(50):
            if optim is torch.optim:
                optimizer.step()
            for schedule in schedules:
                schedule.step()
            out.append(_rates(optimizer))
        last = [schedule.get_last_lr() for schedule in schedules]
        both.append((out, last, [float(x) for g in optimizer.param_groups for x in g.get("betas", ())]))
    np.testing.assert_allclose(np.array(both[1][0]), np.array(both[0][0]), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(both[1][1][-1], both[0][1][-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(both[1][2], both[0][2], rtol=1e-6)


def test_plateaus() -> None:
    rng = np.random.default_rng(4)
    for _ in range(12):
        options: dict[str, Any] = {
            "mode": str(rng.choice(["min", "max"])), "factor": float(rng.uniform(0.1, 0.9)),
            "patience": int(rng.integers(0, 4)), "threshold_mode": str(rng.choice(["rel", "abs"])),
            "threshold": float(rng.uniform(0, 0.1)), "cooldown": int(rng.integers(0, 3)), "min_lr": 0.01,
        }  # fmt: skip
        a = torch.optim.SGD([torch.zeros(1)], lr=0.5)
        b = nn.optim.SGD([Tensor.zeros(1)], lr=0.5)
        s, t = torch.optim.lr_scheduler.ReduceLROnPlateau(a, **options), nn.lr_scheduler.ReduceLROnPlateau(b, **options)
        for value in rng.uniform(1, 2, 50):
            s.step(value)
            t.step(value)
            assert b.param_groups[0]["lr"] == pytest.approx(a.param_groups[0]["lr"], rel=1e-6)


@pytest.mark.parametrize("name", ["OneCycleLR", "CosineAnnealingLR"])
def test_a_schedule_moves_a_recorded_step(name: str) -> None:
    """Rate and momentum change with each replay, and nothing is recorded anew."""
    start = np.random.default_rng(5).uniform(-1, 1, (5, 3)).astype(np.float32)
    options: dict[str, Any] = {"max_lr": 0.1, "total_steps": 30} if name == "OneCycleLR" else {"T_max": 9}
    t, o = torch.tensor(start, requires_grad=True), Tensor(start, requires_grad=True)
    a, b = torch.optim.Adam([t], lr=0.05), nn.optim.Adam([o], lr=0.05)
    s, u = getattr(torch.optim.lr_scheduler, name)(a, **options), getattr(nn.lr_scheduler, name)(b, **options)

    @TinyJit
    def step(x: Tensor) -> None:
        b.zero_grad()
        ((o - x) ** 2).sum().backward()
        b.step()

    records = []
    for number in range(20):
        x = np.full((5, 3), number / 10, np.float32)
        a.zero_grad()
        ((t - torch.tensor(x)) ** 2).sum().backward()
        a.step()
        step(Tensor(x).realize())
        s.step()
        u.step()
        _same([t], [o], 1e-5)
        records.append(step.captured)
    assert records[2] is not None and all(one is records[2] for one in records[2:])


@pytest.mark.parametrize("options", [{}, {"lr": 0.3, "history_size": 3}, {"max_iter": 7, "max_eval": 9}])
def test_lbfgs_searches_lines_as_torch_does(options: dict[str, Any]) -> None:
    """Rosenbrock's function of four unknowns: the same points after each step, and as many evaluations."""
    begin = np.array([-1.2, 1.0, 0.5, -0.7])
    t, o = torch.tensor(begin, requires_grad=True), Tensor(begin, requires_grad=True)
    a = torch.optim.LBFGS([t], line_search_fn="strong_wolfe", **{"max_iter": 5, **options})
    b = nn.optim.LBFGS([o], line_search_fn="strong_wolfe", **{"max_iter": 5, **options})
    counts = [0, 0]

    def theirs() -> Any:
        counts[0] += 1
        a.zero_grad()
        loss = (100 * (t[1:] - t[:-1] ** 2) ** 2 + (1 - t[:-1]) ** 2).sum()
        loss.backward()
        return loss

    def ours() -> Any:
        counts[1] += 1
        b.zero_grad()
        return (((o[1:] - o[:-1] ** 2) ** 2) * 100 + (1 - o[:-1]) ** 2).sum().backward()

    for _ in range(4):
        assert abs(float(a.step(theirs).detach()) - float(b.step(ours).item())) < 1e-5
        np.testing.assert_allclose(o.numpy(), t.detach().numpy(), rtol=1e-6, atol=1e-7)
        assert counts[0] == counts[1]
