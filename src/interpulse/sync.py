"""Blocking client for programs without an event loop. Importing it starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interpulse.client.sync.client import Client, Consumer, Producer, Reader, TableView

if TYPE_CHECKING:
    from interpulse.client.sync.admin_client import AdminClient

__all__ = ["AdminClient", "Client", "Consumer", "Producer", "Reader", "TableView"]


def __getattr__(name: str) -> Any:
    """Load names that need the HTTP library at their first use."""
    if name != "AdminClient":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from interpulse.client.sync.admin_client import AdminClient

    return AdminClient
