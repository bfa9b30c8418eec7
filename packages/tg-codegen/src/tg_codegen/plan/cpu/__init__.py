"""Planners for processors: vectors, register tiles, what is packed, threads, and what is fetched ahead.

:mod:`.planner` decides which dimension has the lanes and asks the others: :mod:`.registers` for a tile, :mod:`.packing`
for what is kept in scratch, :mod:`.plan_cost` for what a whole plan takes.
"""
