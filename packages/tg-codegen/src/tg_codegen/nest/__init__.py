"""Named loops and what is computed in them: the form in which kernels are optimised.

A kernel's AST goes in and comes out as a loop nest, in which every index is an expression of the loops. Beside it
stands what can be told of a nest without changing it: masks and interiors, windows, costs, the shape of its launch.
"""
