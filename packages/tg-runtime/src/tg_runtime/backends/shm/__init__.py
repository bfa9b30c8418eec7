"""SHM: memory that processes share."""
