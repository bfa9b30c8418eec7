"""From outputs to schedule items: the way through the rooms below, and schedules remembered by structure."""
