"""The training loss of trajectories by a model: op `score`, and `trajectory_losses` for Python."""
