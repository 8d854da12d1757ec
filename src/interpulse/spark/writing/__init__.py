"""The sink.

`writer` is Spark's entry point, `sink` writes the rows of one task, and `write_options` holds the options.
`message_writer` makes messages of rows; they are sent at least once by `publishing_writer`, or exactly once by
`row_lanes`. Entries are sent by `publishing_writer` or `lane_writer`. Both kinds of lanes use a `lane` over the
cluster, which `broker_target` implements. All get topics from `target_topics`. `sink_rows` reads rows.
"""
