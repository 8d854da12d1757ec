"""``interpulse perf``: load with a schedule of its own, and what the cluster makes of it; `commands` are the front."""
