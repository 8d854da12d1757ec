"""The client for programs without an event loop. Importing it starts nothing."""

from interpulse.client.sync import Client, Consumer, Producer, Reader, TableView

__all__ = ["Client", "Consumer", "Producer", "Reader", "TableView"]
