"""Topic policies as the brokers of a cluster exchange them: in the topic ``__change_events`` of each namespace.

* `event_schema` is the Avro definition of its messages, `event_codec` turns them into policies and back;
* `event_reading` returns the latest policies of each topic;
* `change_events` follows those topics and writes to them.
"""
