"""The operating system's side of a software AMD GPU: the files of amdkfd and amdgpu as Linux 6.12 has them."""

from __future__ import annotations

from .cards import CARDS, Card
from .system import KfdSystem, mock_kfd

__all__ = ["CARDS", "Card", "KfdSystem", "mock_kfd"]
