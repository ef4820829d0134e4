"""Acting: environments, policies, experts, and the collection of episodes in a store."""
