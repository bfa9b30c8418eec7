"""The planner for GPUs: work-groups, tiles of their items (:mod:`.tiles`), shared memory."""
