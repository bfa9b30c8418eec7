"""AMD's machine code: instruction tables made from LLVM's, a decoder, and instructions as assembly."""

from __future__ import annotations

from .decode import Decoded, Decoder, decoder
from .listing import listing
from .table import PROCESSORS, Kind, Row, Table, table
from .text import text

__all__ = ["PROCESSORS", "Decoded", "Decoder", "Kind", "Row", "Table", "decoder", "listing", "table", "text"]
