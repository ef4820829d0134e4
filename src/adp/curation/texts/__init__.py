"""The words of trajectories: by role, as n-grams and shingles, as vectors."""
