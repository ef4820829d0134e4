"""adp: the data workbench for agent trajectories."""
