"""TLSF against a list of intervals: parts never overlap, nothing is lost, and it refuses only what cannot be had."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_hcq.core.tlsf import TLSF

GRANULE = 16
steps = st.lists(
    st.tuples(st.booleans(), st.integers(1, 900), st.integers(0, 9), st.integers(0, 1 << 16)), min_size=1, max_size=120
)


def gaps(used: dict[int, int], base: int, nbytes: int) -> list[tuple[int, int]]:
    """The free intervals, in order."""
    found, at = [], base
    for start in sorted(used):
        found.append((at, start))
        at = start + used[start]
    return [(start, end) for start, end in [*found, (at, base + nbytes)] if start < end]


def fits(free: list[tuple[int, int]], nbytes: int, align: int) -> bool:
    return any(-(-start // align) * align + nbytes <= end for start, end in free)


@settings(max_examples=150, deadline=None)
@given(steps, st.integers(0, 40))
def test_against_intervals(program: list[tuple[bool, int, int, int]], where: int) -> None:
    base, total = where * GRANULE, 4096
    space, used = TLSF(base, total, GRANULE), dict[int, int]()
    for take, nbytes, shift, pick in program:
        if take or not used:
            wanted, align = -(-nbytes // GRANULE) * GRANULE, 1 << shift
            free = gaps(used, base, total)
            possible = fits(free, wanted, max(align, GRANULE))
            try:
                address = space.alloc(nbytes, align)
            except MemoryError as error:
                assert not possible, error
                assert f"{space.largest:#x}" in str(error)
                continue
            assert possible and address % align == 0 and address % GRANULE == 0
            assert any(start <= address and address + wanted <= end for start, end in free)
            used[address] = wanted
            assert space.size(address) == wanted
        else:
            address = sorted(used)[pick % len(used)]
            space.free(address)
            del used[address]
        free = gaps(used, base, total)
        assert space.free_bytes == total - sum(used.values())
        assert space.largest == max((end - start for start, end in free), default=0)
    for address in used:
        space.free(address)
    assert space.alloc(total) == base  # what was freed has become one part again


def test_parts_of_every_size_in_a_large_space() -> None:
    rng, space = random.Random(3), TLSF(0, 1 << 47)
    taken = {}
    for shift in range(12, 44):
        nbytes = rng.randint(1 << shift, 2 << shift)
        taken[space.alloc(nbytes, 1 << min(shift, 21))] = nbytes
    ordered = sorted(taken)
    assert all(a + taken[a] <= b for a, b in pairwise(ordered))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="not a power of two"):
        TLSF(0, 4096, 24)
    with pytest.raises(ValueError, match="begins at 0x8"):
        TLSF(8, 4096, 16)
    with pytest.raises(ValueError, match="holds no part"):
        TLSF(0, 4095)
    space = TLSF(0, 4096, 16)
    for nbytes in (0, -1):
        with pytest.raises(ValueError, match="cannot be allocated"):
            space.alloc(nbytes)
    with pytest.raises(ValueError, match="alignment of 3"):
        space.alloc(16, 3)
    address = space.alloc(64)
    with pytest.raises(ValueError, match="no part begins at 0x10"):
        space.free(address + 16)
    space.free(address)
    with pytest.raises(ValueError, match="freed before"):
        space.free(address)
