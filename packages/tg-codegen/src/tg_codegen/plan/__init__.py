"""Decisions: which actions a kernel is to have on a target.

A kernel and a target go in, and a list of actions comes out: what the parts are (values that a row reuses, outputs
written operand by operand, blocks of rows), then the loops of each part. Actions on the structured form, which overlap
walks over rows, are proposed when that form is there (:mod:`tg_codegen.plan.pipeline_rows`).
"""
