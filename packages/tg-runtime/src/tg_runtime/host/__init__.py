"""The host: its system's calls, its processor, its tools, objects loaded into executable memory."""
