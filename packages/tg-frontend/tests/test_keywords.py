"""Every public method and layer: other spellings of its arguments, wrong names and wrong types."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tg_frontend import Tensor, nn
from tg_frontend.keywords import other_names, public
from tg_frontend.spellings import SPELLINGS

ALSO = other_names(Tensor)
METHODS = sorted(
    name for name in dir(Tensor)
    if not name.startswith("_") and callable(getattr(Tensor, name)) and name != "training" and name not in ALSO
)  # fmt: skip
ANY_ARGUMENTS = (nn.Identity, nn.ModuleDict, nn.ModuleList)  # the last two are a dict and a list
LAYERS = [kind for kind in vars(nn).values() if inspect.isclass(kind) and kind not in ANY_ARGUMENTS]
OPTIMIZERS = [nn.optim.SGD, nn.optim.Adam, nn.optim.AdamW]


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.name != "self"]


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_keyword_is_answered_with_the_public_name(name: str) -> None:
    method = getattr(Tensor([[1.0, 2.0], [3.0, 4.0]]), name)
    if any(p.kind is p.VAR_KEYWORD for p in parameters(method)):
        assert name == "rearrange"  # whose keywords are names of axes
        return
    with pytest.raises(TypeError, match=rf"^Tensor\.{name}\(\) got an unexpected keyword 'zzz'; it takes "):
        method(zzz=1)


@pytest.mark.parametrize("name", METHODS)
def test_a_misspelt_keyword_is_answered_with_the_right_one(name: str) -> None:
    method = getattr(Tensor([[1.0, 2.0], [3.0, 4.0]]), name)
    known = [p.name for p in parameters(method) if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for wanted in known:
        if len(wanted) < 4 or name == "rearrange":
            continue
        with pytest.raises(TypeError, match=rf"^Tensor\.{name}\(\) got .* did you mean '{wanted}'"):
            method(**{wanted[:-1] + "_" + wanted[-1]: 1})


@pytest.mark.parametrize("name", METHODS)
def test_every_other_spelling_reaches_its_argument(name: str) -> None:
    function = inspect.unwrap(getattr(Tensor, name))
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    for wanted in names:
        for other in SPELLINGS.get(wanted, ()):
            if other in names or next(n for n in names if other in SPELLINGS.get(n, ())) != wanted:
                continue
            seen: dict[str, Any] = {}
            spec = ", ".join(f"{n}=None" for n in names)
            scope: dict[str, Any] = {"seen": seen}
            exec(f"class Probe:\n def {name}(self, {spec}): seen.update({wanted}={wanted})", scope)
            getattr(public(scope["Probe"], "Tensor")(), name)(**{other: 17})
            assert seen == {wanted: 17}, (wanted, other)


@pytest.mark.parametrize("kind", [*LAYERS, *OPTIMIZERS])
def test_layers_and_optimizers_name_themselves(kind: type) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\) got an unexpected keyword 'zzz'; it takes "):
        kind(zzz=1)


class Odd:
    """Nothing that a tensor could use."""


@pytest.mark.parametrize("name", METHODS)
def test_what_has_no_meaning_is_refused_in_the_methods_name(name: str) -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    method = getattr(x.detach().requires_grad_().sum() if name == "backward" else x, name)
    needed = [p.name for p in parameters(method) if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    for parameter in parameters(method):
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        odd = {name: Odd() for name in needed}
        args = (Odd(),) if parameter.kind is parameter.VAR_POSITIONAL else ()
        if not args:
            odd[parameter.name] = Odd()
        if str(parameter.annotation) in ("bool", "bool | None") and parameter.name != "requires_grad" and not needed:
            continue  # Python's own notion of truth
        with pytest.raises((TypeError, ValueError), match=rf"^Tensor\.{name}(: |\(\))"):
            method(*args, **odd)


def test_no_bare_index_error_of_a_tensor_without_axes() -> None:
    x = Tensor(3.0)
    for call in (lambda: x.split(1), lambda: x.chunk(1), lambda: x.unflatten(0, (1,)), lambda: x.size(0)):
        with pytest.raises((ValueError, IndexError), match=r"^Tensor\.\w+: a tensor of shape \(\) has no ax"):
            call()


def test_an_argument_that_is_missing_beside_others_by_name() -> None:
    with pytest.raises(TypeError, match=r"^Conv3d\(\) missing 1 required positional argument: .kernel_size."):
        nn.Conv3d(2, 3, padding=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Tensor\.addcmul\(\) missing 1 required positional argument"):
        Tensor([1.0]).addcmul(Tensor([1.0]), value=2)  # type: ignore[call-arg]


def test_operators_name_the_method_that_they_stand_for() -> None:
    x = Tensor([[1.0, 2.0]])
    wrong: list[Callable[[], Any]] = [
        lambda: x @ x, lambda: Tensor(3.0) @ x, lambda: x + Tensor([1.0, 2.0, 3.0]), lambda: x * Tensor.ones(3, 3),
    ]  # fmt: skip
    for call in wrong:
        with pytest.raises(RuntimeError, match=r"^Tensor\.(matmul|add|mul): ") as caught:
            call()
        assert isinstance(caught.value, ValueError)


def test_one_argument_under_two_names_is_told() -> None:
    with pytest.raises(TypeError, match=r"^Tensor\.sum\(\) got 'axis' twice: 'dim' is another name for it"):
        Tensor([1.0]).sum(0, dim=0)  # type: ignore[call-arg]


def test_positional_arguments_of_any_number_take_no_name() -> None:
    x = Tensor([[1.0]])
    assert Tensor.cat(x, x, x, axis=1).shape == (1, 3)  # type: ignore[call-arg]


def test_the_method_that_was_called_is_named_not_the_one_inside() -> None:
    with pytest.raises(IndexError, match=r"^Tensor\.softmin: softmax: axis 9 is out of range"):
        Tensor([1.0]).softmin(9)
    with pytest.raises(ValueError, match=r"^Tensor\.add: the shapes \(2,\) and \(3,\) do not broadcast"):
        Tensor([1.0, 2.0]).add(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match=r"^Tensor\.gather\(\) missing 1 required positional argument: 'index'"):
        Tensor([1.0]).gather(0)  # type: ignore[call-arg]


def test_errors_of_the_users_own_functions_are_left_alone() -> None:
    def own(x: Tensor) -> Tensor:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine$"):
        Tensor([1.0]).sequential([own])


def test_an_error_is_the_same_object_with_its_cause() -> None:
    with pytest.raises(TypeError, match=r"^Tensor\.linear: weight is a tensor, got 3 of type int") as caught:
        Tensor([1.0]).linear(3)  # type: ignore[arg-type]
    assert isinstance(caught.value.__cause__, AttributeError)


def test_signatures_and_docstrings_stay() -> None:
    assert str(inspect.signature(Tensor.mean)).startswith("(x: 'B', axis")
    assert "mean" in str(Tensor.mean.__doc__)
    assert Tensor.mean.__qualname__ == "Tensor.mean"


def test_two_spellings_of_one_argument() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    given = {"sum": ({"dim": 0, "axes": 1}, {"axis": 0, "dim": 1}), "clip": ({"a_min": 0, "min": 1},)}
    for name, keywords in ((name, keywords) for name, each in given.items() for keywords in each):
        with pytest.raises(TypeError, match=rf"Tensor.{name}\(\) got '.*' twice: '.*' is another name for it"):
            getattr(x, name)(**keywords)


@pytest.mark.parametrize("name", ["add", "bitwise_left_shift", "maximum", "lshift"])
def test_methods_called_with_numbers_alone_are_named_as_the_tensors(name: str) -> None:
    with pytest.raises(TypeError, match=r"^Tensor\.\w+: arguments of another kind"):
        getattr(Tensor, name)(2, 3)


INTEGERS: dict[str, Callable[[Any], Any]] = {
    "ones": lambda n: Tensor.ones(n),
    "zeros": lambda n: Tensor.zeros(n, 2),
    "full": lambda n: Tensor.full((2, n), 7),
    "arange": lambda n: Tensor.arange(n),
    "linspace": lambda n: Tensor.linspace(0, 1, n),
    "eye": lambda n: Tensor.eye(n),
    "reshape": lambda n: Tensor.arange(60).reshape(n, -1),
    "expand": lambda n: Tensor([[1, 2]]).expand(n, 2),
    "repeat": lambda n: Tensor([1, 2]).repeat(n),
    "permute": lambda n: Tensor.arange(60).reshape(n, 60 // n).permute(n - n + 1, n - n),
    "sum": lambda n: Tensor.arange(60).reshape(n, 60 // n).sum(n - n + 1),
    "sum of axes": lambda n: Tensor.arange(60).reshape(n, 60 // n).sum((n - n, n - n + 1)),
    "topk": lambda n: Tensor([5, 2, 9, 4, 7, 1]).topk(n).values,
    "chunk": lambda n: Tensor.arange(12).chunk(n)[1],
    "split": lambda n: Tensor.arange(12).split([n, 12 - n])[1],
    "roll": lambda n: Tensor.arange(7).roll(n),
    "narrow": lambda n: Tensor.arange(7).narrow(n - n, 1, n),
    "pad": lambda n: Tensor([1, 2]).pad((n, n - 1)),
    "tril": lambda n: Tensor.ones(5, 5).tril(n),
    "cumsum": lambda n: Tensor([[1, 2], [3, 4]]).cumsum(n - n + 1),
    "unsqueeze": lambda n: Tensor([1, 2]).unsqueeze(n - n),
    "function": lambda n: nn.functional.pad(Tensor([1, 2]), (n - 1, n)),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_a_tensor_of_one_integer_is_one(name: str) -> None:
    """Sizes, axes, counts and bounds: what PyTorch reads from such a tensor."""
    of = INTEGERS[name]
    for n in (2, 3, 5):
        wanted = of(n)
        for dtype in ("int32", "int64", "uint8"):
            found = of(Tensor(n, dtype=dtype))
            assert found.dtype is wanted.dtype and found.tolist() == wanted.tolist()


@pytest.mark.parametrize("wrong", [2.0, True, [2], [2, 3]])
def test_other_tensors_are_no_integers(wrong: Any) -> None:
    size: Any = Tensor(wrong)
    for call in (lambda: Tensor.ones(size), lambda: Tensor([1, 2, 3]).topk(size)):
        with pytest.raises(TypeError, match=r"^Tensor\.(ones|topk): .*integers?"):
            call()


WRONG: dict[str, Callable[[Any], Any]] = {
    "an axis": lambda n: Tensor.ones(2, 3).sum(n),
    "of several": lambda n: Tensor.ones(2, 3).cat(Tensor.ones(2, 3), dim=n),
    "a size": lambda n: Tensor.ones(2, 3).reshape(n),
    "a count": lambda n: Tensor([1, 2, 3]).topk(n),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_tensor_of_a_wrong_integer_is_told_as_that_integer_is(name: str) -> None:
    with pytest.raises((ValueError, IndexError)) as of_integer:
        WRONG[name](7)
    with pytest.raises((ValueError, IndexError)) as of_tensor:
        WRONG[name](Tensor(7))
    assert (of_tensor.type, str(of_tensor.value)) == (of_integer.type, str(of_integer.value))


def test_what_a_tensor_of_an_integer_is_wrong_for_keeps_its_error() -> None:
    x, one = Tensor([[1.0, 2.0]]), Tensor(1)
    calls: list[Callable[[], Any]] = [lambda: Tensor.cat(x, one), lambda: x.stack(one), lambda: x.matmul(one)]
    for call in calls:
        with pytest.raises(ValueError, match=r"shapes .*\(\)"):
            call()
