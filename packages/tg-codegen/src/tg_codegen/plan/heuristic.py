"""The plan of a kernel: the heuristic for the kind of machine that it is for."""

from __future__ import annotations

from ..machine.target import Target
from ..nest.nest import Nest
from .actions import Action
from .cpu_heuristic import heuristic as on_cpu
from .gpu_heuristic import GPUPlanner


def heuristic(nest: Nest, target: Target) -> list[Action]:
    """Actions for a nest on a target."""
    return GPUPlanner(nest, target).planned() if target.kind == "gpu" else on_cpu(nest, target)
