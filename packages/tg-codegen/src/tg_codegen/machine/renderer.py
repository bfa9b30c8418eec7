"""Renderer: turns linear UOps into a target's text."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

from tg_dtype import DType, dtypes
from tg_lazy import TRANSCENDENTAL, Ops

from ..ir.uop import UOp
from .target import Target


class Renderer(ABC):
    """A language and the machine it is written for.

    Attributes:
      name: the renderer's name in ``DEV`` (``CLANG``, ``LLVM``, ``CL``, ``CUDA`` …).
      scales: whether the language can state SCALE; it is there where the target has it, too.
      shifts: whether (x + c) - c is computed as it is stated; compilers of some languages may reorder sums.
      matrices: names of the matrix instructions that the language can state.
      images: whether kernels can read and write images.
      numbers_groups: whether work-groups are numbered through all dimensions where a launch has more along one than
        the machine takes.
      target: the machine, with no other matrix instructions than those.
    """

    name: ClassVar[str]
    matrices: ClassVar[frozenset[str]] = frozenset()
    scales: ClassVar[bool] = False
    shifts: ClassVar[bool] = True
    images: ClassVar[bool] = False
    numbers_groups: ClassVar[bool] = False

    def __init__(self, target: Target) -> None:
        known = tuple(found for found in target.matrices if found.name in self.matrices)
        self.target = target if known == target.matrices else replace(target, matrices=known)
        self._told: tuple[Target, str] | None = None

    def strictly(self) -> Self:
        """A renderer like this one, which keeps the order of reductions and rounds every product."""
        return self.with_target(replace(self.target, strict=True))

    def awake(self, threads: int) -> Self:
        """A renderer like this one, whose kernels are for so many threads that are awake (:attr:`Target.awake`)."""
        return self.with_target(replace(self.target, awake=True, threads=threads))

    def with_target(self, target: Target) -> Self:
        """A renderer like this one, for another machine that takes the same language."""
        found = copy.copy(self)
        found.target = target
        return found

    @abstractmethod
    def render(self, name: str, uops: Sequence[UOp]) -> str:
        """The kernel ``name`` as text.

        Raises:
          ValueError: for a node that this language has no form for; the message names it.
        """

    def written(self, uops: Sequence[UOp]) -> Sequence[UOp]:
        """A linear kernel as :meth:`render` writes it: without vectors that the language lacks."""
        return uops

    def supports_dtype(self, dtype: DType) -> bool:
        """Whether values of this scalar dtype can be computed with. Others are legalised to ones that can."""
        return True

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        """Whether the language has this elementwise op for this scalar dtype. Others are decomposed.

        What languages have of the functions is often less accurate than the arithmetic that they are decomposed to.
        """
        return op not in TRANSCENDENTAL and not (op is Ops.MOD and dtypes.is_float(dtype))

    @property
    def key(self) -> str:
        """Distinguishes renderers that would give different text, stable between processes."""
        if self._told is None or self._told[0] is not self.target:
            self._told = self.target, repr(self.target)  # of some 80 fields, and asked for each kernel
        return f"{type(self).__name__}:{self._told[1]}"
