"""Reconciliation: a site that was lost answers again, and both sites get what only the other one has."""
