"""Planners for processors: vectors, register tiles, what is packed, threads, and what is fetched ahead.

:mod:`.planner` decides which dimension has the lanes and asks the others, each of which is given the planner and does
one thing to its nest: :mod:`.registers` chooses a tile, :mod:`.packing` and :mod:`.packed_blocks` what of an operand is
copied to scratch (:mod:`.panels`), :mod:`.reduction_pieces` cuts long reductions. :mod:`.plan_cost` says what a whole
plan takes.
"""
