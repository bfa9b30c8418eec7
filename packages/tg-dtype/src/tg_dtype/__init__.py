"""Data types: promotion lattice, exact host casts, interchange tables."""
