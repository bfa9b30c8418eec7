"""From the structured form to a list of UOps in execution order, and the interpreter that runs such lists.

What goes in has effects nested in loops and values without a place; what comes out has each value in one region, as far
out as it may stand.
"""
