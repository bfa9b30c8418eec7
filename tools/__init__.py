"""Developer programs: `python -m tools.<name>` from the root of the repository."""
