"""Rollouts: one episode (`episode`), what it leaves (`recorder`), many at once (`collect`)."""
