"""Trying a model on tasks while it is trained, keeping the best one, and stopping early."""
