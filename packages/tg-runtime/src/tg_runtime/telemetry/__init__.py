"""Reports of the work that was done: counters, the profiler's trace, progress on the terminal."""
