"""The environment ``openapi``: see `adp.rollouts.environments.openapi.environment`."""
