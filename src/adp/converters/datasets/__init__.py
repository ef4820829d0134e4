"""Data sets as data: recipes that say what rows are, and the engine that reads them."""
