"""Recipes, ops and the ledger."""
