"""Rendered kernels on disk: a kernel whose AST, target and code generator are known need not be generated again.

The text form is one line a field and then the source. Symbolic sizes are in it with the bounds of their variables
(:func:`tg_shape.dumps`).
"""

from __future__ import annotations

import functools
import os

import tg_codegen
import tg_dtype
import tg_lazy
import tg_shape
from tg_codegen import BufferParam, Estimates, ProgramSpec, Shares
from tg_dtype import dtypes
from tg_shape import Variable, dumps, loads

_FIELDS = 8


@functools.cache
def generator_identity() -> str:
    """Names, sizes and times of the files whose code decides what a kernel's text is."""
    found = []
    for package in (tg_codegen, tg_dtype, tg_lazy, tg_shape):
        for root in package.__path__:
            stack = [root]
            while stack:
                try:
                    with os.scandir(stack.pop()) as entries:
                        for entry in entries:
                            if entry.is_dir() and not entry.name.startswith(("_", ".")):
                                stack.append(entry.path)
                            elif entry.name.endswith(".py"):
                                status = entry.stat()
                                found.append(f"{entry.path}:{status.st_size}:{status.st_mtime_ns}")
                except OSError:
                    continue
    return "|".join(sorted(found))


def dump(spec: ProgramSpec) -> bytes | None:
    """The text form; None for a kernel with variables that have none."""
    costs = (spec.estimates.flops, spec.estimates.lds, spec.estimates.mem)
    try:
        groups, work, variables = ("\t".join(map(dumps, many)) for many in (spec.global_size, costs, spec.vars))
    except ValueError:
        return None
    buffers = " ".join(
        f"{b.slot},{b.size},{b.written:d},{b.read:d},{_dump_shares(b.shares)},{b.dtype.name}" for b in spec.buffers
    )
    lines = [
        spec.name,
        groups,
        " ".join(map(str, spec.local_size)),
        str(spec.threads),
        work,
        buffers,
        "\t".join(spec.actions),
        variables,
        spec.src,
    ]
    return "\n".join(lines).encode()


def load(data: bytes) -> ProgramSpec:
    """The kernel of a text form, without its UOps.

    Raises:
      ValueError: if the text is in another form.
    """
    fields = data.decode().split("\n", _FIELDS)
    if len(fields) != _FIELDS + 1:
        raise ValueError(f"a kernel in {len(fields)} lines")
    name, groups, items, threads, costs, buffers, actions, variables, src = fields
    flops, lds, mem = map(loads, costs.split("\t"))
    g, i = tuple(map(loads, groups.split("\t"))), tuple(map(int, items.split(" ")))
    if len(g) != 3 or len(i) != 3:
        raise ValueError(f"a kernel of {len(g)} and {len(i)} dimensions")
    parameters = []
    for text in buffers.split(" ") if buffers else ():
        slot, size, written, read, shares, dtype = text.split(",", 5)  # the name of an image has commas
        parameters.append(
            BufferParam(
                int(slot), dtypes.from_name(dtype), int(size), written == "1", read == "1", _load_shares(shares)
            )
        )
    return ProgramSpec(
        name=name,
        src=src,
        uops=(),
        buffers=tuple(parameters),
        vars=tuple(_variable(text) for text in variables.split("\t")) if variables else (),
        global_size=(g[0], g[1], g[2]),
        local_size=(i[0], i[1], i[2]),
        threads=int(threads),
        estimates=Estimates(flops, lds, mem),
        actions=tuple(actions.split("\t")) if actions else (),
    )


def _dump_shares(shares: Shares) -> str:
    return ";".join("" if share is None else f"{share[0]}:{share[1]}" for share in shares)


def _load_shares(text: str) -> Shares:
    shares: list[tuple[int, int] | None] = []
    for share in text.split(";") if text else ():
        begin, _, end = share.partition(":")
        shares.append((int(begin), int(end)) if share else None)
    return tuple(shares)


def _variable(text: str) -> Variable:
    found = loads(text)
    if not isinstance(found, Variable):
        raise ValueError(f"{text!r} is no variable")
    return found
