"""Learning from rollouts: token sequences of episodes, their rewards, and GRPO that acts."""
