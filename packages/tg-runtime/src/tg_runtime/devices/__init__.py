"""Where devices were, for installations that have not read the new entry points."""
