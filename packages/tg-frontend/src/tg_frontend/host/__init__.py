"""Data of the host: nested lists, bytes and arrays, and what stands for a dtype."""
