"""Loops to UOps: a nest whose loops are decided goes in, and the structured form of its kernel comes out.

Nothing is decided here. What loops, stages and accesses become is the work of one emitter, in layers from the address
of an element up to the whole kernel.
"""
