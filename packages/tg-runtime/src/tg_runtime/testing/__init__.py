"""Tests that every device must pass, for the devices here and those that other packages offer."""

from .conformance import DeviceConformance

__all__ = ["DeviceConformance"]
