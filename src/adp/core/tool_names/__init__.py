"""Names of tools: those of sources, and the few that harnesses agree on."""
