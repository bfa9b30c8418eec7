"""Tensors as text, against numpy's own printing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tg_frontend import Tensor, TinyJit, nn, set_printoptions
from tg_lazy import Context
from tg_runtime import GlobalCounters
from tg_shape import Variable


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    yield
    set_printoptions(precision=8, threshold=1000, edgeitems=3, linewidth=80)


def numpys(array: Any) -> str:
    """What numpy would print between ``Tensor(`` and ``)``."""
    return str(np.array2string(array, separator=", ", prefix="Tensor(", max_line_width=79))


def body(tensor: Tensor) -> str:
    text = repr(tensor)
    for note in ("shape=", "dtype=", "device=", "requires_grad="):
        text = text.split(f" {note}")[0].split(f"\n       {note}")[0].rstrip(", \n")
    return text.removeprefix("Tensor(").removesuffix(")")


ELEMENTS = {
    "float32": st.floats(-1e3, 1e3, width=32).map(lambda v: float(np.float32(round(v, 3)))) | st.floats(width=32),
    "float64": st.floats(),
    "float16": st.floats(-100, 100, width=16),
    "int8": st.integers(-128, 127),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "bool": st.booleans(),
}


@pytest.mark.parametrize("dtype", ELEMENTS)
@settings(max_examples=60)
@given(st.data())
def test_as_numpy_prints(dtype: str, data: Any) -> None:
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=7))
    array = data.draw(arrays.arrays(dtype, shape, elements=ELEMENTS[dtype]))
    with np.errstate(all="ignore"):
        want = numpys(array)
    with Context(DEV="NUMPY"):
        assert body(Tensor(array)) == want


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("exponent", range(-6, 18))
def test_powers_of_ten_are_shown_from_where_numpy_shows_them(dtype: str, exponent: int) -> None:
    with np.errstate(all="ignore"):
        edge = np.array([10.0**exponent], dtype)
        for values in (edge, np.nextafter(edge, 0), edge * np.array(1.5, dtype), np.concatenate([edge, edge / 8])):
            with Context(DEV="NUMPY"):
                assert body(Tensor(values)) == numpys(values)


@pytest.mark.parametrize("shape", [(1001,), (40, 50), (3, 400), (400, 3), (5, 11, 20), (7, 7, 7, 7)])
def test_large_ones_are_summarised_as_numpy_does(shape: tuple[int, ...], backend: str) -> None:
    array = np.random.default_rng(0).integers(-999, 999, shape, dtype=np.int32)
    assert body(Tensor(array).realize()) == numpys(array)
    assert body(Tensor(array).contiguous().realize().flip(0)) == numpys(np.flip(array, 0))


def test_what_is_not_the_default_is_shown() -> None:
    assert repr(Tensor([0.1, 0.25])) == "Tensor([0.1 , 0.25])"
    assert repr(Tensor(3)) == "Tensor(3)"
    assert repr(Tensor([[True, False]])) == "Tensor([[ True, False]])"
    assert repr(Tensor([1], dtype="int64")) == "Tensor([1], dtype=int64)"
    assert repr(Tensor([0.1], dtype="bfloat16")) == "Tensor([0.1], dtype=bfloat16)"
    assert repr(Tensor([1.0], requires_grad=True)) == "Tensor([1.], requires_grad=True)"
    assert repr(Tensor.zeros(0, 3)) == "Tensor([], shape=(0, 3), dtype=float32)"
    with Context(DEV="CPU"):
        assert repr(Tensor([1], device="NUMPY")) == "Tensor([1], device='NUMPY')"
    wide = repr(Tensor(np.full(15, 1 / 3), requires_grad=True))
    assert wide.endswith("0.33333333],\n       dtype=float64, requires_grad=True)")


def test_small_lazy_ones_are_computed_and_large_ones_not(backend: str) -> None:
    x = Tensor([1.0, 2.0]).contiguous().realize()
    assert repr((x + 1).exp().log().round()) == "Tensor([2., 3.])"
    big = x.reshape(2, 1).expand(2, 600) + 1
    before = GlobalCounters.kernel_count
    assert repr(big) == f"Tensor(<not computed>, shape=(2, 600), dtype=float32, device='{backend}')"
    assert GlobalCounters.kernel_count == before
    assert "..., 2., 2., 2." in repr(big.realize())
    assert repr(Tensor.arange(2000).realize()) == f"Tensor({numpys(np.arange(2000))})"


def test_printing_leaves_a_gradient_where_it_is() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    assert repr(y) == "Tensor(5., requires_grad=True)"
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [2, 4]


def test_symbolic_sizes_and_values_are_shown() -> None:
    n = Variable("n", 1, 10)
    x = Tensor.ones(10, 2).contiguous().realize()
    assert repr(x.shrink_to(n.bind(1), None)) == "Tensor([[1., 1.]])"
    assert repr(n.bind(3)) == "n=3"
    assert repr(x.shrink_to(n, None)).startswith("Tensor(<a size is bound to no value>, shape=(n, 2),")
    assert repr(Tensor(n.bind(7))) == "Tensor(7)"


def test_what_cannot_be_computed_does_not_stop_who_looks() -> None:
    text = repr(Tensor(Variable("n", 1, 10)))
    assert text.startswith("Tensor(<cannot be computed: ")
    shown = []

    @TinyJit
    def step(x: Tensor) -> Tensor:
        shown.append(repr(x))
        return (x + 1).realize()

    for _ in range(3):
        step(Tensor([1.0]).contiguous().realize())
    assert shown[0] == "Tensor([1.])"
    assert shown[1].startswith("Tensor(<being recorded>, shape=(1,)")


def test_options() -> None:
    set_printoptions(precision=2, threshold=4, edgeitems=1, linewidth=30)
    assert repr(Tensor([1 / 3, 2 / 3])) == "Tensor([0.33, 0.67])"
    assert repr(Tensor(np.arange(9, dtype=np.int32))) == "Tensor([0, ..., 8])"
    set_printoptions(threshold=100)
    assert repr(Tensor(np.arange(9, dtype=np.int32))) == "Tensor([0, 1, 2, 3, 4, 5, 6,\n        7, 8])"
    with pytest.raises(ValueError, match="precision -1 is negative"):
        set_printoptions(precision=-1)


def test_profiles_of_options() -> None:
    numbers = np.arange(1001, dtype=np.float32) + 1.125
    set_printoptions(profile="short")
    assert repr(Tensor(numbers)) == "Tensor([   1.12,    2.12, ..., 1000.12, 1001.12])"
    set_printoptions(profile="full", precision=1)
    assert "..." not in repr(Tensor(numbers)) and repr(Tensor([0.125])) == "Tensor([0.1])"
    set_printoptions(profile="default")
    assert repr(Tensor(numbers)).count("...") == 1 and repr(Tensor([0.125])) == "Tensor([0.125])"
    with pytest.raises(ValueError, match=r"profile 'long'; there are default, short, full"):
        set_printoptions(profile="long")


def test_formats_of_single_elements() -> None:
    assert f"{Tensor([[1 / 3]]):.3f} {Tensor(255):x} {Tensor(2.0)}" == "0.333 ff Tensor(2.)"
    with pytest.raises(TypeError, match=r"formats a number, not a tensor of shape \(2,\)"):
        f"{Tensor([1.0, 2.0]):.3f}"


def test_notebooks_get_tables() -> None:
    html = Tensor([[1, 2], [3, 4]])._repr_html_()
    assert "<caption>shape (2, 2), int32, NUMPY</caption>" in html
    assert html.count("<tr>") == 2
    assert html.count("<td>") == 4
    big = Tensor(np.zeros((50, 50), np.float32)).realize()._repr_html_()
    assert (big.count("<tr>"), big.count("<td>"), big.count("…")) == (7, 49, 13)
    assert Tensor(Variable("n<", 1, 10))._repr_html_().startswith("<pre>Tensor(&lt;cannot")


def test_layers_say_what_they_are() -> None:
    class Block:
        def __init__(self) -> None:
            self.layers = [nn.Linear(3, 4), nn.LayerNorm(4), Tensor.relu]
            self.head = nn.Linear(4, 2, bias=False)

    assert repr(nn.Linear(3, 4)) == "Linear(in_features=3, out_features=4, bias=True)"
    assert repr(nn.Conv2d(1, 2, 3, padding=1)) == "Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"
    assert repr(nn.Embedding(10, 4, padding_idx=2)) == "Embedding(10, 4, padding_idx=2)"
    settings = "4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True"
    assert repr(nn.BatchNorm(4)) == f"BatchNorm({settings})"
    assert nn.Linear(3, 4).extra_repr() == "in_features=3, out_features=4, bias=True"
    text = nn.describe(Block())
    assert text == (
        "Block(\n"
        "  (layers): [\n"
        "    (0): Linear(in_features=3, out_features=4, bias=True)\n"
        "    (1): LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)\n"
        "    (2): Tensor.relu\n"
        "  ]\n"
        "  (head): Linear(in_features=4, out_features=2, bias=False)\n"
        ")"
    )
    w = Tensor([1.0, 2.0])
    assert repr(nn.optim.SGD([w], lr=0.1, momentum=0.9)) == (
        "SGD(1 tensor of 2 elements, lr=0.1, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False, "
        "maximize=False)"
    )
    assert repr(nn.optim.Adam([w], lr=0.5)).startswith("Adam(1 tensor of 2 elements, lr=0.5, betas=(0.9, 0.999)")
