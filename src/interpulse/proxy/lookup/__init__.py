"""Lookups of clients: `lookup_session` receives and answers them, `questions` and `batches` ask brokers."""
