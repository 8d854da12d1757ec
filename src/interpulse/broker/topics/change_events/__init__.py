"""Topic policies as the brokers of a cluster exchange them: in the topic ``__change_events`` of each namespace.

* `event_codec` turns policies into its messages and back;
* `change_events` follows those topics and writes to them.
"""
