"""The language of kernels below their loops: UOps, what is known of them, their text, and the program that they become.

All rooms speak it. Nothing goes in: a node refers to dtypes, ops and symbolic sizes of the packages underneath, and to
the matrix instructions that there are, whichever machine has them.
"""
