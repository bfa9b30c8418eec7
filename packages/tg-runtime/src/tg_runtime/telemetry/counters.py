"""Counters of what was executed, and the line per kernel that ``DEBUG=2`` prints."""

from __future__ import annotations

from collections.abc import Mapping

from tg_lazy import DEBUG
from tg_shape import Variable, sint, sym_eval


class Counters:
    """Sums over everything that was executed since :meth:`reset`. There is one, :data:`GlobalCounters`.

    Attributes:
      global_ops: arithmetic operations, by the kernels' estimates.
      global_mem: bytes moved, by the kernels' estimates.
      time_sum_s: seconds of the launches that were waited for (all of them at ``DEBUG=2`` and above).
      kernel_count: launches.
      compile_time_s: seconds spent making programs (generating, compiling, loading).
      compile_count: programs made, found on disk or not.
      mem_used: bytes of device memory that buffers hold now; ``reset`` keeps it.
      mem_peak: the most that they held at once; ``reset`` sets it to what they hold now.
    """

    __slots__ = (
        "compile_count", "compile_time_s", "global_mem", "global_ops", "kernel_count", "mem_peak", "mem_used",
        "time_sum_s",
    )  # fmt: skip

    def __init__(self) -> None:
        self.mem_used = 0
        self.reset()

    def reset(self) -> None:
        """Sets every counter but ``mem_used`` to zero, and ``mem_peak`` to that."""
        self.mem_peak = self.mem_used
        self.global_ops = self.global_mem = self.kernel_count = self.compile_count = 0
        self.time_sum_s = self.compile_time_s = 0.0


GlobalCounters = Counters()
"""What was executed in this process, on every device."""


def human(count: float, unit: str, base: int = 1000) -> str:
    """``count`` with a metric (or, for ``base`` 1024, a binary) prefix.

    >>> human(2_500_000, "FLOP/s"), human(3 * 1024**3, "B", 1024)
    ('2.50 MFLOP/s', '3.00 GiB')
    """
    prefixes = ("", "k", "M", "G", "T", "P") if base == 1000 else ("", "Ki", "Mi", "Gi", "Ti", "Pi")
    for prefix in prefixes[:-1]:
        if abs(count) < base:
            return f"{count:.0f} {unit}" if not prefix else f"{count:.2f} {prefix}{unit}"
        count /= base
    return f"{count:.2f} {prefixes[-1]}{unit}"


def update_stats(
    name: str,
    op_estimate: sint,
    mem_estimate: sint,
    var_vals: Mapping[Variable, int] | None,
    et: float | None,
    buf_count: int,
    jit: bool = False,
    num_kernels: int = 1,
    lra: Mapping[str, object] | None = None,
    device: str = "",
    first_run: bool = False,
) -> None:
    """Adds one launch to :class:`GlobalCounters`; at ``DEBUG=2`` prints a line about it.

    Args:
      name: what ran.
      op_estimate: arithmetic operations, symbolic where shapes are.
      mem_estimate: bytes moved, symbolic where shapes are.
      var_vals: the values of the variables.
      et: seconds, None where it was not measured.
      buf_count: number of buffers the kernel takes.
      jit: whether the launch is part of a captured graph.
      num_kernels: how many kernels the launch stands for.
      lra: launch dimensions to print.
      device: the device's name.
      first_run: whether the program was made for this launch.
    """
    if not isinstance(op_estimate, int):
        op_estimate = sym_eval(op_estimate, dict(var_vals or {}))
    if not isinstance(mem_estimate, int):
        mem_estimate = sym_eval(mem_estimate, dict(var_vals or {}))
    GlobalCounters.kernel_count += num_kernels
    GlobalCounters.global_ops += op_estimate
    GlobalCounters.global_mem += mem_estimate
    if et is not None:
        GlobalCounters.time_sum_s += et
    if DEBUG.value >= 2:
        _print_launch(name, op_estimate, mem_estimate, et, buf_count, jit, lra, device, first_run)


def _print_launch(
    name: str,
    ops: int,
    mem: int,
    et: float | None,
    buf_count: int,
    jit: bool,
    lra: Mapping[str, object] | None,
    device: str,
    first_run: bool,
) -> None:
    mark = "jit " if jit else "new " if first_run else "    "
    head = f"{mark}{GlobalCounters.kernel_count:5d} {device:<8} {name:<44} {buf_count:3d} bufs"
    head += f"  mem {human(GlobalCounters.mem_used, 'B', 1024):>10}"
    if et is not None:
        per_s = 1 / max(et, 1e-9)
        head += f"  {et * 1e6:10.1f} us  {human(ops * per_s, 'FLOP/s'):>14}  {human(mem * per_s, 'B/s'):>12}"
    print(head + "".join(f"  {key}={value}" for key, value in (lra or {}).items()))
