"""A client of OpenAI-compatible chat endpoints."""
