"""A sample of calls with one thing wrong: each is refused in words. ``hatch run mistakes`` makes all of them."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest
from tools.tensor_page import samples

from tests.fuzz import mistakes
from tg_dtype import dtypes
from tinytg import Tensor, nn

SEED = int(os.environ.get("MISTAKES_SEED", "20261127"))
SEEDS = random.Random(SEED).sample(range(1_000_000), 80)


@pytest.mark.drawn(20)
@pytest.mark.parametrize("seed", SEEDS)
def test_mistakes_are_refused_in_words(seed: int) -> None:
    finding = mistakes.attempt(seed)
    assert finding is None, f"of MISTAKES_SEED={SEED}: {finding}"


def test_a_complex_number_for_a_dtype_is_refused_by_the_name_of_what_was_called() -> None:
    """Methods that have rules of their own for complex numbers work by others, which are not what was called."""
    for name in samples.operations():
        for sample, operation in mistakes.calls(name):
            for mistake in mistakes.mistakes(sample, operation):
                if mistake.what == "dtype is a complex number":
                    verdict, said = mistakes.answer(mistake, operation)
                    assert verdict == "refused", f"{name}: {said}"


def test_every_layer_and_optimiser_has_a_good_call() -> None:
    assert set(mistakes.optimizers()) >= {"nn.optim.SGD", "nn.optim.Adam", "nn.optim.LBFGS"}
    assert len(mistakes.layers()) > 80


@pytest.mark.parametrize("name", mistakes.layers())
def test_every_layer_shows_itself(name: str) -> None:
    make = mistakes.rows()[name.partition(".")[2]][0]
    assert repr(make())


def _refused(**kwargs: Any) -> tuple[str, str]:
    def sine(x: Tensor, scale: Any = 1.0) -> Tensor:
        if kwargs.get("crash") and scale is None:
            raise KeyError("scale")
        if kwargs.get("written"):
            x += 1
        if scale == "zzz":
            raise TypeError("nothing is named")
        if kwargs.get("written") and scale == -1:
            raise ValueError("sine: the scale is negative")
        return x.sin()

    sample = samples.samples("Tensor.sin")[0]
    good = samples.Sample("Tensor.sine", sample.args)
    for mistake in mistakes.mistakes(good, sine):
        verdict, said = mistakes.answer(mistake, sine)
        if verdict == "wrong" and kwargs["what"] in said:
            return verdict, said
    return "refused", ""


@pytest.mark.parametrize(
    "planted",
    [
        {"crash": True, "what": "KeyError"},
        {"what": "does not name sine"},
        {"written": True, "what": "an operand is changed"},
    ],
    ids=lambda planted: planted["what"],
)
def test_a_planted_bug_is_found(planted: dict[str, Any]) -> None:
    assert _refused(**planted)[0] == "wrong"


X: Any = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
EMPTY: Any = Tensor.zeros(2, 0)
WRONG: Any = Tensor  # called as no type checker would let it be
OPTIM: Any = nn.optim
LAYERS: Any = nn
FUNCTIONAL: Any = nn.functional
REFUSED: dict[str, tuple[Any, str]] = {
    "a flag is no str": (lambda: X.sum(1, keepdim="no"), "Tensor.sum: keepdim is True or False"),
    "a flag is no str by numpy's name": (lambda: X.sum(1, keepdims=2.5), "Tensor.sum: keepdim is True or False"),
    "a layer's flag": (lambda: LAYERS.Linear(2, 3, bias="no"), "Linear: bias is True or False"),
    "True is no number of parts": (lambda: X.chunk(True), "Tensor.chunk: chunks is an integer"),
    "a complex axis": (lambda: X.sum(1j), "complex"),
    "a complex axis of several": (lambda: WRONG.cat(X, X, dim=1j), "Tensor.cat: dim is an integer"),
    "nothing to gather from": (lambda: EMPTY.gather(1, Tensor([[0], [1]])), "Tensor.gather: an index of shape"),
    "nothing to look up in": (lambda: Tensor.zeros(0, 3).embedding(Tensor([0])), "Tensor.embedding: an index"),
    "nothing to take a maximum of": (lambda: Tensor.zeros(1, 2, 0).max_pool1d(1), "max_pool1d: input of shape"),
    "None is no value": (lambda: X.clone().copy_(None), "Tensor.copy_: None is no value"),
    "a negative norm": (lambda: X.cdist(X, p=-1), "Tensor.cdist: the norm is one of 0 or more"),
    "a size that cannot be": (lambda: X.reshape(1, 2, 3).max_unpool1d(X.reshape(1, 2, 3).cast(dtypes.int32), 2,
                              output_size=(19,)), "max_unpool1d: output_size"),
    "bounds that are not finite": (lambda: WRONG.arange(0.0, float("inf")), "Tensor.arange: bounds and step"),
    "a division by 0": (lambda: X.celu(0.0), "Tensor.celu: alpha is 0"),
    "a tensor beside sizes": (lambda: WRONG.normal(2, 3, mean=X), "Tensor.normal: sizes"),
    "no class": (lambda: Tensor([0]).one_hot(0), "Tensor.one_hot: 0 is not a number of classes"),
    "several probabilities": (lambda: LAYERS.Dropout2d(X), "Dropout2d: Tensor("),
    "no recipe": (
        lambda: FUNCTIONAL.scaled_mm(X, X.T, X[0, :1], ["a"], X[0, :1], 0), "scaled_mm: 'a' is no ScalingType"),
    "other sums": (
        lambda: FUNCTIONAL.scaled_mm(X, X.T, X[0, :1], 0, X[0, :1], 0, contraction_dim=(0, 0)),
        "scaled_mm: contraction_dim (0, 0)"),
    "an axis named twice": (lambda: X.squeeze((0, 0)), "Tensor.squeeze: an axis is named twice"),
    "sides that contradict": (lambda: X[0].searchsorted(X[0], right=True, side="left"), "searchsorted: side"),
    "one tensor as parameters": (lambda: OPTIM.SGD(Tensor([[1.0]])), "SGD: params is one tensor"),
    "NaN as a setting": (lambda: OPTIM.SGD([Tensor([1.0])], weight_decay=float("nan")), "SGD: weight_decay is NaN"),
    "no number as a setting": (lambda: OPTIM.Adam([Tensor([1.0])], weight_decay=None), "Adam: weight_decay is a n"),
    "parameters in two groups": (
        lambda: OPTIM.SGD([{"params": [X]}, {"params": [X], "lr": 0.1}]), "SGD: parameter 0 of group 1"),
}  # fmt: skip


def test_what_hangs_is_ended() -> None:
    with pytest.raises(TimeoutError), mistakes.limited(1):
        while True:
            pass
    with mistakes.limited(1):
        time.sleep(1.2)  # others have the processor: that is not its fault


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_taken_for_something_else(what: str) -> None:
    call, said = REFUSED[what]
    with pytest.raises((TypeError, ValueError, IndexError)) as error:
        call()
    assert said in str(error.value)
