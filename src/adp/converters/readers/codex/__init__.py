"""Sessions of Codex: rollouts of all ages, and what its forks write in the same form."""
