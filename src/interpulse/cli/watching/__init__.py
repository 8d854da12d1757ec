"""Commands ``interpulse top`` and ``interpulse check``: a cluster's state as an operator sees it, from the admin API
alone.
"""
