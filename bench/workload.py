"""What is measured: a name, the work in it, the limit that the machine sets, and what we want to reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .case import Array, Case, normal
from .libraries import Library

Unit = Literal["GFLOP/s", "GB/s", "tokens/s", "ms", "us"]


@dataclass(frozen=True)
class Goal:
    """A figure to reach.

    Attributes:
      kind: ``seconds`` (of a unit of work, at most), ``rate`` (in the workload's unit, at least), ``share`` (of the
        machine's limit, at least), or ``torch`` (times PyTorch's speed, at least).
      value: the figure.
      since: ``first``, what the first version must do, or ``aim``, what the work on performance is to reach.
    """

    kind: Literal["seconds", "rate", "share", "torch"]
    value: float
    since: Literal["first", "aim"] = "aim"


@dataclass(frozen=True)
class Workload:
    """Something to measure, the same work in each library.

    Attributes:
      name: what it is called on the command line and in tables.
      group: which part of the table it belongs to.
      build: makes it in a library; raises ``Unsupported`` where that cannot express it.
      unit: what is shown.
      work: operations or bytes of one run for a rate, or how many times the unit of work is done in one run.
      limit: which of the machine's limits bounds it; reading is of as many bytes as ``work`` says.
      goals: what to reach.
      tolerance: the greatest difference of results, relative to the greatest value.
      reference: whose results are right, the first of these that is there.
      libraries: libraries that are measured beside the usual ones.
      quick: part of the quick mode.
      cold: also started in fresh processes, with an empty and a full cache on disk.
    """

    name: str
    group: str
    build: Callable[[Library], Case]
    unit: Unit
    work: float = 1.0
    limit: Literal["", "fma", "bf16", "copy", "read"] = ""
    goals: tuple[Goal, ...] = ()
    tolerance: float = 1e-4
    reference: tuple[str, ...] = ("numpy", "torch", "jax", "tinygrad")
    libraries: tuple[str, ...] = ()
    quick: bool = False
    cold: bool = False

    def rate(self, seconds: float) -> float:
        """What is shown, in the workload's unit, for a run that takes ``seconds``."""
        if self.unit in ("GFLOP/s", "GB/s"):
            return self.work / seconds / 1e9
        if self.unit == "tokens/s":
            return 1 / seconds
        return seconds / self.work * (1e3 if self.unit == "ms" else 1e6)

    @property
    def higher_is_better(self) -> bool:
        """Whether the unit is a rate."""
        return self.unit.endswith("/s")


@dataclass
class Registry:
    """The workloads, in the order of the table."""

    items: dict[str, Workload] = field(default_factory=dict)

    def add(self, workload: Workload) -> None:
        """Appends a workload.

        Raises:
          ValueError: the name is taken.
        """
        if workload.name in self.items:
            raise ValueError(f"two workloads are called {workload.name!r}")
        self.items[workload.name] = workload

    def kernel(
        self,
        name: str,
        group: str,
        arrays: Callable[[], Sequence[Array]],
        fn: Callable[..., Any],
        unit: Unit,
        work: float,
        dtype: str = "",
        **facts: Any,
    ) -> None:
        """Appends a workload that is a function of arrays, called ``fn(library, *tensors)``."""
        if "limit" not in facts:
            facts["limit"] = {"GFLOP/s": "fma", "GB/s": "copy"}.get(unit, "")

        def build(library: Library) -> Case:
            return library.case(lambda *tensors: fn(library, *tensors), arrays(), dtype)

        self.add(Workload(name, group, build, unit, work, **facts))

    def gradient(
        self,
        name: str,
        group: str,
        arrays: Callable[[], Sequence[Array]],
        fn: Callable[..., Any],
        shape: tuple[int, ...],
        eager: bool = False,
        **facts: Any,
    ) -> None:
        """Appends a workload: the gradient at the first of some arrays of ``fn(library, *tensors)``.

        Args:
          name: what it is called.
          group: which part of the table it belongs to.
          arrays: the arguments.
          fn: the function.
          shape: of its result, whose elements have weights.
          eager: outside of anything recorded or compiled.
          facts: fields of the workload.
        """
        def build(library: Library) -> Case:
            return library.gradient(
                lambda *tensors: fn(library, *tensors), arrays(), normal(*shape, seed=77), eager
            )  # fmt: skip

        self.add(Workload(name, group, build, "ms", reference=("torch", "jax", "tinygrad"), **facts))
