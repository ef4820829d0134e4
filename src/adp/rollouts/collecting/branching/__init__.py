"""Rollouts that branch where the model is unsure, as in ARPO (Dong et al. 2025, 2507.19849)."""
