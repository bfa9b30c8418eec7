"""The cache on disk: its folder, its entries, what it consists of."""
