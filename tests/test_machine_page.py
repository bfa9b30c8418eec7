"""The page about the machine model: its tables are the code's, and each probe that it names is there."""

from __future__ import annotations

import re
from pkgutil import resolve_name

import pytest
from bench import hardware
from tools import machine_model


def test_the_page_is_what_the_model_says() -> None:
    text = machine_model.PAGE.read_text(encoding="utf-8")
    assert machine_model.page(text) == text, "run python -m tools.machine_model"
    with pytest.raises(ValueError, match="the page has no lines"):
        machine_model.page(text.replace("<!-- end of gpu -->", ""))


def test_every_probe_that_is_a_source_is_there() -> None:
    text = machine_model.PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"probe `([a-z ]+)`", text))
    assert {"units", "latency", "columns", "prefetch"} <= named
    assert named <= {*hardware.PROBES, "integer division"}, "the last is one of division's"


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
