"""Anomaly mode: what each kernel wrote is looked at, and the operation that made a NaN is named."""
