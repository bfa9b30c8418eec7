"""One module a store; none knows another."""
