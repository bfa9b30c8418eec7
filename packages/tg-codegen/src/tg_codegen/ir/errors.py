"""The error that says a kernel cannot be made as it was asked for, whichever step finds it."""


class EmitError(ValueError):
    """A nest cannot be emitted; the message names the loop or node."""
