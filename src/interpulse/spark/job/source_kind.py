"""Kind of the source cluster, and the name of a pipeline's cursor there."""

from __future__ import annotations

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import AuthorizationError, NotFound
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.wire.cursor_promise import REPLICATION_CURSORS


async def is_interpulse(admin: AdminClient) -> bool:
    """Return True if the cluster keeps replication cursors and status records, as ours do.

    Raises the error of a cluster that does not answer: taken for a no, replication would continue at another cursor.
    """
    try:
        return "replicationJob" in await admin.brokers.runtime_configuration()
    except (AuthorizationError, NotFound):
        return False


async def cursor_name(admin: AdminClient, config: PipelineConfig, remote: str) -> str:
    """Return the name of the durable cursor. On Apache Pulsar, ``pulsar.repl.*`` belongs to its own replicator."""
    return f"{REPLICATION_CURSORS}{remote}" if await is_interpulse(admin) else f"interpulse.{config.name}"
