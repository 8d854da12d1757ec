"""The promise of a broker to a task that copies entries behind a replication cursor.

A reader of the topic names the cursor in a property of its consumer. The broker then answers GET_LAST_MESSAGE_ID with
the mark-delete position of that cursor. For :data:`VALID_S` seconds from this request on, the task may send the entries
behind the position without asking again: a skip that is answered in that time moved the cursor before the request. The
broker delays the answer to a later skip by :data:`HELD_S` seconds, which is longer, since clocks and turns of event
loops differ. The promise ends with the consumer: policies that close the cursor close it too, and may open another
cursor at once. Brokers of Apache Pulsar ignore the property.
"""

from __future__ import annotations

from typing import Final

CURSOR_PROPERTY: Final = "interpulse.replicationCursor"
ENTRY_READER_PROPERTY: Final = "interpulse.entryReader"
"""Consumer property of all readers of whole entries, whose positions are those of one cluster."""
REPLICATION_CURSORS: Final = "pulsar.repl."
"""The prefix of replication cursors, for which a job asks for promises."""
RESERVED_SUBSCRIPTIONS: Final = ("pulsar.", "interpulse.", "__")
"""The prefixes of cursors and subscriptions that no client of users has."""
HELD_S: Final = 2.0
VALID_S: Final = 1.5
