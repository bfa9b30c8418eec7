"""Random programs of complex numbers: as :mod:`tests.fuzz.programs`, with complex operands, and real ones among them.

Tensors of complex64 and complex128 meet floats, integers and Python's numbers. The reference is numpy's, steps are run
eagerly, lazily, half and half, and in TinyJit. Gradients by PyTorch's convention are compared with finite differences
along a direction that is complex where the input is; so are second derivatives, of that slope along another direction.

    hatch run fuzz complexes [--seconds 60] [--seed 0] [--device NUMPY]
"""

from __future__ import annotations

import random
import warnings

from .methods.complex_numbers import TABLE, ComplexPool
from .programs import SIZES, Finding, Program, drawn, problem, problem_kind, shrunk, sinks

SMALL = SIZES[:9]


def program_of(seed: int) -> tuple[Program, bool]:
    """The program of a seed, and whether its gradients are looked at."""
    pick = random.Random(seed)
    smooth = pick.random() < 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return drawn(pick, pick.choice([1, 2, 3, 5]), SMALL if smooth else SIZES, smooth, TABLE, ComplexPool), smooth


def attempt(seed: int) -> Finding | None:
    """One program."""
    program, smooth = program_of(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = problem(program, seed, smooth, 2)
        if not wrong:
            return None
        small = shrunk(program, seed, smooth, problem_kind(wrong), orders=2)
        return Finding(seed, problem(small, seed, smooth, 2) or wrong, small.text(sinks(small)))
