"""Questions of clients: `lookup_session` takes them, `answers` makes frames, `questions` and `batches` ask brokers."""
