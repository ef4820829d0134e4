"""A person talks to a policy that acts in an environment; what is said becomes a trajectory."""
