"""PyTorch's order of arguments, for functions whose own is another."""

from __future__ import annotations

from functools import update_wrapper
from inspect import Parameter, Signature, signature

from tg_lazy.graph.origin import WRAPPERS

from ...array import writing
from ...domains import BOTH
from ...keywords import check_truth, checked
from ...spellings import reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any, TypeVar

    F = TypeVar("F")

_REDUCED = "size_average reduce reduction"
ORDERS = {
    **dict.fromkeys("alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout".split(),
                    "input p training inplace"),
    **dict.fromkeys("hardsigmoid hardswish mish relu relu6 selu silu".split(), "input inplace"),
    **dict.fromkeys("celu elu".split(), "input alpha inplace"),
    "hardtanh": "input min_val max_val inplace",
    "leaky_relu": "input negative_slope inplace",
    "rrelu": "input lower upper training inplace",
    "threshold": "input threshold value inplace",
    **dict.fromkeys("multilabel_margin_loss soft_margin_loss".split(), f"input target {_REDUCED}"),
    **dict.fromkeys("l1_loss mse_loss".split(), f"input target {_REDUCED} weight"),
    **dict.fromkeys("binary_cross_entropy multilabel_soft_margin_loss".split(), f"input target weight {_REDUCED}"),
    **dict.fromkeys("cosine_embedding_loss margin_ranking_loss".split(), f"input1 input2 target margin {_REDUCED}"),
    "binary_cross_entropy_with_logits": f"input target weight {_REDUCED} pos_weight",
    "cross_entropy": "input target weight size_average ignore_index reduce reduction label_smoothing",
    "hinge_embedding_loss": f"input target margin {_REDUCED}",
    "kl_div": f"input target {_REDUCED} log_target",
    "multi_margin_loss": f"input target p margin weight {_REDUCED}",
    "nll_loss": "input target weight size_average ignore_index reduce reduction",
    "poisson_nll_loss": "input target log_input full size_average eps reduce reduction",
    "smooth_l1_loss": f"input target {_REDUCED} beta",
    "triplet_margin_loss": f"anchor positive negative margin p eps swap {_REDUCED}",
}  # fmt: skip
"""The arguments by the names of functions, where PyTorch has more of them or another order."""

ADDED = {"inplace": False, "size_average": None, "reduce": None}
"""Arguments of PyTorch's that functions have none of, with their defaults: ``inplace`` writes the result to the input;
``size_average`` and ``reduce`` are older words for a ``reduction``."""


def extras(given: dict[str, Any], names: Collection[str], label: str) -> bool:
    """Takes PyTorch's arguments that methods have none of out of others; the older words become a ``reduction``.

    Args:
      given: arguments by name; changed.
      names: those that are taken.
      label: what is called in messages.

    Returns:
      Whether the result is to be written to the input.

    Raises:
      TypeError: if one is neither True nor False.

    Example:
      >>> given = {"reduce": False, "inplace": True}
      >>> extras(given, ("inplace", "reduce"), "mse_loss"), given
      (True, {'reduction': 'none'})
    """
    found = {name: given.pop(name, default) for name, default in ADDED.items() if name in names}
    for name, value in found.items():
        if value is not None or ADDED[name] is not None:
            check_truth(value, name, label)
    older = found.get("size_average"), found.get("reduce")
    if any(one is not None for one in older):
        given["reduction"] = older_reduction(*older)
    return bool(found.get("inplace"))


def older_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """The ``reduction`` that PyTorch's older words stand for.

    Example:
      >>> older_reduction(None, False), older_reduction(False, None), older_reduction(True, None)
      ('none', 'sum', 'mean')
    """
    if reduce is not None and not reduce:
        return "none"
    return "sum" if size_average is not None and not size_average else "mean"


def in_order(function: F, order: str) -> F:
    """A function that takes its arguments in another order.

    Args:
      function: its own arguments have names that ``order`` has, or that are spellings of them.
      order: names of the arguments, with a space between.

    Example:
      >>> from tg_frontend import Tensor
      >>> in_order(Tensor.elu, "input alpha inplace")(Tensor([-1.0, 2.0]), 0.5).round(4)
      Tensor([-0.3161,  2.    ])
    """
    own: Any = function
    name, names = own.__name__, order.split()
    inner = checked(own, "functional", False, "both" if name in BOTH and ".nn." not in own.__module__ else "real")
    known = {one.name: one.default for one in signature(own).parameters.values()}

    def arranged(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names):
            raise TypeError(f"functional.{name}() takes {len(names)} arguments without a name at most")
        given = dict(zip(names[1:], args[1:], strict=False))
        if twice := [key for key in given if key in kwargs]:
            raise TypeError(f"functional.{name}() got {twice[0]!r} twice")
        given.update(kwargs)
        if not extras(given, names, f"functional.{name}"):
            return inner(*args[:1], **given)
        x = args[0] if args else given.pop(names[0])
        kept, _ = writing.kept_for(x, None, always=True)
        return writing.in_place(x, inner(kept, **given), f"functional.{name}")

    WRAPPERS.add(arranged.__code__)
    update_wrapper(arranged, own)
    places = []
    for key in names:
        default = ADDED[key] if key in ADDED else known[str(reached(key, list(known)))]
        places.append(Parameter(key, Parameter.POSITIONAL_OR_KEYWORD, default=default))
    vars(arranged)["__signature__"] = Signature(places)
    return arranged  # type: ignore[return-value]


def arrange(module: dict[str, Any]) -> None:
    """Gives the functions of a module PyTorch's order, where it is another."""
    for name, order in ORDERS.items():
        module[name] = in_order(module[name], order)
