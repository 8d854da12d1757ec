"""The cluster that is written to: its topics and schemas, and its partitions as targets of lanes."""
