"""Languages of the C family: one writer, :mod:`~tg_codegen.render.c.cstyle`, and a table of words for each language."""
