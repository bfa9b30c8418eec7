"""The program that calls every method of Tensor: it knows each, and finds what is planted."""

from __future__ import annotations

import pytest
from tools.tensor_page import measure, page, samples

from tg_frontend.keywords import other_names
from tinytg import Tensor

ALL = ["float32", "bfloat16", "int32", "uint8", "bool"]
FLOATS = ["float32", "bfloat16"]
SAMPLE = {
    "Tensor.add": ([*ALL, "complex64"], "any"),
    "Tensor.bitwise_xor": (["int32", "uint8", "bool"], "none"),
    "Tensor.clamp": (ALL, "any"),
    "Tensor.conj": ([*ALL, "complex64"], "any"),
    "Tensor.floor": (ALL, "any"),
    "Tensor.logsigmoid": (ALL, "any"),
    "Tensor.polar": (FLOATS, "any"),
    "Tensor.rand": (FLOATS[:1], ""),
    "fft.rfft": (ALL, "any"),
    "linalg.eigh": (["float32", "complex64"], "any"),
}


def test_everything_that_computes_has_a_call() -> None:
    """Those that the fuzzer does not draw are written in tools/tensor_page/functions.py."""
    assert [name for name in samples.operations() if not samples.samples(name)] == []


def test_the_page_names_every_public_method() -> None:
    text, others = page.page({}), other_names(Tensor)
    names = {name for name in dir(Tensor) if not name.startswith("_")}
    names |= {name for room in samples.ROOMS for name in (*samples.functions(room), *samples.shared(room))}
    assert {others.get(name, name) for name in names if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("name", SAMPLE)
def test_what_a_run_says(name: str) -> None:
    row = measure.measure(name, ["NUMPY"])
    assert (row.problems, row.takes["NUMPY"], row.gradient) == ([], *SAMPLE[name])


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sine = Tensor.sin
    monkeypatch.setattr(Tensor, "sin", lambda x: sine(x) + (1e-2 if x.dtype.name == "float32" else 0))
    wrong = measure.measure("Tensor.sin", ["NUMPY"])
    assert "float32" not in wrong.takes["NUMPY"] and "NUMPY float32" in wrong.problems[0]


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sine = Tensor.sin
    monkeypatch.setattr(Tensor, "sin", lambda x: sine(x).detach() + (x - x.detach()) * 0.5)
    wrong = measure.measure("Tensor.sin", ["NUMPY"])
    assert wrong.gradient == "0" and "derivative 1" in wrong.problems[0]


def test_what_other_devices_said_stays() -> None:
    had = {"takes": {"CPU": ["float32"]}, "gradient": "any", "against": "numpy", "torch": "torch.sin"}
    row = {"takes": {"NUMPY": ["float32"]}, "gradient": "", "against": "devices", "problems": []}
    now = page.merged(had, row, {"numpy": "numpy.sin"})
    assert now["takes"] == {"CPU": ["float32"], "NUMPY": ["float32"]} and now["torch"] == "torch.sin"
    assert (now["gradient"], now["against"], now["numpy"]) == ("any", "numpy", "numpy.sin")


AGAIN = "run python -m tools.tensor_page --new (or --only NAME, or --page)"


def test_the_page_is_what_the_results_say() -> None:
    assert page.page(page.results()) == page.PAGE.read_text(encoding="utf-8"), AGAIN


def test_everything_that_computes_was_run_and_was_right_somewhere() -> None:
    known = page.results()
    never = [name for name in samples.operations() if not any(known.get(name, {}).get("takes", {}).values())]
    assert never == [], AGAIN


@pytest.mark.parametrize("name", [*SAMPLE, "Tensor.sort", "Tensor.cumsum", "linalg.solve", "special.erfcx"])
def test_the_results_are_those_of_a_run(name: str) -> None:
    known, row = page.results()[name], measure.measure(name, ["NUMPY"])
    assert (row.takes["NUMPY"], row.gradient) == (known["takes"]["NUMPY"], known["gradient"]), AGAIN
