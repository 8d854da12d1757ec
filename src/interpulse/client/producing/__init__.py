"""Producers: ``producer`` of applications, ``partition_producer``, and ``entry_sender`` for prebuilt entries.

``batcher`` builds entries, which wait for their receipts in ``send_queue``.
"""
