"""Tail of a lost site: the messages that a takeover left behind, and the keys that both sites have written since."""
