"""Producers of a topic: who they are, how much they may send, and which of their messages came before."""
