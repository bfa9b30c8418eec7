"""AMD: KFD's ioctls, packets, registers, kernel descriptors. All but ``aql`` is made by tools/amd_headers.py."""
