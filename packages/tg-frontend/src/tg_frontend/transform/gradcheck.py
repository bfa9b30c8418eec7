"""Gradients beside differences of values, by the names of ``torch.autograd``."""

from __future__ import annotations

from warnings import warn

from ..autograd.differentiation import MODE, Switch
from ..keywords import offered
from ..tensor import Tensor
from .derivatives import moved_along
from .outputs import grad
from .tracing import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Derivatives: TypeAlias = dict[tuple[int, int], list[list[float]]]

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Gradients that are not what differences of values say.

    Example:
      >>> from tg_frontend.transform.gradcheck import GradcheckError
      >>> issubclass(GradcheckError, RuntimeError)
      True
    """


def gradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False,
) -> bool:  # fmt: skip
    """Whether gradients of a function are those that differences of its values say, within tolerances.

    Each element of each input that does not refuse a gradient is moved by ``eps`` both ways; those of complex inputs
    along both axes. Use float64: in float32 the differences are rounding.

    Args:
      func: takes the inputs, and returns a tensor or a tuple of tensors; those of floats or complex numbers count.
      inputs: a tensor, or a sequence of arguments.
      eps: how far an element is moved.
      atol: by how much derivatives may differ.
      rtol: by how much more, as a fraction of the difference of values.
      raise_exception: whether wrong gradients are an error; if not, they give False.
      nondet_tol: by how much gradients may differ when they are taken twice.
      check_undefined_grad: of no effect: gradients that are not there are zeros to every function.
      check_grad_dtypes: of no effect: a gradient has the dtype of what it is at.
      check_batched_grad: whether the gradients of all elements of a result at once (``is_grads_batched`` of
        :func:`tg_frontend.transform.outputs.grad`) are compared, too.
      check_forward_ad: whether the derivatives along each element of the inputs (``jvp``) are compared, too.
      check_backward_ad: whether the gradients are.
      fast_mode: of no effect: every derivative is compared.

    Raises:
      GradcheckError: if gradients are wrong.
      TypeError: if the function returns no tensor of floats or complex numbers.
      ValueError: if no input may have a gradient, or nothing is to be compared.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.gradcheck import gradcheck
      >>> gradcheck(lambda x: x.exp() * x, Tensor([0.5, -1.0], dtype="float64", requires_grad=True))
      True
    """
    if not (check_backward_ad or check_forward_ad):
        raise ValueError("gradcheck: check_backward_ad and check_forward_ad are False: nothing is compared")
    if check_batched_grad and not check_backward_ad:
        raise ValueError("gradcheck: check_batched_grad is about gradients, and check_backward_ad is False")
    args = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    places = [place for place, arg in enumerate(args) if _looked_at(arg)]
    if not places:
        raise ValueError("no input is a tensor of floats or complex numbers that may require a gradient")
    for place in places:
        if args[place]._floats()[0].dtype.name != "float64":
            warn(
                f"autograd.gradcheck: input {place} is of {args[place].dtype.name}: differences of values are rounding "
                "there; take float64 or complex128", UserWarning, stacklevel=3,
            )  # fmt: skip
    ways: list[tuple[str, Callable[..., Derivatives]]] = [("by gradients", _by_gradients)] if check_backward_ad else []
    if check_batched_grad:
        ways.append(("by gradients of a batch", _by_batches))
    if check_forward_ad:
        ways.append(("along that element", _along))
    message = _difference(func, args, places, (eps, atol, rtol, nondet_tol), ways)
    if message and raise_exception:
        raise GradcheckError(message)
    return not message


def _looked_at(arg: object) -> bool:
    """Whether an argument is a tensor of floats or complex numbers that does not refuse a gradient."""
    return isinstance(arg, Tensor) and arg._wish is not False and arg.dtype.kind in ("float", "complex")


def _difference(
    func: Callable[..., Any], args: list[Any], places: list[int], tolerances: tuple[float, float, float, float],
    ways: list[tuple[str, Callable[..., Derivatives]]],
) -> str:  # fmt: skip
    """What is wrong with derivatives that are computed in some ways, in words."""
    eps, atol, rtol, twice = tolerances
    moved = _by_differences(func, args, places, eps)
    for how, way in ways:
        found, again = way(func, args, places), way(func, args, places)
        for key, wanted in moved.items():
            place, result = key
            at = f"{name_of(func)}: the derivative of element {{}} of result {result} by element {{}} of input {place}"
            for row, line in enumerate(wanted):
                for column, value in enumerate(line):
                    here, other = found[key][column][row], again[key][column][row]
                    if not abs(here - value) <= atol + rtol * abs(value) and here != value:
                        return f"{at.format(column, row)} is {here} {how}, {value} by differences"
                    if not abs(here - other) <= twice and here == here:
                        return f"{at.format(column, row)} is {here}, and {other} when it is taken again"
    return ""


def _results(func: Callable[..., Any], args: Sequence[Any]) -> list[Tensor]:
    """What counts of the results, as tensors of floats: the real parts and the imaginary parts of complex ones."""
    result = func(*args)
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    parts = [
        part for one in found if isinstance(one, Tensor) and one.dtype.kind in ("float", "complex")
        for part in one._floats()
    ]  # fmt: skip
    if not parts:
        got = type(result).__name__
        raise TypeError(f"{name_of(func)} returns no tensor of floats or complex numbers, but a {got}")
    return parts


def _numbers(tensor: Tensor) -> list[float]:
    return tensor.detach().flatten().tolist()  # type: ignore[no-any-return]


def _opened(args: Sequence[Any], places: Sequence[int], what: Callable[[int, Tensor], Tensor]) -> list[Any]:
    """The arguments, others in the place of those that are looked at."""
    return [what(place, arg) if place in places else arg for place, arg in enumerate(args)]


def _by_gradients(func: Callable[..., Any], args: list[Any], places: list[int]) -> Derivatives:
    """For each input and each result, the row of derivatives of each element of the result."""
    with Switch(MODE, "recording", True):
        opened = _opened(args, places, lambda _, arg: arg.detach().requires_grad_())
        results = _results(func, opened)
    targets = [opened[place] for place in places]
    found: Derivatives = {}
    for number, result in enumerate(results):
        for place in places:
            found[place, number] = []
        count = _count(func, result)
        for element in range(count):
            if result._wish is False:
                slopes: tuple[Any, ...] = tuple(Tensor.zeros_like(target).detach() for target in targets)
            else:
                unit = [float(n == element) for n in range(count)]
                weight = Tensor(unit, dtype=result.dtype, device=result.device).reshape(*result.shape)
                slopes = grad(result, targets, weight, retain_graph=True, materialize_grads=True)
            for place, slope in zip(places, slopes, strict=True):
                found[place, number].append([value for part in slope._floats() for value in _numbers(part)])
    return found


def _count(func: Callable[..., Any], result: Tensor) -> int:
    """How many elements a result has."""
    count = result.numel()
    if not isinstance(count, int):
        raise ValueError(f"{name_of(func)} returns a symbolic size, in shape {result.shape}")
    return count


def _by_batches(func: Callable[..., Any], args: list[Any], places: list[int]) -> Derivatives:
    """As :func:`_by_gradients`, the gradients of all elements of a result at once."""
    with Switch(MODE, "recording", True):
        opened = _opened(args, places, lambda _, arg: arg.detach().requires_grad_())
        results = _results(func, opened)
    targets = [opened[place] for place in places]
    found: Derivatives = {}
    for number, result in enumerate(results):
        count = _count(func, result)
        units = Tensor.eye(count, dtype=result.dtype, device=result.device).reshape(count, *result.shape)
        slopes: tuple[Any, ...] = tuple(Tensor.zeros(count, *target.shape, dtype=target.dtype) for target in targets)
        if result._wish is not False:
            slopes = grad(result, targets, units, True, is_grads_batched=True, materialize_grads=True)
        for place, slope in zip(places, slopes, strict=True):
            rows = [part.detach().reshape(count, -1).tolist() if part.numel() else [[]] * count
                    for part in slope._floats()]  # fmt: skip
            found[place, number] = [[value for part in rows for value in part[row]] for row in range(count)]
    return found


def _along(func: Callable[..., Any], args: list[Any], places: list[int]) -> Derivatives:
    """As :func:`_by_gradients`, by how fast results change along each element of the inputs."""

    def moving(*own: Any) -> tuple[Tensor, ...]:
        there = dict(zip(places, own, strict=True))
        return tuple(_results(func, _opened(args, places, lambda place, _: there[place])))

    starts = [args[place].detach() for place in places]
    found: Derivatives = {}
    for place, start in zip(places, starts, strict=True):
        parts = start._floats()
        for number, part in enumerate(parts):
            for element in range(_count(func, part)):
                unit = [float(n == element) for n in range(_count(func, part))]
                moved = [Tensor.zeros_like(one) for one in parts]
                moved[number] = Tensor(unit, dtype=part.dtype, device=part.device).reshape(*part.shape)
                way = [start._of_floats(moved) if one is start else Tensor.zeros_like(one) for one in starts]
                for result, speed in enumerate(moved_along(moving, starts, way, "gradcheck")[1]):
                    values = _numbers(speed)
                    rows = found.setdefault((place, result), [[] for _ in values])
                    for row, value in zip(rows, values, strict=True):
                        row.append(value)
    return found


def _by_differences(func: Callable[..., Any], args: list[Any], places: list[int], eps: float) -> Derivatives:
    """For each input and each result, the column of derivatives by each element of the input."""
    found: Derivatives = {}
    for place in places:
        parts = args[place]._floats()
        values = [_numbers(part) for part in parts]
        for number, row in enumerate(values):
            for element in range(len(row)):
                ends = []
                for way in (eps, -eps):
                    new = [list(one) for one in values]
                    new[number][element] += way
                    made = [
                        Tensor(one, dtype=part.dtype, device=part.device).reshape(*part.shape)
                        for one, part in zip(new, parts, strict=True)
                    ]  # fmt: skip
                    there = args[place]._of_floats(made)
                    still = _opened(args, places, lambda at, arg, place=place, there=there: (
                        there if at == place else arg.detach()).requires_grad_())  # type: ignore[misc]  # fmt: skip
                    with Switch(MODE, "recording", True):  # the function may take gradients
                        ends.append([_numbers(one) for one in _results(func, still)])
                for result, (up, down) in enumerate(zip(*ends, strict=True)):
                    slopes = [(a - b) / (2 * eps) for a, b in zip(up, down, strict=True)]
                    found.setdefault((place, result), []).append(slopes)
    return found


def gradgradcheck(
    func: Callable[..., Any], inputs: Tensor | Sequence[Any], grad_outputs: Tensor | Sequence[Tensor] | None = None, *,
    eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False,
) -> bool:  # fmt: skip
    """Whether gradients of gradients are what differences of gradients say: :func:`gradcheck` of these.

    Args:
      func: takes the inputs, and returns a tensor or a tuple of tensors; those of floats or complex numbers count.
      inputs: a tensor, or a sequence of arguments.
      grad_outputs: weights of the results that count, at which gradients are differentiated, too; drawn at random if
        None.
      eps: how far an element is moved.
      atol: by how much derivatives may differ.
      rtol: by how much more, as a fraction of the difference of gradients.
      raise_exception: whether wrong gradients are an error; if not, they give False.
      nondet_tol: by how much gradients may differ when they are taken twice.
      check_undefined_grad: as for :func:`gradcheck`; and so are ``check_grad_dtypes``, ``check_batched_grad`` and
        ``fast_mode``.
      check_fwd_over_rev: ``check_forward_ad`` of the gradients.
      check_rev_over_rev: ``check_backward_ad`` of the gradients.

    Raises:
      GradcheckError: if gradients of gradients are wrong.
      TypeError: if the function returns no tensor of floats or complex numbers.
      ValueError: if no input may have a gradient, or weights do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.gradcheck import gradgradcheck
      >>> gradgradcheck(lambda x: x.exp() * x, Tensor([0.5, -1.0], dtype="float64", requires_grad=True))
      True
    """
    args = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if grad_outputs is None:
        weights = [Tensor.randn(*one.shape, dtype=one.dtype, device=one.device) for one in _results(func, args)]
        weights = [weight.detach().realize() for weight in weights]
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
        weights = [part.detach() for one in given for part in one._floats()]

    def gradients(*every: Any) -> Any:
        own = every[: len(args)]
        targets = [one for one in own if _looked_at(one)]
        results = _results(func, own)
        pairs = [(one, weight) for one, weight in zip(results, every[len(args):], strict=True)
                 if one._wish is not False]  # fmt: skip
        roots, given = [one for one, _ in pairs], [weight for _, weight in pairs]
        return grad(roots, targets, given, create_graph=True, materialize_grads=True)

    return gradcheck(
        gradients, [*args, *weights], eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )  # fmt: skip


offered(globals(), ("gradcheck", "gradgradcheck"), "autograd", dict.fromkeys(("gradcheck", "gradgradcheck"), "any"))
