"""Data generators: tasks and calls that are made up, carried out in an environment and kept."""
