"""What one schedule is made of: the part of the lazy graph behind some outputs, in an order, symbols unbound.

Reductions too large for one kernel are already in two here, and the readers of memory that is overwritten belong to it.
"""
