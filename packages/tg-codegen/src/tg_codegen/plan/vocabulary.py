"""Every action by its name, and the text form of them all: ``parse(str(action))`` is the action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from ..nest.spec import Kind
from .actions import (
    Action,
    ActionError,
    Convert,
    In,
    KernelAction,
    LoopAction,
    Mark,
    Outermost,
    Pack,
    Prefetch,
    PrefetchIndirect,
    Share,
    Split,
    SplitReduction,
    Stream,
)
from .code_copies import Partition, Roll
from .cut_dimension import CutDimension
from .pipeline_rows import DelayStores, JoinWalks
from .reuse_row_values import ReuseRowValues
from .row_blocks import RowBlocks
from .split_concat import SplitConcat
from .trim_rows import TrimRows
from .unsigned_products import UnsignedProducts
from .widened_rows import WidenRows

PARTING: tuple[type[KernelAction], ...] = (CutDimension, ReuseRowValues, SplitConcat, RowBlocks)
"""Actions that say which dimensions and parts a kernel has: they come before all others."""
EVERY: tuple[type[Action], ...] = (
    *PARTING, Split, Mark, Outermost, Pack, Convert, Share, SplitReduction, Stream, Prefetch, PrefetchIndirect,
    UnsignedProducts, WidenRows, Partition, Roll, TrimRows, JoinWalks, DelayStores,
)  # fmt: skip
"""All actions, about in the order in which the heuristic proposes them."""
ACTIONS = {cls.title(): cls for cls in EVERY}
"""The same by name."""


def kind(word: str) -> Kind:
    """The kind of loop with a name.

    Raises:
      ActionError: if there is none.
    """
    found = Kind.__members__.get(word)
    if found is None:
        raise ActionError(f"{word} is no kind of loop; these are: {', '.join(Kind.__members__)}")
    return found


READERS: dict[str, Callable[[str], str | int | Kind | None]] = {
    "int": int, "str": str, "Kind": kind, "str | None": lambda word: None if word == "-" else word,
}
"""How the argument of an action is read, by the type of its field."""


def parse_action(text: str) -> Action:
    """The action that ``text`` prints.

    >>> parse_action("split(i0, 4, UPCAST)").kind
    <Kind.UPCAST: 5>
    >>> str(parse_action("pack(1, -)"))
    'pack(1, -)'
    >>> parse_action("2: mark(r0, UNROLL)").number
    2

    Raises:
      ActionError: if the text is not an action.
    """
    part, colon, rest = text.partition(":")
    if colon and part.strip().isdigit():
        return In(int(part), parse_loop(rest))
    name, _, rest = text.strip().partition("(")
    cls = ACTIONS.get(name)
    words = [word.strip() for word in rest.removesuffix(")").split(",")] if rest != ")" else []
    if cls is None or not rest.endswith(")") or len(words) != len(fields(cls)):  # type: ignore[arg-type]
        raise ActionError(f"not an action: {text!r}; these are: {', '.join(ACTIONS)}")
    types = [str(f.type) for f in fields(cls)]  # type: ignore[arg-type]
    try:
        return cls(*(READERS[of](word) for word, of in zip(words, types, strict=True)))
    except ActionError as error:
        raise ActionError(f"{text}: {error}") from None
    except ValueError:
        raise ActionError(f"not an action: {text!r}: one of its arguments is to be a number") from None


def parse_loop(text: str) -> LoopAction:
    """The action on the loops of one nest that ``text`` prints.

    Raises:
      ActionError: if the text is not such an action.
    """
    action = parse_action(text)
    if not isinstance(action, LoopAction):
        raise ActionError(f"not an action on the loops of one part: {action}")
    return action
