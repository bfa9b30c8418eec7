"""Methods of the class, which make tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .table import Call, Pool, row


def _created(name: str, draw: Callable[[Pool], Call]) -> None:
    row(name, lambda pool, i: draw(pool), exact=True)


def _shape(pool: Pool) -> tuple[int, ...]:
    return tuple(pool.pick.randint(1, 6) for _ in range(pool.pick.randint(0, 3)))


_created("zeros", lambda pool: Call("zeros", (_shape(pool),), {}, np.zeros))
_created("ones", lambda pool: Call("ones", (_shape(pool),), {}, np.ones))
_created("full", lambda pool: Call("full", (_shape(pool), 2.5), {}, np.full))
_created("eye", lambda pool: Call("eye", (pool.pick.randint(1, 6), pool.pick.randint(1, 6)), {}, np.eye))
_created("arange", lambda pool: Call(
    "arange", (pool.pick.randint(-5, 5), pool.pick.randint(6, 20), pool.pick.randint(1, 3)), {}, np.arange
))  # fmt: skip
_created("linspace", lambda pool: Call("linspace", (-1, 3, 2 ** pool.pick.randint(0, 3) + 1), {}, np.linspace))
