"""Computing, reading, assigning: what is done when, and what stays after a failure."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_lazy import LazyBuffer
from tg_runtime import GlobalCounters
from tg_shape import Variable


def kernels(function: Callable[[], object]) -> int:
    """How many kernels a call runs."""
    before = GlobalCounters.kernel_count
    function()
    return GlobalCounters.kernel_count - before


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    x = Tensor([1.0, 2.0]).realize()
    assert kernels(lambda: ((x + 1) * 2).sum()) == 0
    y = ((x + 1) * 2).sum()
    assert not y.is_realized and kernels(y.realize) == 1 and y.is_realized
    assert kernels(y.realize) == 0 and y.item() == 10.0


def test_several_at_once_and_schedules() -> None:
    x = Tensor([1.0, 2.0]).realize()
    a, b = x + 1, x * 3
    assert len(a.schedule(b)) >= 1 and not a.is_realized
    assert a.realize(b) is a and a.is_realized and b.is_realized
    assert a.schedule(b) == []
    n = Variable("n", 1, 9).bind(4)
    assert list((x * n).schedule_with_vars()[1].values()) == [4]


def test_reading(backend: str) -> None:
    x = Tensor([[1.5, -2.0], [0.0, 4.0]])
    assert x.tolist() == [[1.5, -2.0], [0.0, 4.0]] and x.T.tolist() == [[1.5, 0.0], [-2.0, 4.0]]
    assert x[0, 1].item() == -2.0 and float(x[1, 1]) == 4.0 and int(x[1, 1]) == 4
    data = x.data()
    assert data.shape == (2, 2) and data.format == "f" and data.tolist() == x.tolist()
    assert Tensor(7).data()[()] == 7 and Tensor([1.0], dtype="bfloat16").data().nbytes == 2
    assert Tensor.zeros(0, 2).tolist() == [] and Tensor.zeros(2, 0).numpy().shape == (2, 0)
    assert Tensor([1.5, 2.5], dtype="bfloat16").numpy().dtype == np.float32
    assert len(Tensor([1, 2, 3])) == 3 and [t.item() for t in iter(Tensor([1, 2]))] == [1, 2]
    with pytest.raises(ValueError, match=r"shape \(2, 2\) has not exactly one element"):
        x.item()
    with pytest.raises(TypeError, match="no truth value"):
        bool(x)
    with pytest.raises(TypeError, match="no length"):
        len(Tensor(1))
    with pytest.raises(ValueError, match="bound to no value"):
        x[: Variable("n", 1, 2)].tolist()


def test_properties() -> None:
    x = Tensor.zeros(2, 3, dtype="float16")
    assert (x.ndim, x.numel(), x.element_size(), x.nbytes(), x.size(), x.size(-1)) == (2, 6, 2, 12, (2, 3), 3)
    assert x.is_floating_point() and not Tensor([1]).is_floating_point() and x.dtype is dtypes.float16
    assert hash(x) == hash(x) and x in [x] and {x: 1}[x] == 1
    with pytest.raises(IndexError, match="size: axis 2"):
        x.size(2)


CASTS: list[tuple[list[Any], str, str, list[Any]]] = [
    ([1.9, -1.9, 300.0], "float32", "int8", [1, -1, 127]),
    ([math.nan, math.inf, -math.inf], "float32", "int32", [0, 2**31 - 1, -(2**31)]),
    ([300, -1], "int32", "uint8", [44, 255]),
    ([0.0, 0.5, -2.0], "float32", "bool", [False, True, True]),
    ([True, False], "bool", "float32", [1.0, 0.0]),
    ([1 + 2**-12, 65520.0], "float32", "float16", [1.0, math.inf]),
    ([1.00390625], "float32", "bfloat16", [1.0]),
    ([2**24 + 1], "int32", "float32", [2.0**24]),
]


@pytest.mark.parametrize("case", CASTS)
def test_casts(case: tuple[list[Any], str, str, list[Any]], backend: str) -> None:
    values, source, target, want = case
    t = Tensor(values, dtype=source).contiguous().realize().cast(target)
    assert t.dtype.name == target and t.tolist() == want


def test_shorthands_of_casts() -> None:
    x = Tensor([1])
    for name in ("half", "float", "double", "bfloat16", "int", "long", "short", "bool"):
        assert getattr(x, name)().dtype is getattr(dtypes, name)
    with pytest.raises(TypeError, match="elements are scalars"):
        x.cast(dtypes.float32.vec(4))
    with pytest.raises(ValueError, match="int23"):
        x.cast("int23")
    with pytest.raises(TypeError, match="a dtype or its name"):
        x.cast(3)  # type: ignore[arg-type]


def test_bitcast(backend: str) -> None:
    x = Tensor([1.0, -2.0]).contiguous()
    assert x.bitcast("uint32").tolist() == [0x3F800000, 0xC0000000]
    assert (x + 1).bitcast("int32").bitcast("float32").tolist() == [2.0, -1.0]
    with pytest.raises(ValueError, match=r"float32 \(4 bytes\) of shape \(3,\) to int64 \(8 bytes\)"):
        Tensor([1.0, 2.0, 3.0]).bitcast("int64")


@pytest.mark.parametrize("name", ["int16", "float16", "uint32", "float32", "int64", "float64"])
def test_bitcast_to_another_size(name: str, backend: str) -> None:
    data = np.arange(48, dtype=np.uint8).reshape(2, 24)
    wide = data.view(name)
    assert Tensor(data).bitcast(name).numpy().tobytes() == wide.tobytes()
    assert Tensor(wide).bitcast("uint8").numpy().tolist() == data.tolist()
    assert Tensor(wide).bitcast("int16").numpy().tobytes() == data.tobytes()


def test_assign_keeps_the_memory(backend: str) -> None:
    x = Tensor([1.0, 2.0]).contiguous().realize()
    storage = x.lazydata.storage
    assert x.assign(x + 1) is x
    x.assign(x * 2)
    assert x.tolist() == [4.0, 6.0] and x.lazydata.storage is storage
    x.assign(5)
    assert x.tolist() == [5.0, 5.0] and x.lazydata.storage is storage
    x.assign([1.5, 2.5])
    assert x.tolist() == [1.5, 2.5]


def test_what_was_computed_keeps_the_old_elements(backend: str) -> None:
    x = Tensor([1.0, 2.0]).contiguous().realize()
    before, chain = x * 10, ((x + 1).exp() * 0 + x).sum()
    x.assign(x + 1)
    after = x * 10
    x.assign(x + 1).realize()
    assert after.tolist() == [20.0, 30.0] and before.tolist() == [10.0, 20.0] and chain.item() == 3.0
    assert x.tolist() == [3.0, 4.0]


def test_two_tensors_exchange_their_elements(backend: str) -> None:
    x, y = Tensor([1, 2]).contiguous().realize(), Tensor([3, 4]).contiguous().realize()
    old = x + 0
    x.assign(y)
    y.assign(old)
    x.realize(y)
    assert x.tolist() == [3, 4] and y.tolist() == [1, 2]


def test_assign_to_what_has_no_memory_yet(backend: str) -> None:
    x, y = Tensor.zeros(2), Tensor([1.0, 2.0]) * 2
    x.assign(Tensor([5.0, 6.0]))
    y.assign(y + 1)
    assert x.tolist() == [5.0, 6.0] and y.tolist() == [3.0, 5.0]
    storage = x.lazydata.storage
    x.assign(x + 1).realize()
    assert x.lazydata.storage is storage


def test_equal_graphs_do_not_share_what_is_assigned(backend: str) -> None:
    x, y = Tensor.ones(2) + 1, Tensor.ones(2) + 1
    x.realize(y)
    x.assign(x * 5).realize()
    assert x.tolist() == [10.0, 10.0] and y.tolist() == [2.0, 2.0]


def test_assign_refuses_what_does_not_fit() -> None:
    x = Tensor([1, 2])
    for value, kind, message in (
        (Tensor([1, 2, 3]), ValueError, r"shape \(3,\) into a tensor of shape \(2,\)"),
        (Tensor([[1, 2]]), ValueError, r"shape \(1, 2\) into a tensor of shape \(2,\)"),
        (Tensor([1, 2], device="NULL"), ValueError, "NULL into a tensor on NUMPY"),
    ):
        with pytest.raises(kind, match=message):
            x.assign(value)
    y = Tensor([1.0])
    with pytest.raises(RuntimeError, match="detach"):
        y.assign(Tensor([1.0], requires_grad=True) * 2)
    assert x.assign(Tensor([1, 2], dtype="int8")).tolist() == [1, 2]
    assert x.assign(Tensor([1.5, -2.5])).tolist() == [1, -2] and x.assign(3.5).tolist() == [3, 3]
    with pytest.raises(ValueError, match="replace"):
        x.replace(Tensor([1]))
    with pytest.raises(TypeError, match="replace"):
        x.replace(Tensor([1.0, 2.0]))
    assert x.replace(Tensor([8, 9])) is x and x.tolist() == [8, 9]


def test_other_devices() -> None:
    x = Tensor([1.0, 2.0])
    y = (x + 1).to("NUMPY:1")
    assert y.device == "NUMPY:1" and (y * 2).tolist() == [4.0, 6.0] and x.to("numpy:0") is x
    assert y.to(None).device == "NUMPY"
    x.grad = Tensor([3.0, 4.0])
    assert x.to_("NUMPY:1") is x and x.device == x.grad.device == "NUMPY:1" and x.grad.tolist() == [3.0, 4.0]
    here = Tensor([1.0], device="NUMPY")
    with pytest.raises(ValueError, match="add: operands on NUMPY and NUMPY:1"):
        here + y
    with pytest.raises(ValueError, match="cat: tensors on"):
        here.cat(y)


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(RuntimeError, match="there is no device NOWHERE"):
        Tensor([1], device="NOWHERE")
    with pytest.raises(ValueError, match="not a device name"):
        Tensor([1], device="")


def test_too_much_memory_is_named() -> None:
    with pytest.raises(MemoryError, match="asked"):
        Tensor.empty(2**60).realize()
    with pytest.raises(ValueError, match="negative"):
        Tensor.empty(-1)


def test_a_failure_in_the_middle_can_be_repeated() -> None:
    calls = []

    def fill(out: Any, source: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("the first time it fails")
        out.copyin(source.as_buffer())

    x = Tensor([1.0, 2.0]).contiguous()
    y = Tensor(LazyBuffer.custom(fill, [(x + 1).lazydata], (2,), dtypes.float32, "NUMPY"))
    z = (y * 2).sum()
    with pytest.raises(OSError, match="the first time"):
        z.realize()
    assert not z.is_realized and z.item() == 10.0 and len(calls) == 2


def test_two_threads_realise_at_once(backend: str) -> None:
    x = Tensor(np.arange(100, dtype=np.float32))
    shared = (x * 2).contiguous()
    results: dict[int, list[float]] = {}
    failures: list[BaseException] = []

    def work(which: int) -> None:
        try:
            for i in range(10):
                mine = (shared + which).sum()
                results.setdefault(which, []).append(float(mine) + i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert results == {which: [9900.0 + 100 * which + i for i in range(10)] for which in range(4)}


def test_a_softmax_reads_its_input_once() -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)).realize()
    assert kernels(x.softmax().realize) <= 3


READ: dict[str, Any] = {
    "elementwise": lambda x: x + 1, "softmax": lambda x: x.softmax(1), "linear": lambda x: (x @ x.T).relu(),
    "positions": lambda x: x.cummax(1)[1], "running sum": lambda x: x.cumsum(1), "transposed": lambda x: (x + 1).T,
    "reversed": lambda x: (x * 2).flip(1), "repeated": lambda x: x.exp().repeat(2, 1),
    "padded": lambda x: (x + 1).pad((1, 0)),
    "most of it": lambda x: (x * 2)[:, 1:], "joined": lambda x: x.cat(x + 1), "drawn": lambda x: x.rand_like(),
    "converted": lambda x: x.cast("float64").log(), "sorted": lambda x: x.sort(1)[0], "rows": lambda x: (x + 1)[[1, 0]],
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_was_read_is_not_computed_again(name: str) -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(3, 301)).astype(np.float32)).realize()
    y = READ[name](x)
    first = y.numpy()
    for read in (y.numpy, y.tolist, lambda: bytes(y.data())):
        before = GlobalCounters.kernel_count, GlobalCounters.global_ops
        read()
        copied = GlobalCounters.kernel_count - before[0]  # of a view: its elements are put in a row
        assert copied <= (0 if y.lazydata.st.contiguous else 1) and GlobalCounters.global_ops == before[1]
    np.testing.assert_array_equal(y.numpy(), first)


def test_a_small_part_that_is_read_does_not_compute_the_whole() -> None:
    x = Tensor(np.arange(1000.0, dtype=np.float32)).realize()
    y = (x * 2)[:3]
    before = GlobalCounters.global_ops
    assert y.tolist() == [0.0, 2.0, 4.0]
    assert GlobalCounters.global_ops - before < 100


def test_what_was_read_still_has_a_gradient() -> None:
    w = Tensor([2.0, 3.0], requires_grad=True)
    y = (w * w).flip(0)
    assert y.tolist() == [9.0, 4.0]
    y.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [4.0, 6.0]
    z = w.detach() * 2
    view = z.reshape(2, 1)
    assert view.tolist() == [[4.0], [6.0]]
    z.assign(Tensor([1.0, 7.0]))
    assert view.tolist() == [[1.0], [7.0]]
