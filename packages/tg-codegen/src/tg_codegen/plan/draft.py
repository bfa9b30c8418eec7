"""A kernel on its way: actions are taken on it one after another, first on its loops, then on its structured form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..ir.uop import UOp
from ..machine.target import Target
from ..nest.kernel import Kernel
from .actions import Action, ActionError, KernelAction, StructureAction

Emit = Callable[[Kernel, Target], UOp]
"""Makes the structured form of a kernel."""


class Draft:
    """A kernel, the actions that were taken on it, and what they made of it.

    Whoever proposes an action looks at what the actions before it left: at the loops, or at the structured form, which
    is emitted when it is first asked for.

    Attributes:
      kernel: the loops.
      target: the machine that the kernel is emitted for.
      actions: what was done, in order; taken on the kernel as it was stated they give this draft again. Where one does
        not fit, it is the last of them.
    """

    def __init__(self, kernel: Kernel, target: Target, emit: Emit) -> None:
        self.kernel, self.target, self.actions = kernel, target, list[Action]()
        self._emit = emit
        self._sink: UOp | None = None

    @property
    def sink(self) -> UOp:
        """The structured form.

        Raises:
          EmitError: if the actions do not fit together.
        """
        if self._sink is None:
            self._sink = self._emit(self.kernel, self.target)
        return self._sink

    def take(self, actions: Iterable[Action]) -> None:
        """Takes actions in turn.

        Raises:
          ActionError: if one does not fit, or changes loops after the structured form was changed.
          EmitError: if one is for the structured form, and those before it do not fit together.
        """
        for action in actions:
            late = any(isinstance(before, StructureAction) for before in self.actions)
            self.actions.append(action)
            if isinstance(action, StructureAction):
                self._sink = action.apply(self.sink)
            elif isinstance(action, KernelAction) and not late:
                self.kernel, self._sink = action.on(self.kernel), None
            else:
                raise ActionError(f"{action}: comes before the actions on the structured form of the kernel")


def in_order(actions: Sequence[Action]) -> tuple[list[KernelAction], list[StructureAction]]:
    """The actions of a list that are for a kernel's loops, and those that are for its structured form."""
    loops = [action for action in actions if isinstance(action, KernelAction)]
    return loops, [action for action in actions if isinstance(action, StructureAction)]
