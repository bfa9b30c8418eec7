"""AMD: Radeon and Instinct cards, driven through the kernel's KFD without a vendor's library."""

from .device import AMDDevice

__all__ = ["AMDDevice"]
