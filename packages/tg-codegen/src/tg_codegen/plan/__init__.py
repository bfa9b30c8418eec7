"""Decisions: which loops a kernel is to have on a target.

A nest and a target go in, and a list of actions comes out, or the nest with them applied. Three decisions are no
actions yet and give another nest: values that a row reuses, outputs written in pieces, kernels in blocks of rows.
"""
