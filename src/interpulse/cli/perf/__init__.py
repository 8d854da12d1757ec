"""Command ``interpulse perf``: scheduled load on a cluster and its measurement; see `commands`."""
