"""What is done to a store, whatever its format: merge, drop, checks, statistics, redaction."""
