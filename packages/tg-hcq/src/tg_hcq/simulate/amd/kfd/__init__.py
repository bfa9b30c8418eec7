"""The operating system's side of a software AMD GPU: the files of amdkfd and amdgpu as Linux 6.12 has them."""

from __future__ import annotations

from .cards import CARDS, Card
from .mock import mock_kfd
from .remote import RemoteKfd
from .system import KfdSystem

__all__ = ["CARDS", "Card", "KfdSystem", "RemoteKfd", "mock_kfd"]
