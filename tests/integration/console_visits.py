"""The table of the console: who may see each page, and who may do each action.

A page or an action without a row is red. Tenant, namespace and topics are those of `tests.front_ends.access`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.front_ends.access import ALL, GONE, TENANT, TOPIC


@dataclass(frozen=True)
class PageRow:
    """``allowed`` see the page, whatever it says to them; the others get the status ``refused``."""

    query: Mapping[str, str] = field(default_factory=dict)
    allowed: str = ALL
    refused: int = 401
    answered: int = 200
    """What those who may see it get."""


@dataclass(frozen=True)
class ActionRow:
    """``allowed`` may do it, to something that does not exist where it would change something."""

    fields: Mapping[str, str]
    allowed: str
    refused: int
    command: str
    """Behind ``interpulse-admin``."""


PAGE_ROWS: Final[dict[str, PageRow]] = {
    "overview": PageRow(),
    "replication": PageRow(),
    "topic": PageRow({"name": TOPIC}, f"{TENANT} nprod ncons tprod tcons"),
    "door": PageRow({"name": GONE}, f"{TENANT} nprod ncons"),
    "messages": PageRow({"name": TOPIC}, f"{TENANT} ncons tcons"),
    "message": PageRow({"name": TOPIC, "id": "0:0"}, f"{TENANT} ncons tcons", answered=404),
    "subscription": PageRow({"name": TOPIC, "subscription": "owned"}, f"{TENANT} nprod ncons tprod tcons"),
    "schemas": PageRow({"name": TOPIC}, f"{TENANT} nprod ncons tprod tcons"),
    "differences": PageRow({"namespace": "acme/app"}, TENANT, 403),
    "doctor": PageRow({"namespace": "acme/app"}, f"{TENANT} nprod ncons", 403),
    "broker": PageRow({}, "admin"),
}

_OWNED: Final = {"topic": TOPIC, "subscription": "gone"}
_SUBSCRIBERS: Final = f"{TENANT} ncons tcons"

ACTION_ROWS: Final[dict[str, ActionRow]] = {
    "expand-topic": ActionRow(
        {"topic": GONE, "partitions": "3"}, TENANT, 403, f"topics update-partitioned-topic {GONE} -p 3"
    ),
    "unload-topic": ActionRow({"topic": GONE}, TENANT, 401, f"topics unload {GONE}"),
    "create-missed-partitions": ActionRow(
        {"topic": TOPIC}, f"{TENANT} nprod ncons tprod tcons", 401, f"topics create-missed-partitions {TOPIC}"
    ),
    "skip-messages": ActionRow({**_OWNED, "count": "1"}, _SUBSCRIBERS, 401, f"topics skip {TOPIC} -s gone -n 1"),
    "skip-all-messages": ActionRow(_OWNED, _SUBSCRIBERS, 401, f"topics skip-all {TOPIC} -s gone"),
    "expire-messages": ActionRow(
        {**_OWNED, "time": "1d"}, _SUBSCRIBERS, 401, f"topics expire-messages {TOPIC} -s gone -t 1d"
    ),
    "reset-to-time": ActionRow(
        {**_OWNED, "time": "1d"}, _SUBSCRIBERS, 401, f"topics reset-cursor {TOPIC} -s gone -t 1d"
    ),
    "reset-to-position": ActionRow(
        {**_OWNED, "position": "0:0"}, _SUBSCRIBERS, 401, f"topics reset-cursor {TOPIC} -s gone -m 0:0"
    ),
    "delete-subscription": ActionRow(_OWNED, _SUBSCRIBERS, 401, f"topics unsubscribe {TOPIC} -s gone"),
    "create-partitioned-topic": ActionRow(
        {"topic": "persistent://acme/gone/t", "partitions": "2"},
        TENANT,
        401,
        "topics create-partitioned-topic persistent://acme/gone/t -p 2",
    ),
    "force-partition-count": ActionRow(
        {"topic": GONE, "partitions": "2"}, TENANT, 401, f"topics update-partitioned-topic {GONE} -p 2 -f"
    ),
    "create-topic": ActionRow(
        {"topic": "persistent://acme/gone/t"}, TENANT, 401, "topics create persistent://acme/gone/t"
    ),
    "delete-topic": ActionRow({"topic": GONE}, TENANT, 401, f"topics delete {GONE} -f"),
    "delete-partitioned-topic": ActionRow({"topic": GONE}, TENANT, 401, f"topics delete-partitioned-topic {GONE} -f"),
    "adjust-replication": ActionRow(
        {"namespace": "acme/app", "clusters": "gone", "digest": "0"},
        TENANT,
        401,
        "namespaces set-clusters acme/app -c gone --adjust-namespace-level-policies-automatically --plan-digest 0",
    ),
    "delete-schema": ActionRow({"topic": GONE}, TENANT, 401, f"schemas delete {GONE}"),
    "update-dynamic-config": ActionRow(
        {"key": "gone", "value": "1"}, "admin", 401, "brokers update-dynamic-config --config gone --value 1"
    ),
    "delete-dynamic-config": ActionRow({"key": "gone"}, "admin", 401, "brokers delete-dynamic-config --config gone"),
}
