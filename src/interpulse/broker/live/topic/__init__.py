"""A loaded topic, persistent or not: its subscriptions, the limits that policies set, and its statistics."""
