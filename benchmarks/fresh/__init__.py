"""Tasks for agents that nobody tuned for: neither rules nor training rows were chosen after their failures."""
