"""Sequences of several lengths; see :mod:`tg_frontend.nn.utils.rnn`."""

from tg_frontend.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:
    from tg_frontend.nn.utils.rnn import __getattr__  # noqa: F401
