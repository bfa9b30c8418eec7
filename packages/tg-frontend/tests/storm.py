"""A program in which a handler of SIGALRM raises at random instructions; it ends with a line of what was wrong.

``python storm.py WHAT SECONDS SEED``, where WHAT is one of the functions below. Each works in rounds: what a round
begins with, and what it ends with, are the only values that may be read after it, however it ended.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from tg_frontend import Tensor, TinyJit
from tg_frontend.autograd.differentiation import MODE
from tg_lazy import DEBUG, Context

Round = Callable[[], str]
TIMER = signal.ITIMER_REAL
after_s = 0.0
"""When the alarm goes, from the beginning of a round's work; 0 for never."""


class Alarm(Exception):
    """What the handler raises."""


def on_alarm(number: int, frame: FrameType | None) -> None:
    raise Alarm


def cut(work: Callable[[], object]) -> None:
    """Does work, in which the alarm goes."""
    try:
        signal.setitimer(TIMER, after_s)
        work()
        signal.setitimer(TIMER, 0)
        time.sleep(3e-4)  # the signal may be with another thread of the process already
    except Alarm:
        return


def updates() -> Round:
    """One tensor counts: each round adds 1 in place."""
    x = Tensor.zeros(3).contiguous().realize()

    def step() -> None:
        x.assign(x + 1)
        x.realize()

    def one_round() -> str:
        before = x.tolist()[0]
        cut(step)
        values = x.tolist()
        right = values in ([before] * 3, [before + 1] * 3)
        return "" if right else f"{before} and 1 make {values}"

    return one_round


def swaps() -> Round:
    """Two tensors change places, which takes a copy, two assignments, and all or nothing of them."""
    a, b = Tensor.full((5,), 1.0).contiguous().realize(), Tensor.full((5,), 2.0).contiguous().realize()
    stated = [False]

    def swap() -> None:
        x, y = a * 1, b * 1
        a.assign(y)
        b.assign(x)
        stated[0] = True
        a.realize(b)

    def one_round() -> str:
        first, second, stated[0] = a.tolist(), b.tolist(), False
        cut(swap)
        now = a.tolist(), b.tolist()
        old, new = (first, second), (second, first)
        half = (second, second)  # between two statements, each of which is whole
        right = now == new if stated[0] else now in (old, half, new)
        a.assign(Tensor.full((5,), 1.0))
        b.assign(Tensor.full((5,), 2.0))
        a.realize(b)
        return "" if right else f"{first[0]}, {second[0]} became {now}"

    return one_round


def replays() -> Round:
    """A recorded function that overwrites two tensors, in steps of their own."""
    a, b = Tensor.zeros(4).contiguous().realize(), Tensor.zeros(4).contiguous().realize()

    def step(x: Tensor) -> Tensor:
        a.assign(a + x)
        a.realize()
        b.assign(b + x)
        return (a + b).realize()

    function, one = TinyJit(step), Tensor.full((4,), 1.0).contiguous().realize()
    for _ in range(3):
        function(one)

    def one_round() -> str:
        before = a.tolist()[0]
        cut(lambda: function(one))
        now = a.tolist(), b.tolist()
        right = now in (([before] * 4,) * 2, ([before + 1] * 4,) * 2)
        return "" if right else f"{before} and 1 make {now}"

    return one_round


def modes() -> Round:
    """What a block has changed is put back, wherever it ends."""

    def step() -> None:
        with Tensor.no_grad(), Tensor.train(), Context(DEBUG=0):
            with Tensor.no_grad():
                pass

    def one_round() -> str:
        cut(step)
        found = MODE.recording, Tensor.training, DEBUG.value
        MODE.recording, Tensor.training = True, False
        return "" if found == (True, False, 0) else f"recording, training, DEBUG are {found}"

    return one_round


def main(what: str, seconds: float, seed: int) -> int:
    global after_s
    dice = random.Random(seed)
    one_round = {"updates": updates, "swaps": swaps, "replays": replays, "modes": modes}[what]()
    signal.signal(signal.SIGALRM, on_alarm)
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        one_round()
        took.append(time.perf_counter() - begin)
    usual = sorted(took)[len(took) // 2]
    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:
        rounds += 1
        after_s = dice.uniform(0, usual) + 1e-6
        wrong = one_round()
        if wrong:
            print(f"wrong: round {rounds}: {wrong}")
            return 1
    found = signal.getsignal(signal.SIGALRM)
    if found is not on_alarm:
        print(f"wrong: the handler is {found}")
        return 1
    print(f"{rounds} rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
