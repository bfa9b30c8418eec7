"""Symbolic integers with bounds, strided views and the ShapeTracker."""
