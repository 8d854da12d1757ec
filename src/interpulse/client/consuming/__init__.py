"""Consumers, readers and table views (``consumer``, ``reader``, ``table_view``), and the ``entry_reader``.

A consumer or reader has ``partition_consumers``, one ``partition_consumer`` per topic or partition. Its messages wait
in the ``inbox``, its acknowledgements in the ``ack_tracker``.
"""
