"""What the exporters for agent harnesses share: turns, actions, texts of calls, prompts."""
