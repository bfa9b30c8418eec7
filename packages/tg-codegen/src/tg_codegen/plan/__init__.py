"""Decisions: which actions a kernel is to have on a target.

A kernel and a target go in, and a list of actions comes out: what the parts are (values that a row reuses, outputs
written operand by operand, blocks of rows), then the loops of each part. The last of them overlap walks over rows,
which are seen in the structured form that the loops are emitted as: whoever wants a whole list says how that is made.
"""
