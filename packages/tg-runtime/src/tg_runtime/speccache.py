"""Rendered kernels on disk: a kernel whose AST, target and code generator are known need not be generated again.

The text form is one line a field and then the source. Kernels with symbolic variables are not kept: the key of an AST
does not tell their bounds.
"""

from __future__ import annotations

import functools
import os

import tg_codegen
import tg_dtype
import tg_lazy
import tg_shape
from tg_codegen import BufferParam, Estimates, ProgramSpec
from tg_dtype import dtypes

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
    """The text form; None for a kernel with variables."""
    numbers = (*spec.global_size, *spec.local_size, spec.threads)
    costs = (spec.estimates.flops, spec.estimates.lds, spec.estimates.mem)
    if spec.vars or not all(isinstance(n, int) for n in (*numbers, *costs)):
        return None
    buffers = " ".join(f"{b.slot},{b.dtype.name},{b.size},{b.written:d},{b.read:d}" for b in spec.buffers)
    lines = [
        spec.name,
        " ".join(map(str, spec.global_size)),
        " ".join(map(str, spec.local_size)),
        str(spec.threads),
        " ".join(map(str, costs)),
        buffers,
        "\t".join(spec.actions),
        "",
        spec.src,
    ]
    return "\n".join(lines).encode()


def load(data: bytes) -> ProgramSpec:
    """The kernel of a text form, without its UOps.

    Raises:
      ValueError: the text is in another form.
    """
    fields = data.decode().split("\n", _FIELDS)
    if len(fields) != _FIELDS + 1:
        raise ValueError(f"a kernel in {len(fields)} lines")
    name, groups, items, threads, costs, buffers, actions, _, src = fields
    flops, lds, mem = map(int, costs.split(" "))
    g, i = tuple(map(int, groups.split(" "))), tuple(map(int, items.split(" ")))
    if len(g) != 3 or len(i) != 3:
        raise ValueError(f"a kernel of {len(g)} and {len(i)} dimensions")
    parameters = []
    for text in buffers.split(" ") if buffers else ():
        slot, dtype, size, written, read = text.split(",")
        parameters.append(BufferParam(int(slot), dtypes.from_name(dtype), int(size), written == "1", read == "1"))
    return ProgramSpec(
        name=name,
        src=src,
        uops=(),
        buffers=tuple(parameters),
        global_size=(g[0], g[1], g[2]),
        local_size=(i[0], i[1], i[2]),
        threads=int(threads),
        estimates=Estimates(flops, lds, mem),
        actions=tuple(actions.split("\t")) if actions else (),
    )
