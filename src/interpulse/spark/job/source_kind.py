"""Which kind of cluster the source is, and what the cursor of a pipeline is called there."""

from __future__ import annotations

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import AuthorizationError, NotFound
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.wire.commands.cursor_promise import REPLICATION_CURSORS

__all__ = ["cursor_name", "is_interpulse"]


async def is_interpulse(admin: AdminClient) -> bool:
    """Whether the cluster behind an admin API is of our kind: it keeps replication cursors and status records.

    Raises what a cluster that gives no answer raises: taken for a no, replication would go on at another cursor.
    """
    try:
        return "replicationJob" in await admin.brokers.runtime_configuration()
    except (AuthorizationError, NotFound):
        return False


async def cursor_name(admin: AdminClient, config: PipelineConfig, remote: str) -> str:
    """The durable cursor on the source. On a real Pulsar ``pulsar.repl.*`` belongs to its own replicator."""
    return f"{REPLICATION_CURSORS}{remote}" if await is_interpulse(admin) else f"interpulse.{config.name}"
