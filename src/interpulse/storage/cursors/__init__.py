"""Cursors of subscriptions, as they are stored.

* `cursor_records`: the record of one, and its JSON; `cursor_store`: the seam to where they are kept
"""
