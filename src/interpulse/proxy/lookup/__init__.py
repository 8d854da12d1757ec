"""Lookups of clients: `lookup_session` receives them, `answers` makes frames, `questions` and `batches` ask brokers."""
