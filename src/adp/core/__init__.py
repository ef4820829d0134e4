"""What several packages need."""
