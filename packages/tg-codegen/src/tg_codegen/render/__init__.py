"""Text: a list of UOps goes in, and the source of a kernel in one language comes out.

Renderers know no loop nest and no plan: what they are given runs as it stands. Each has a module; those that resemble C
share :mod:`tg_codegen.render.cstyle`.
"""
