"""The benchmark: it measures, notices what is wrong or absent, stops when asked, and its page is up to date."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import json
import pkgutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import bench
import numpy as np
import pytest
from bench import case, earlier, footprint, guard, measure, page, picture, probes, record, reductions, table
from bench.crew import Crew, environment
from bench.isa import HELD
from bench.libraries import MODULES, Library, open_library
from bench.workload import Goal
from bench.workloads import WORKLOADS, derivatives, language
from bench.workloads.recurrent import average

from tg_lazy import Ops
from tg_lazy.cost import LIMITS, Limits
from tg_lazy.subgraph.split_reduction import most_parts
from tg_runtime.device.dev import parse_dev
from tg_runtime.host.arch import CPUArch
from tinytg import Tensor, nn

Run = Callable[..., subprocess.CompletedProcess[str]]
MODULE_NAMES = [m.name for m in pkgutil.walk_packages(bench.__path__, "bench.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("name", MODULE_NAMES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.slow
def test_measures_two_libraries(repository: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "figures.json"
    options = ["--quick", "--libraries", "tinytg,numpy"]
    for name in ("tiny op", "gemv", "import"):
        options += ["--only", name]
    done = run(repository, "python", "-m", "bench", *options, "--json", str(out))
    assert done.returncode == 0, done.stdout
    found = record.Record.load(out)
    assert found.complete and [row.name for row in found.rows] == ["gemv 4096", "tiny op, eager"]
    for row in found.rows:
        assert {name: outcome.status for name, outcome in row.results.items()} == {"tinytg": "ok", "numpy": "ok"}
        assert row.checked_against == "numpy" and all(o.seconds and o.rounds for o in row.results.values())
    assert found.limits["fma"] > 1e9 and found.limits["read"] > 1e8
    gemv, tiny = found.rows
    assert gemv.limit is not None and gemv.limit > 1e8 and tiny.limit is None, "a limit takes turns where there is one"
    assert found.imports["heavy"] == []
    assert out.with_suffix(".svg").read_text(encoding="utf-8").startswith("<svg")
    assert "gemv 4096" in done.stdout


def test_an_unknown_name_is_an_error(repository: Path, run: Run) -> None:
    done = run(repository, "python", "-m", "bench", "--only", "sgemmm")
    assert done.returncode != 0 and "nothing is called 'sgemmm'" in done.stdout


def test_an_interrupt_keeps_what_is_there(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    names = ["--only", "tiny op", "--only", "digits convnet train"]  # the second compiles for seconds
    options = ["--quick", "--no-cold", *names, "--libraries", "tinytg,numpy", "--json", str(out)]
    env = environment(1, tmp_path)
    command = [sys.executable, "-m", "bench", *options]
    process = subprocess.Popen(command, cwd=repository, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("[2/2]"):
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            break
    rest = process.communicate()[0]
    assert process.wait(timeout=30) == 1
    assert "interrupted" in rest
    found = record.Record.load(out)
    assert not found.complete and [row.name for row in found.rows] == ["tiny op, eager"]


def test_a_wrong_result_is_noticed(tmp_path: Path) -> None:
    workload = WORKLOADS["sgemm 256"]
    row = measure.Row(workload.name, workload.group, workload.unit)
    for name, values in (("numpy", [1.0, 2.0]), ("tinytg", [1.0, 2.1]), ("torch", [1.0, np.nan]), ("jax", [1.0, 2.0])):
        np.savez(tmp_path / f"{name}.npz", np.array(values))
        row.results[name] = measure.Outcome("ok", seconds=1.0)
    measure.check(row, workload, tmp_path)
    assert {n: o.status for n, o in row.results.items()} == {
        "numpy": "ok", "tinytg": "wrong", "torch": "wrong", "jax": "ok"
    }  # fmt: skip
    assert record.measured(row, "tinytg") is None
    assert "WRONG" in table.text(record.Record(rows=[row], machine={"threads": 2}))


def test_a_library_that_is_not_there_is_absent(tmp_path: Path) -> None:
    crew = Crew(1, sys.executable, tmp_path)
    try:
        row = measure.measure(
            crew, WORKLOADS["tiny op, eager"], ["numpy", "nothing"], {"nothing": "absent: no such module"},
            measure.QUICK, lambda line: None,
        )  # fmt: skip
    finally:
        crew.close()
    assert row.results["nothing"].status == "absent" and row.results["numpy"].status == "ok"


def test_a_worker_that_dies_is_a_failure_of_its_library_alone(tmp_path: Path) -> None:
    crew = Crew(1, sys.executable, tmp_path)
    try:
        crew.member("numpy").process.kill()
        crew.member("numpy").process.wait()
        outcome = measure.open_in(crew, "numpy", WORKLOADS["tiny op, eager"], measure.QUICK, tmp_path / "numpy.npz")
        assert outcome.status == "ok", "a dead worker is replaced"
    finally:
        crew.close()


def test_goals() -> None:
    workload = dataclasses.replace(WORKLOADS["sgemm 1024"], work=2e9, limit="fma")
    limit = 100e9
    assert record.judge(Goal("share", 0.9), workload, limit, 2e9 / 95e9).met is True
    assert record.judge(Goal("share", 0.9), workload, limit, 2e9 / 85e9).met is False
    assert record.judge(Goal("share", 0.9), workload, None, 1.0).met is None
    assert record.judge(Goal("rate", 200), workload, limit, 2e9 / 201e9).met is True
    assert record.judge(Goal("seconds", 1.0), WORKLOADS["200 kernels replayed, per kernel"], None, 201.0).met is False


CHEAP = (
    "sgemm 256", "attention 4x8x512x64", "200 kernels replayed, per kernel", "cumprod 2048x2048",
    "logcumsumexp 2048x2048", "LSTM of 200 steps, 32x64 to 128", "100000 rows of 16 into 10000 added",
    "topk 50 of 64x32000", "unique of 1M", "argsort 61x9973", "quantile 0.9 of 61x9973", "bincount of 1M",
    "GRU of 200 steps, 32x64 to 128", "scan of 199 products 31x97", "while_loop, roots of 10007",
    "cholesky, float32 512", "slogdet, float64 509", "qr, float64 509",
)  # fmt: skip


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", CHEAP)
def test_a_workload_has_one_meaning(name: str) -> None:
    """Cheap ones give the same in numpy and in tinytg, through the same code that the benchmark runs."""
    found: dict[str, case.Array] = {}
    for library in ("numpy", "tinytg"):
        made = WORKLOADS[name].build(open_library(library, 1))
        found[library] = np.array(made.host(made.run()))
    assert measure.difference([found["tinytg"]], [found["numpy"]]) < 1e-4


def test_every_library_has_a_module() -> None:
    assert set(MODULES) >= {"tinytg", "numpy", "torch", "jax", "tinygrad"}


def test_gradients_in_a_record_and_out_of_it_are_weighted_sums() -> None:
    """The gradient at a table is the sum of the weights of the rows that were looked up, and scans have one, too."""
    library = open_library("tinytg", 1)
    index, weights = np.array([2, 0, 2], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2)
    for eager in (False, True):
        made = library.gradient(library.embed, [np.zeros((4, 2), np.float32), index], weights, eager)
        assert made.mode == ("eager" if eager else "jit")
        for _ in range(3):
            assert made.host(made.run()).tolist() == [[2, 3], [0, 0], [4, 6], [0, 0]]
    looped = library.gradient(partial(average, library), [np.ones(2, np.float32), np.ones((3, 2), np.float32)], weights)
    assert looped.host(looped.run()) == pytest.approx([0.9 * 0 + 0.81 * 2 + 0.729 * 4, 0.9 + 0.81 * 3 + 0.729 * 5])


def test_derivatives_are_those_of_formulas() -> None:
    """Of two layers with a hyperbolic tangent between them, of sizes that are checked in no time."""
    library, rng = open_library("tinytg", 1), np.random.default_rng(0)
    x, y, one, two, way = (rng.standard_normal(shape) for shape in ((3, 5), (3, 2), (7, 5), (2, 7), (7, 5)))

    def found(build: Callable[..., Any], *arrays: case.Array) -> case.Array:
        made = library.derived(build(library), arrays)
        return made.host(made.run())

    def inner(one: case.Array) -> tuple[case.Array, case.Array, case.Array]:
        hidden = np.tanh(x @ one.T)
        return hidden, 1 - hidden * hidden, 2 * (hidden @ two.T - y)

    def slope(one: case.Array) -> case.Array:
        _, bend, error = inner(one)
        return ((error @ two * bend).T @ x) / y.size

    def cost(one: case.Array) -> float:
        lengths = np.linalg.norm((inner(one)[1] * two[0]) @ one, axis=1)
        return float(((lengths - 1) ** 2).mean())

    hidden, bend, error = inner(one)
    squares = [(part * part).sum(1) for part in (error, hidden, error @ two * bend, x)]
    samples = found(derivatives.slopes_of_samples, x, y, one, two)
    np.testing.assert_allclose(samples, squares[0] * squares[1] + squares[2] * squares[3], rtol=1e-5)
    np.testing.assert_allclose(
        found(derivatives.product_with_hessian, way, x, y, one, two),
        (slope(one + 1e-5 * way) - slope(one - 1e-5 * way)) / 2e-5, rtol=1e-4, atol=1e-7,
    )  # fmt: skip
    rises = (found(derivatives.penalty, x, one, two[:1]) * way).sum()
    assert rises == pytest.approx((cost(one + 1e-5 * way) - cost(one - 1e-5 * way)) / 2e-5, rel=1e-4)
    np.testing.assert_allclose(found(derivatives.jacobian, x[0], one, two), (two * bend[0]) @ one, rtol=1e-5)
    bends = two[0] * -2 * hidden[0] * bend[0]
    np.testing.assert_allclose(
        found(derivatives.hessian, x[0], one, two[:1]), (one.T * bends) @ one, rtol=1e-4, atol=1e-6
    )


@pytest.mark.slow
def test_what_training_takes_of_memory(tmp_path: Path) -> None:
    crew = Crew(1, sys.executable, tmp_path)
    workload = WORKLOADS["digits convnet train step, batch 64"]
    found = footprint.probe(crew, workload, "tinytg", 120)
    assert set(found) == {"cold", "warm", "tensors_bytes"}, found
    x_bytes = 64 * 8 * 8 * 4
    assert 10 * x_bytes < found["tensors_bytes"] < 200 * x_bytes
    assert found["warm"]["imported_bytes"] + found["tensors_bytes"] / 2 < found["warm"]["peak_bytes"]
    assert found["warm"]["peak_bytes"] <= found["cold"]["peak_bytes"]
    assert footprint.worth_many_steps(found) and not footprint.worth_many_steps({"failed": ""})
    assert "unsupported" in footprint.probe(crew, workload, "numpy", 120)


def test_memory_is_judged_beside_torch() -> None:
    def taken(cold: int, warm: int, tensors: int | None) -> footprint.Found:
        states = {
            name: {"imported_bytes": 1 << 20, "peak_bytes": peak << 20, "last_s": 0.1}
            for name, peak in (("cold", cold), ("warm", warm))
        }
        return {**states, "tensors_bytes": None if tensors is None else tensors << 20}

    made = record.Record(rows=[measure.Row("MLP train step, batch 128", "training", "ms")])
    assert "## Memory\n\n###" not in page.page(made), "a record from before has none"
    made.footprint["MLP train step, batch 128"] = {
        "tinytg": taken(130, 110, 30), "torch": taken(100, 100, 20), "tinygrad": taken(90, 80, None),
        "jax": {"failed": "ended with status 1"}, "numpy": {"absent": "absent: "},
    }  # fmt: skip
    made.steps["MLP train step, batch 128"] = {
        "TinyJit": {"resident_bytes": [50 << 20, 50 << 20]}, "eager": {"resident_bytes": [50 << 20, 53 << 20]},
    }  # fmt: skip
    text = page.page(made)
    name = "MLP train step, batch 128"
    assert f"| {name} | tinytg | 1.0 | 130 (1.3 × torch ✗) | 110 (1.1 × torch ✓) | 30.0 (1.5 × torch ✗) |" in text
    assert f"| {name} | tinygrad | 1.0 | 90.0 | 80.0 |  |" in text and f"| {name} | jax | FAILED |" in text
    assert f"| {name} | eager | 50.0 | 53.0 | 3.00 ✗ |" in text
    assert f"| {name} | TinyJit | 50.0 | 50.0 | 0.00 ✓ |" in text
    assert "1.3 times torch's memory as a whole process with an empty cache" in text
    assert "1.5 times torch's memory for tensors" in text and "3.0 MiB more after 1,000 steps" in text
    assert "(1.3 × torch (MISSED))" in table.text(made)


def test_the_page_says_which_rows_are_older_than_it() -> None:
    def row(name: str, group: str, date: str) -> measure.Row:
        return measure.Row(name, group, "GFLOP/s", date=date)

    rows = [
        row("sgemm 256", "matrix products", "2026-11-20 13:14"),
        row("sgemm 512", "matrix products", "2026-11-24 10:46"),
        row("softmax 4096x4096", "softmax", "2026-11-19 01:02"), row("attention 4x8x512x64", "attention", ""),
    ]  # fmt: skip
    shown = page.page(record.Record(date="2026-11-24 10:46", rows=rows))
    assert "sgemm 256: measured on 2026-11-20." in shown and "All: measured on 2026-11-19." in shown
    assert shown.count(": measured on") == 2


def test_the_picture_shows_every_library(repository: Path) -> None:
    row = measure.Row("sgemm 1024", "matrix products", "GFLOP/s")
    row.results = {n: measure.Outcome("ok", seconds=s) for n, s in (("tinytg", 0.01), ("numpy", 0.02), ("jax", 0.04))}
    drawn = picture.svg(record.Record(rows=[row], limits={"fma": 500e9}))
    assert all(colour in drawn for n, colour in picture.COLOURS.items() if n in row.results)
    assert "2.00 of the speed of numpy" in drawn


def test_a_held_instruction_set_has_goals_beside_torch() -> None:
    row = measure.Row("sgemm 1024", "matrix products", "GFLOP/s", limit=250e9)
    row.results = {n: measure.Outcome("ok", seconds=2.0**31 / r) for n, r in (("tinytg", 210e9), ("torch", 220e9))}
    assert [(v.wanted, v.met) for v in record.verdicts(row, "avx2")] == [("≥ 1 × torch", False), ("≥ 80% of fma", True)]
    held = record.Record(rows=[row], machine={"isa": "avx2"})
    shown = page.page(record.Record(), [held])
    assert "## Held to AVX2" in shown and "- **sgemm 1024**: 0.955 instead of ≥ 1 × torch." in shown


def test_a_row_is_shown_with_the_work_that_was_measured(repository: Path) -> None:
    """Workloads of the month are others when the page is made in another one."""
    name = "sgemm, 8 odd shapes of the month"
    row = measure.Row(name, "matrix products", "GFLOP/s", limit=250e9, work=3e9)
    row.results = {"tinytg": measure.Outcome("ok", seconds=0.015), "numpy": measure.Outcome("ok", seconds=0.02)}
    assert WORKLOADS[name].work != row.work
    assert [(v.got, v.met) for v in record.verdicts(row)] == [("80%", True)]
    assert table.line(row, ["tinytg", "numpy"])[2:4] == ["200", "150"]
    assert "| 200 | 150 |" in page.page(record.Record(rows=[row])) and "80%" in page.page(record.Record(rows=[row]))
    for stored in sorted((repository / "bench" / "results").glob("*.json")):
        assert [one.name for one in record.Record.load(stored).rows if one.work is None] == []


@pytest.mark.parametrize("isa", sorted(HELD))
def test_a_worker_is_held_to_an_instruction_set(isa: str, tmp_path: Path) -> None:
    settings = environment(1, tmp_path, isa=isa)
    assert settings.items() >= HELD[isa].items() and environment(1, tmp_path)["DEV"] == "CPU"
    assert CPUArch.parse(parse_dev(HELD[isa]["DEV"])[0].arch).target(1).vector_bytes == 32


def test_the_page_is_up_to_date(repository: Path, run: Run) -> None:
    if not (repository / "bench/results/reference.json").exists():
        pytest.fail("bench/results/reference.json is missing")
    done = run(repository, "python", "-m", "bench", "report", "--check")
    assert done.returncode == 0, done.stdout


def test_the_guard_fails_where_a_workload_is_slow_or_nobody_said_what_it_should_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "RECORD", tmp_path / "guard.json")
    monkeypatch.setattr(guard, "GUARDED", ("sgemm 256",))
    for name, value in (("TURNS", 3), ("TURN_S", 0.02), ("ATTEMPTS", 2), ("PAUSE_S", 0)):  # nothing is near a limit
        monkeypatch.setattr(guard, name, value)
    assert guard.main() == 1 and "does not say what sgemm 256 should cost" in capsys.readouterr().out
    assert guard.main(record=True) == 0
    found = guard.recorded()[guard.kind()]["sgemm 256"]
    for should, status, verdict in ((found * 100, 0, "ok"), (found / 100, 1, "TOO SLOW")):
        guard.RECORD.write_text(json.dumps({guard.kind(): {"sgemm 256": should}}), encoding="utf-8")
        assert guard.main() == status and verdict in capsys.readouterr().out
    assert guard.main(most=1e4) == 0 and "ok" in capsys.readouterr().out


def test_an_earlier_commit_brings_its_own_devices(tmp_path: Path) -> None:
    """They are found by entry points, which an installation of today's packages may give other modules."""
    project = tmp_path / "tg-made" / "pyproject.toml"
    (project.parent / "src").mkdir(parents=True)
    project.write_text(
        '[project]\nname = "tg-made"\nversion = "1.5"\n[project.entry-points."tg.devices"]\nMADE = "made.of:It"\n',
        encoding="utf-8")
    earlier.installed(project)
    (found,) = distributions(path=[str(project.parent / "src")])
    assert found.name == "tg-made" and [(p.group, p.name, p.value) for p in found.entry_points] == [
        ("tg.devices", "MADE", "made.of:It")]


def test_what_is_slower_than_an_earlier_commit_is_told() -> None:
    as_before = [earlier.Compared(f"row {i}", (1.0, 1.0), 1.0, 0.98, 1.02) for i in range(9)]
    assert earlier.verdict(as_before) == (1.0, [])
    slow = earlier.Compared("slow", (0.9, 1.0), 0.9, 0.88, 0.94)
    perhaps = dataclasses.replace(slow, name="perhaps", high=0.96)
    assert earlier.verdict([*as_before, perhaps])[1] == []
    (wrong,) = earlier.verdict([*as_before, slow])[1]
    assert wrong.startswith("slow: surely below 0.95")
    assert any("geometric mean is 0.9" in line for line in earlier.verdict([perhaps])[1])
    failed = earlier.Compared("failed", reason="tinytg: wrong: differs")
    assert earlier.verdict([*as_before, failed]) == (1.0, ["failed: tinytg: wrong: differs"])
    new = earlier.Compared("new", reason="tinytg@earlier: failed: it had no such operation")
    assert earlier.verdict([*as_before, new]) == (1.0, []), "what was not there before is no slower"


@pytest.mark.slow
def test_this_code_beside_a_commit(repository: Path, tmp_path: Path, run: Run) -> None:
    kept = tmp_path / "figures.json"
    options = ["--only", "tiny op", "--rounds", "7", "--json", kept]
    done = run(repository, "python", "-m", "bench", "earlier", "HEAD", *options)
    (row,) = json.loads(kept.read_text(encoding="utf-8"))["rows"]
    assert row["reason"] == "" and 0.5 < row["ratio"] < 2 and row["low"] <= row["ratio"] <= row["high"], done.stdout
    assert "geometric mean of 1 rows" in done.stdout
    unknown = run(repository, "python", "-m", "bench", "earlier", "no-such-commit", "--only", "tiny op")
    assert unknown.returncode != 0 and "git has no commit 'no-such-commit'" in unknown.stdout


def test_equal_layers_share_their_kernels() -> None:
    """A deeper transformer's training step takes more kernels, but no more that differ."""
    library = open_library("tinytg", 1)
    assert isinstance(library, Library)
    tokens, following = (library.array(values) for values in language.batch())

    def kernels(layers: int) -> tuple[int, int]:
        params = {name: library.array(values) for name, values in language.weights(layers).items()}
        adam = nn.optim.Adam(list(params.values()), lr=1e-3)
        with Tensor.train():
            loss = language.loss(library, params, tokens, following, layers)
            asts = [item.ast for item in loss.backward().schedule(*adam.schedule_step()) if item.ast.op is Ops.SINK]
        return len(asts), len(set(asts))

    (few, distinct), (many, still) = kernels(3), kernels(5)
    assert few < many and still == distinct < few


def test_every_pass_has_its_time(repository: Path, tmp_path: Path) -> None:
    crew = Crew(1, sys.executable, tmp_path)
    found, unknown = probes.passes(crew, ["digits convnet train step, batch 64", "no such workload"], 120)
    assert "KeyError" in unknown["failed"]
    first, second = found["runs"]
    assert first["compiled"] > second["compiled"] and first["kernels"] >= first["compiled"] and first["nodes"] > 100
    for run in (first, second):
        assert sum(run["passes"].values()) == pytest.approx(run["cpu_s"], rel=0.05)
    idle = {name for name, seconds in first["passes"].items() if not seconds}
    assert idle == {"planning memory, recording"} and second["passes"]["planning memory, recording"] > 0
    shown = record.Record(passes=[found, unknown], machine={"threads": 1})
    assert "differentiating" in table.text(shown) and "no such workload, pass by pass: FAILED" in table.text(shown)
    assert "### By pass" in page.page(shown) and "### By pass" not in page.page(record.Record())


def test_reductions_are_measured_whole_and_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed as so many parts is scheduled as so many, and the limits are as before afterwards."""
    probe, seen = reductions.Reductions("CPU", 1), []
    before, scheduled = dict(LIMITS), most_parts

    def watched(count: int, limits: Limits) -> int:
        seen.append((count, scheduled(count, limits)))
        return seen[-1][1]

    monkeypatch.setattr("tg_lazy.subgraph.split_reduction.most_parts", watched)
    (timed,) = probe.sums((1 << 16,))
    assert set(timed.seconds) == {1, 8, 32, 128, 256} and timed.chosen == 256 and min(timed.seconds.values()) > 0
    assert {parts for count, parts in seen if count == 1 << 16} == set(timed.seconds)
    assert before == LIMITS
