"""Every scenario of our client, for the suites that play them."""

from __future__ import annotations

from tests.scenarios import client, client_admin, client_compaction, client_consuming

SCENARIOS = (
    *client.SCENARIOS,
    *client_admin.SCENARIOS,
    *client_compaction.SCENARIOS,
    *client_consuming.SCENARIOS,
)
