"""Readers for the run configurations of other systems."""
