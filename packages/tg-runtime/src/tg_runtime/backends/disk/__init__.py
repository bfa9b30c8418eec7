"""DISK: a file as memory."""
