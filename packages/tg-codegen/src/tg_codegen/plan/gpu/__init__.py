"""The planner for GPUs: work-groups, tiles of their items, shared memory."""
