"""Consumers, readers and table views of applications (``consumer``, ``reader``, ``table_view``); the reader of entries
(``entry_reader``).

Behind a consumer or reader stand its ``partition_consumers``, one ``partition_consumer`` per topic or partition: its
messages wait in the ``inbox``, its acknowledgements in the ``ack_tracker``.
"""
