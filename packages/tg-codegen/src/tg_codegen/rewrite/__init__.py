"""UOps to UOps of the same meaning: rules as data and the engine that applies them, and passes over whole kernels.

The structured form goes in as it was emitted, and comes out simplified and in dtypes and ops that the language has.
Renderers have linear kernels rewritten here, too, where a language has no vectors, or only narrow ones.
"""
