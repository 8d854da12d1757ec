"""Topics as records: created, opened, expanded, looked up, deleted; their policies and schemas.

Each reads a view, asks a rule, and commits if nothing has changed meanwhile.
"""
