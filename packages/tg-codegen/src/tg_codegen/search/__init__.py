"""Better actions for one kernel, found by compiling and measuring many, and the cost model that says which to measure.

An AST, a renderer and a callback that measures go in, and the fastest program comes out.
"""
