"""Looking at a pipeline, whether its job runs or not. Only cursors that are left are ever changed; no Spark is needed.

`inspection` asks the clusters; `dry_run`, `lag`, `why` and `cursors` are what one can ask, and a `Finding` is how each
ends.
"""
