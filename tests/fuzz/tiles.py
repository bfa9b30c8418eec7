"""Random actions between those that make a product one of tile registers, in any order of the operands and of any size.

What is accepted must compute what the plain loops compute: see :mod:`tests.fuzz.actions`.
"""

from __future__ import annotations

import random

from tests.fuzz.actions import TILED, Draw, Finding, Subject, content, empty, explored, numbers
from tg_codegen.ir.matrix import AMX_TILES


def tiled_product(draw: Draw) -> tuple[Subject, list[bytearray], list[str]]:
    """A product, a little larger than one tile, the buffers after its run, and the actions that make tiles of it."""
    instruction = draw.choice(AMX_TILES)
    rows, columns, terms = instruction.shape
    together, apart = instruction.together, draw.choice((1, 1, 2, 3))  # how many terms of a tile lie apart
    m, n = (draw.choice((least, least + 1, least + 5)) for least in (rows, columns))
    k = terms * apart + draw.choice((0, 1, 3))
    left, right, total = instruction.a, instruction.b, instruction.acc
    across, down, row = draw.random() < 0.5, draw.random() < 0.5, draw.random() < 0.3
    x, y = (empty(*sides, dtype=dtype.name) for sides, dtype in (
        ((k, m) if across else (m, k), left), ((n, k) if down else (k, n), right)))
    tensor = (x.permute(1, 0) if across else x).cast(total) @ (y.permute(1, 0) if down else y).cast(total)
    if row:
        tensor = tensor + empty(n, dtype=total.name)
    (ast,) = [item.ast for item in tensor.schedule_with_vars()[0]]
    memory = tuple(content(draw, buffer.dtype, buffer.size) for buffer in ast.arg)
    name = f"{left.name} ({m},{k}){'T' * across} @ {right.name} ({k},{n}){'T' * down}{' + row' * row}"
    made = Subject(name, ast, memory, {}, 0.0)
    operands = [numbers(bytearray(data), buffer.dtype) for data, buffer in zip(memory[1:], ast.arg[1:], strict=True)]
    one, two = operands[0].reshape((k, m) if across else (m, k)), operands[1].reshape((n, k) if down else (k, n))
    product = (one.T if across else one) @ (two.T if down else two) + (operands[2] if row else 0)
    want = [bytearray(product.astype(total.name).tobytes()), *map(bytearray, memory[1:])]
    lines = (["-", "i0"] if m > rows else ["-"]), (["-", "i1"] if n > columns else ["-"])
    packs = [f"pack({number}, {draw.choice(places)})" for number, places in enumerate(lines)]
    draw.shuffle(packs)
    return made, want, [
        f"split(i0, {rows}, FRAGMENT_ROWS)", f"split(i1, {columns}, FRAGMENT_COLUMNS)",
        f"split(r0, {together}, CONTRACT)", *([f"split(r0, {apart}, UNROLL)"] if apart > 1 else []),
        f"split(r0, {terms // together}, DEPTH)", *packs]


def check(seed: int) -> tuple[Finding | None, tuple[str, ...]]:
    """One product with one sequence of actions. Returns what is wrong, and the actions that were accepted."""
    draw = random.Random(seed)
    made, want, cuts = tiled_product(draw)
    turns = [*cuts, *[""] * draw.randint(0, 4)]
    places = sorted(draw.sample(range(len(turns)), len(cuts)))
    turns = [cuts[places.index(at)] if at in places else "" for at in range(len(turns))]
    return explored(seed, draw, made, TILED, want, turns)


def attempt(seed: int) -> Finding | None:
    """What is wrong with the sequence of a seed."""
    return check(seed)[0]
