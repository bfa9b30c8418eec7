"""What submissions to hardware queues are measured, and what they may cost; see :mod:`bench.hcq`."""

from __future__ import annotations

from collections.abc import Mapping

GOALS_US: Mapping[str, float] = {
    "eager_launch_us": 12.0,
    "replay_1000_patches_us": 15.0,
    "replay_1000_variables_us": 60.0,
}
"""Most microseconds of each."""
SHOWN: Mapping[str, str] = {
    "eager_launch_us": "a launch of a kernel, from `runner(bufs, vals)`",
    "replay_1000_patches_us": "a replay with 1,000 places of 64 bits from 64 variables, all changed",
    "replay_1000_variables_us": "the same from 1,000 variables",
    "graph_100_kernels_us": "a replay of a graph of 100 kernels with two inputs, both changed",
}
"""What each is, for the page."""
