"""A software GPU that executes AMD's machine code."""
