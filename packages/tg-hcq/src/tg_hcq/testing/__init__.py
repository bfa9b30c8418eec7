"""Tests that every device of hardware queues must pass, for the drivers here and those that other packages offer."""

from .rack import FaultRack

__all__ = ["FaultRack"]
