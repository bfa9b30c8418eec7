"""From which length on it pays to split a reduction in two kernels, beside what the scheduler takes it to be.

    python -m bench.reductions [--device CPU] [--turns 200]

``launch`` is the time that one more kernel takes, the waking of threads included, and ``serial`` what one unit of the
device (a thread, a work-group) reads meanwhile: :attr:`tg_lazy.cost.Limits.serial_elements`. Then a sum of each length
is timed whole and in parts; ``*`` marks what the scheduler chooses.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tg_lazy.cost import LIMITS, Limits, limits_of
from tg_lazy.subgraph.split_reduction import most_parts, split_pays
from tinytg import Device, Tensor, TinyJit

WHOLE = 1
"""Parts of a reduction that is not split."""
LENGTHS = tuple(1 << n for n in range(12, 25))
PARTS = (WHOLE, 8, 32, 128, 256, 1024)
WARM = 4
"""Calls before the first that counts: one that runs, one that is recorded, and two replays."""
NEAR, FAR = 1 << 18, 1 << 20
"""Lengths whose sums tell, by their difference, what a unit reads: longer than a launch, within a shared cache."""


class Timed(NamedTuple):
    """Sums of one length.

    Attributes:
      length: elements.
      seconds: of a sum in so many parts.
      chosen: the parts that the scheduler would choose.
    """

    length: int
    seconds: dict[int, float]
    chosen: int


class Reductions:
    """Sums on one device, whole and in parts.

    Args:
      device: its name.
      turns: calls of which the median counts.
    """

    def __init__(self, device: str, turns: int) -> None:
        self.device, self.turns, self.kind = device, turns, device.partition(":")[0]
        _ = Device[device]  # which may set limits of its own
        self.limits = limits_of(device)

    def median(self, length: int, parts: int, sums: int = 1) -> float:
        """Seconds of ``sums`` replayed sums, one kernel each or two, after one another."""
        kept = LIMITS.get(self.kind)
        LIMITS[self.kind] = self.limits._replace(split_parts=parts, serial_elements=0)
        try:
            x = Tensor.rand(length, device=self.device).realize()
            jitted = TinyJit(lambda x: [(x + i).sum().realize() for i in range(sums)])
            samples = []
            for turn in range(WARM + self.turns):
                start = time.perf_counter()
                jitted(x)
                Device[self.device].synchronize()
                if turn >= WARM:
                    samples.append(time.perf_counter() - start)
            return statistics.median(samples)
        finally:
            if kept is None:
                del LIMITS[self.kind]
            else:
                LIMITS[self.kind] = kept

    def launch(self) -> float:
        """Seconds that one kernel more takes."""
        few, many = 2, 34
        return (self.median(64, WHOLE, many) - self.median(64, WHOLE, few)) / (many - few)

    def rate(self) -> float:
        """Elements that one unit reads in a second."""
        return (FAR - NEAR) / (self.median(FAR, WHOLE) - self.median(NEAR, WHOLE))

    def sums(self, lengths: Sequence[int] = LENGTHS) -> Iterator[Timed]:
        """Sums of each length, whole and in parts."""
        for length in lengths:
            seconds = {parts: self.median(length, parts) for parts in PARTS if parts**2 <= length}
            yield Timed(length, seconds, chosen(length, self.limits))


def chosen(length: int, limits: Limits) -> int:
    """Into how many parts the scheduler would split a sum of this length."""
    parts = most_parts(length, limits)
    return parts if split_pays(length, parts, limits) else WHOLE


def main(argv: Sequence[str] | None = None) -> int:
    """Prints what was measured, beside the scheduler's numbers."""
    parser = argparse.ArgumentParser(prog="python -m bench.reductions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--turns", type=int, default=200)
    arguments = parser.parse_args(argv)
    found = Reductions(arguments.device, arguments.turns)
    launch, rate = found.launch(), found.rate()
    print(f"launch {launch * 1e6:8.2f} us")
    print(f"serial {launch * rate:8.0f} elements   model: {found.limits.serial_elements}", flush=True)
    print(f"{'length':>10} " + " ".join(f"{'whole' if p == WHOLE else p:>10}" for p in PARTS) + "   us, by parts")
    for timed in found.sums():
        near = min(timed.seconds, key=lambda p: abs(p - timed.chosen))
        cells = [f"{timed.seconds[p] * 1e6:9.1f}{'*' if p == near else ' '}" if p in timed.seconds else " " * 10
                 for p in PARTS]  # fmt: skip
        print(f"{timed.length:>10} " + " ".join(cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
