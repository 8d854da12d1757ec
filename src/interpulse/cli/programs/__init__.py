"""Commands that serve until a signal ends them."""
