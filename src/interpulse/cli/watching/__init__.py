"""``interpulse top`` and ``interpulse check``: what operators look at, by the admin API alone."""
