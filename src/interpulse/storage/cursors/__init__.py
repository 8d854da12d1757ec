"""Stored cursors of subscriptions.

* `cursor_records`: the record of a cursor, and its JSON
* `cursor_store`: the seam to the store of cursors
* `merged`: two states of one cursor taken together
"""
