"""What is known of loops at a point: an expression is told once for all points where its roots have the same values."""

from __future__ import annotations

import random

import pytest

from tg_codegen.nest.env import Env
from tg_shape import Variable, sint, substitute


@pytest.mark.parametrize("seed", range(8))
def test_an_expression_is_what_substitution_makes_of_it_at_each_point(seed: int) -> None:
    draw = random.Random(seed)
    roots = [Variable(f"r{n}", 0, draw.choice((2, 3, 7, 13, 64)) - 1) for n in range(3)]
    counters = [Variable(f"c{n}", 0, 12) for n in range(4)]
    wanted: list[sint] = [draw.randrange(9), *roots]
    for _ in range(12):
        a, b = draw.choice(wanted), draw.choice(wanted)
        by = draw.randrange(2, 6)
        wanted.append(draw.choice((a + b, a * draw.randrange(-3, 5), a // by, a % by)))
    points = [Env(dict.fromkeys(roots, 0))]
    for counter in counters:
        at = points[-1].open(counter.name, draw.choice(roots), draw.randrange(1, 9), draw.choice((counter, 5)))
        points += [at, at.at(counter, draw.randrange(12)), at.moved(draw.choice(roots), draw.choice((counter, 1)))]
    for _ in range(2):  # the second time it is remembered
        for point in draw.sample(points, len(points)):
            for e in wanted:
                assert point.of(e) == substitute(e, point.root)
