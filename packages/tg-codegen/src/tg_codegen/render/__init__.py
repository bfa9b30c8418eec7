"""Text: a list of UOps goes in, and the source of a kernel in one language comes out.

Renderers know no loop nest and no plan: what they are given runs as it stands. There is a folder for the C family and
one for each other language; none imports another, and beside them stands what they share.
"""
