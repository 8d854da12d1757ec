"""Producers: of applications (``producer``), of one partition behind it (``partition_producer``), of ready-made entries
(``entry_sender``). Entries are built in ``batcher`` and wait for their receipts in ``send_queue``.
"""
