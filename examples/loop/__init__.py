"""From random weights to an agent that uses tools, on two cores: `python -m examples.loop`."""
