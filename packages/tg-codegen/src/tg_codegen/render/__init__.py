"""Text: a list of UOps goes in, and the source of a kernel in one language comes out.

Renderers know no loop nest and no plan: what they are given runs as it stands. Those that resemble C are tables
(:mod:`tg_codegen.render.dialect`), of which :mod:`tg_codegen.render.cstyle` writes kernels; the others have modules of
their own.
"""
