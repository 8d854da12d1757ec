"""Source of the data source: `reader` has the classes that Spark calls.

`planner` plans micro-batches on the driver, from the cluster as `source_view` shows it; `fetch` reads the ranges of a
task on its executor.
"""
