"""Inspection of a pipeline, whether or not its job runs.

Only leftover cursors are ever changed; Spark is not needed.

`inspection` asks the clusters. `dry_run`, `lag`, `why` and `cursors` answer one question each, with a `Finding`.
"""
