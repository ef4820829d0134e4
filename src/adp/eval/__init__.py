"""Environments, rollouts and scorers."""
