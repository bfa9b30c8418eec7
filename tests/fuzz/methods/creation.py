"""Methods of the class, which make tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .table import Array, Call, Pool, row


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


def _window(name: str, reference: Callable[..., Array], **more: float) -> None:
    def draw(pool: Pool, i: int) -> Call:
        return Call(name, (pool.pick.randint(0, 9),), {"periodic": False, **more},
                    lambda n, periodic, **more: reference(n, *more.values()))  # fmt: skip

    row(name, draw)


_window("bartlett_window", np.bartlett)
_window("blackman_window", np.blackman)
_window("hamming_window", np.hamming)
_window("hann_window", np.hanning)
_window("kaiser_window", np.kaiser, beta=3.0)
