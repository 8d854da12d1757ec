"""The sink: `writer` is what Spark calls, `sink` writes the rows of one task, `write_options` holds the options.

`message_writer` makes messages of rows; they leave at least once through `publishing_writer`, exactly once through
`row_lanes`. Entries leave through `publishing_writer` or `lane_writer`. Both kinds of lanes are a `lane` over the
cluster as `broker_target` shows it. All fill in a `lane_report`, and find topics and schemas through `target_topics`
and `target_schemas`. `sink_rows` reads rows.
"""
