"""Takeovers: one site of a pair is lost, and the other one serves."""
