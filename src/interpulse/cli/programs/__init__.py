"""Commands that serve until a signal stops them."""
