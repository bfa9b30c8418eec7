"""Speed, measured beside the other frameworks: ``python -m bench``."""
