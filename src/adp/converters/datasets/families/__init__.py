"""The ways in which rows become runs, a module each; a recipe names its way under ``reader``."""
