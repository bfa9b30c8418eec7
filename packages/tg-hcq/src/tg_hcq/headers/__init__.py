"""Tables of hardware and kernel interfaces, from their public headers. Drivers and software GPUs both read them."""
