"""Topic policies as brokers of a cluster exchange them: in the topic ``__change_events`` of each namespace."""
