"""Spellings of arguments: what other libraries call them, and what they take that means nothing here."""

from __future__ import annotations

from types import NoneType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_AXES = ("axis", "dim", "axes", "dims")
SPELLINGS: dict[str, tuple[str, ...]] = {
    "axis": _AXES,
    "dim": (*_AXES, "normalized_shape", "dimension", "choicelist"),
    "dims": _AXES,
    **{f"dim{number}": (f"axis{number}",) for number in range(3)},
    "keepdim": ("keepdims",),
    "in_axes": ("in_dims",), "out_axes": ("out_dims",),  # fmt: skip
    "min_": ("min", "a_min"),
    "max_": ("max", "a_max"),
    "correction": ("ddof",),
    "sorted_": ("sorted",),
    "x": ("other", "exponent", "input", "input1", "x1", "A", "anchor", "query", "logits"),
    "w": ("other", "x", "mat2", "tensor", "b"),
    "y": ("other",),
    "other": ("input2", "x2", "vec2", "b", "a2"),
    "a": ("input", "A"),
    "b": ("B", "other", "ar2", "a2"),
    "factors": ("LU",),
    "low": ("from_",),
    "high": ("to",),
    "rate": ("lambd",),
    "function": ("hook",),
    "lr": ("defaults",),
    "Y": ("target", "y"),
    "neg_slope": ("negative_slope",),
    "sizes": ("unflattened_size", "split_size", "split_size_or_sections", "split_sizes", "indices_or_sections"),
    "padding": ("pad", "pad_width"),
    "shape": ("size",),
    "size": ("output_size",),
    "fill_value": ("value",),
    "shifts": ("shift",),
    "src": ("source", "value"),
    "formula": ("equation", "pattern", "subscripts"),
    "diagonal": ("k", "offset"),
    "offset": ("diagonal", "k"),
    "indices": ("index", "sections", "indices_or_sections", "tensor_indices_or_sections"),
    "index": ("indices", "ind", "default"),
    "weight": ("weights",),
    "values": ("v",),
    "source": ("v",),
    "row": ("n",),
    "col": ("m",),
    "steps": ("num",),
    "n": ("N",),
    "m": ("M",),
    "stop": ("end",),
    "repeats": ("dims", "sizes"),
    "sz": ("num_features",), "vocab_size": ("num_embeddings",), "embed_size": ("embedding_dim",),  # fmt: skip
    "affine": ("elementwise_affine",),
    "elementwise_affine": ("affine",),
    "data": ("object",),
    "interpolation": ("method",),
}
"""What other libraries call an argument, by what it is called here."""

CONVERTED: dict[str, tuple[tuple[str, ...], Callable[[Any], Sequence[Any]]]] = {
    "unbiased": (("correction",), lambda value: (int(value),)),
}
"""Spellings whose value is written in another way here."""

HARMLESS: dict[str, tuple[object, ...]] = {
    "out": (None,),
    "sparse_grad": (False, True),
    "inplace": (False,),
    "pin_memory": (False, None),
    "recompute_scale_factor": (False, None),
    "size_average": (None,),
    "reduce": (None,),
    "max_norm": (None,),
    "norm_type": (2, 2.0),
    "scale_grad_by_freq": (False,),
    "differentiable": (False,),
    "out_dtype": (None,),
    "in_order": (True,),
    "like": (None,),
    "subok": (False, True),
    "overwrite_input": (False, True),
    "order": (None, "C", "K", "A"),
    "kind": (None, "quicksort", "mergesort", "heapsort", "stable", "sort", "table", "introselect"),
    "where": (True,),
    "casting": ("same_kind", "unsafe"),
    "ndmax": (0,),
    "generator": (None,),
    "force": (False, True),
}
"""Arguments of other libraries that say here what is so anyway, by their names, with those of their values that do."""
IGNORED = ("memory_format", "non_blocking", "compute_mode", "layout", "foreach", "fused", "capturable", "_stacklevel",
           "optimize")  # fmt: skip
"""Arguments of other libraries that are about speed alone, about what there is one of here, or about warnings."""
REFUSED = {
    "generator": "one stream of random numbers serves a program: manual_seed(), get_rng_state(), set_rng_state()",
    "out": "it writes into tensors itself, or gives none",
    "inplace": "tensors are not changed by this; take what it returns",
    "where": "write mask.where(x, value), with the value that does not count, for the tensor",
    "initial": "compute it beside the result, as with maximum() or +; of no elements, concatenate it first",
    "order": "elements are in C's order, and have no fields; transpose() first for Fortran's",
}

VARIADIC = ("shape", "size", "sizes", "dims", "dim", "axes", "axis", "repeats", "reps", "tensors", "operands")
SELF = ("input", "tensor", "tensors", "a")
"""What other libraries call the tensor that a method is of."""
FIRST = frozenset(
    """
    A a a1 ar ar1 arr array arrays ary condlist element f filt indices m multi_index prototype sample tup v val x z
    """.split()
)
"""What they call it elsewhere, or the first argument of a function, where that name is none of its others'."""


def is_harmless(name: str, value: object) -> bool:
    """Whether an argument of another library says here what is so anyway."""
    return isinstance(value, (bool, int, float, str, NoneType)) and value in HARMLESS.get(name, ())


def reached(given: str, names: Sequence[str], taken: Sequence[str] = ()) -> str | None:
    """The argument that a spelling stands for, of those of a function.

    Args:
      given: the spelling.
      names: what the function calls its arguments.
      taken: those that were given already.

    Example:
      >>> reached("dim", ["x", "axis"]), reached("axes", ["shape"])
      ('axis', None)
    """
    if given in names:
        return given
    return next((name for name in names if name not in taken and given in SPELLINGS.get(name, ())), None)
