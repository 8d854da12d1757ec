"""The name that a cluster gives itself, compared with its registered one.

Messages carry the name of the cluster they come from, and a cluster that finds its own name there does not
send them back. So a wrong name breaks the prevention of loops, in silence.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from interpulse.model.clusters import shown_address
from interpulse.model.errors import AuthorizationError, NotFound

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

__all__ = ["misnamed"]

log = logging.getLogger(__name__)


async def misnamed(admin: AdminClient, given: str, address: str) -> str | None:
    """What is wrong with the name ``given`` to the cluster that is asked, as a clause; None if it is its own.

    ``address`` is shown to people. A real Pulsar tells its name to super-users alone, but the clusters it knows to
    everybody, and it is one of them; whether it is the right one is then believed with a warning. Raises what a cluster
    raises that gives no answer.
    """
    where = f"the cluster at {shown_address(address)}"
    own = await _own_name(admin)
    if own is not None:
        return None if own == given else f"{where} calls itself {own}, not {given}"
    known = await _known_names(admin)
    if known and given not in known:
        return f"{where} knows no cluster {given}, so it is another one; it knows {', '.join(sorted(known))}"
    log.warning(
        "cluster name not checked: only a super-user may ask for it cluster=%s address=%s",
        given,
        shown_address(address),
    )
    return None


async def _own_name(admin: AdminClient) -> str | None:
    """``clusterName`` of its configuration; None from one that does not tell us."""
    try:
        configuration = await admin.brokers.runtime_configuration()
    except (AuthorizationError, NotFound):
        return None
    return configuration.get("clusterName") or None


async def _known_names(admin: AdminClient) -> list[str]:
    """Empty where we may not know, and on a cluster that is just being set up."""
    try:
        return await admin.clusters.list()
    except (AuthorizationError, NotFound):
        return []
