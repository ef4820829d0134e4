"""Trajectories or rendered rows in batches of Arrow: shuffled, cut into parts, gone on with."""
