"""Built-in devices, each offered by an entry point in the group ``tg.devices``."""
