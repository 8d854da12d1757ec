"""The sink: `writer` is what Spark calls, `sink` writes the rows of one task, `write_options` holds the options.

Exactly once: `lane_writer` over the cluster as `broker_target` shows it. At least once: `publishing_writer`. Both fill
in a `lane_report`, and find topics and schemas through `target_topics` and `target_schemas`. `sink_rows` reads rows.
"""
