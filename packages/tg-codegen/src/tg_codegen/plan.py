"""The plan of a kernel: the heuristic for the kind of machine that it is for."""

from __future__ import annotations

from .actions import Action
from .gpu_heuristic import GPUPlanner
from .heuristic import heuristic as on_cpu
from .nest import Nest
from .target import Target


def heuristic(nest: Nest, target: Target) -> list[Action]:
    """Actions for a nest on a target."""
    return GPUPlanner(nest, target).planned() if target.kind == "gpu" else on_cpu(nest, target)
