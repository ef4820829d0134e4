"""The Berkeley Function Calling Leaderboard: questions, checkers, environment, scorer, results."""
