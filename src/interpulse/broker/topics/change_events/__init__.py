"""Policies of topics as the brokers of a cluster tell each other: in the topic ``__change_events`` of each namespace.

* `event_schema` is the Avro definition of its messages, `event_codec` turns them into policies and back;
* `event_reading` is what they say last of each topic;
* `change_events` follows those topics and writes to them.
"""
