"""The source: `reader` is what Spark calls, `planner` plans micro-batches on the driver over what `source_view` knows
of the cluster, `fetch` reads the ranges of a task on its executor, `read_options` holds the options.
"""
