"""Evolving trajectories: six operators that make new ones of those that a store holds."""
