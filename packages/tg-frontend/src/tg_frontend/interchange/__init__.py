"""Memory shared with other libraries."""
