"""End-to-end tests."""
