"""The kinds of stages of a loop, a module a kind."""
