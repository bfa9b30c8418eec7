"""The page about the machine model: its tables are the code's, and each probe that it names is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pkgutil import resolve_name

import pytest
from bench import gpu, hardware
from tools import machine_model

from tg_codegen.machine.numbers import numbers


def test_the_page_is_what_the_model_says() -> None:
    text = machine_model.PAGE.read_text(encoding="utf-8")
    assert machine_model.page(text) == text, "run python -m tools.machine_model"
    with pytest.raises(ValueError, match="the page has no lines"):
        machine_model.page(text.replace("<!-- end of gpu -->", ""))


def test_every_probe_that_is_a_source_is_there() -> None:
    text = machine_model.PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"probe `([a-z ]+)`", text))
    assert {"units", "latency", "columns", "prefetch"} <= named
    assert named <= {*hardware.PROBES, *gpu.PROBES, "integer division"}, "the last is one of division's"


def test_no_number_is_an_estimate() -> None:
    """Nor is any without a manual, a derivation or a probe."""
    for model in machine_model.MODELS.values():
        assert not [n.name for n in numbers(model) if "estimate" in n.source]


@pytest.mark.parametrize("probe", sorted(gpu.PROBES))
def test_probes_of_gpus_measure(probe: str) -> None:
    """On a software GPU, whose times mean nothing, at a size that it takes."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.gpu", "CUDA", probe, "--side", "32"], env={**os.environ, "DEV": "MOCK+CUDA:PTX"},
        cwd=machine_model.PAGE.parents[1], capture_output=True, text=True, check=True)  # fmt: skip
    lines = done.stdout.splitlines()
    form = re.compile(rf"{probe}\S*( \S+)* +(-?[0-9.]+|nan) [a-z-]+   model: [0-9.]+")
    assert lines and all(form.fullmatch(line) for line in lines)


def test_a_slope_is_found_again() -> None:
    points = [((x, y), 3 * (1 + 8 * x + 16 * y)) for x in (0.25, 0.5, 1.0) for y in (0.125, 0.25)]
    assert gpu.weights([*points, ((2.0, 2.0), float("inf"))]) == (8.0, 16.0)
    with pytest.raises(ValueError, match="2 of 2 kernels can be rendered: too few for 3 unknowns"):
        gpu.weights(points[:2])


def test_what_is_no_gpu_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, message in ((["CPU"], "no work-groups"), (["CPU", "nothing"], "there are tiles, warps")):
        with pytest.raises(SystemExit):
            gpu.main(argv)
        assert message in capsys.readouterr().err


def test_every_function_that_weighs_is_there() -> None:
    section = machine_model.PAGE.read_text(encoding="utf-8").partition("## Who weighs what")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `([\w.]+)`", section, re.MULTILINE)
    assert len(named) >= 8
    for name in named:
        assert callable(resolve_name(f"tg_codegen.{name}")), name


def test_probes_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert hardware.main(["nothing"]) == 2 and "there are units, latency" in capsys.readouterr().out
    assert hardware.main(["units", "latency", "division", "masks", "columns"]) == 0
    found = dict(re.findall(r"^(\w+(?:: \w+| \w+)?) +([0-9.]+) ", capsys.readouterr().out, re.MULTILINE))
    assert 0.2 < float(found["units"]) < 8 and 1 < float(found["latency"]) < 20
    assert {"division", "integer division", "masks: loads", "masks: stores", "columns: far"} <= {*found}
