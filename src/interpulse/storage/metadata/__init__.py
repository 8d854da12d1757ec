"""Metadata stores: SQLite, and wrappers that guard commits or bound reads."""
