"""Requests to models and their replies: the APIs, what logs wrap around them, and event streams."""
