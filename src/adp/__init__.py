"""adp: the data workbench for agent trajectories."""

__version__ = "0.1.0"
