"""Spans of traces: attributes in each convention, the tree, and the trajectories they tell."""
