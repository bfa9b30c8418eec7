"""Fourier transforms of every length in O(n log n), and spectra over time."""
