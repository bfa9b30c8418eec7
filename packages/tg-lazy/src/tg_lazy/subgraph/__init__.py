"""The part of the lazy graph behind some outputs, in an order in which operands come first, symbols unbound.

A large reduction to few outputs is already in two here, and readers of memory that is overwritten belong to it.
"""
