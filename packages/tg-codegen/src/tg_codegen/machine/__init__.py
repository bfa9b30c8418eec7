"""What the rest asks of a machine and of its language: sizes, limits and costs, which dtypes and ops there are.

A device states a target and chooses a renderer, whose base class is here; planners, rules and the emitter only read.
"""
