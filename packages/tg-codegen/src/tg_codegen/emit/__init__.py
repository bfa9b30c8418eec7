"""Loops to UOps: a nest whose loops are decided goes in, and the structured form of its kernel comes out.

Nothing is decided here. An emitter is an object that holds its parts, from the address of an element up to the stores
of the whole kernel; a part uses those under it, and asks the others through the emitter.
"""
