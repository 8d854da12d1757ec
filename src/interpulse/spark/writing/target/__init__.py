"""The cluster that is written to: its topics and schemas, and the partitions as lanes write to them."""
