"""NULL: compiles for any target, runs nothing."""
