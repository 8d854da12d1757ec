"""Durable state behind three seams: metadata store, log store, log. Entries are opaque bytes here."""
