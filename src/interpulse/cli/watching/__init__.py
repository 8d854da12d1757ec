"""Commands ``interpulse top`` and ``interpulse check``, which show a cluster's state from the admin API alone."""
