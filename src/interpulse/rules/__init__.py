"""Decisions as pure functions: a view of what is stored goes in, an answer and changes come out."""
