"""Conversations written down as text, and the player that holds a server to them."""
