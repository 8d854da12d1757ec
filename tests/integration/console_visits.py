"""The table of the console: who may see each page, and who may do each action.

A page or an action without a row is red. Tenant, namespace and topics are those of `tests.front_ends.access`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.front_ends.access import ALL, GONE, TENANT, TOPIC

__all__ = ["ACTION_ROWS", "PAGE_ROWS", "ActionRow", "PageRow"]


@dataclass(frozen=True)
class PageRow:
    """``allowed`` see the page, whatever it says to them; the others get the status ``refused``."""

    query: Mapping[str, str] = field(default_factory=dict)
    allowed: str = ALL
    refused: int = 401


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
}

ACTION_ROWS: Final[dict[str, ActionRow]] = {
    "expand-topic": ActionRow(
        {"topic": GONE, "partitions": "3"}, TENANT, 403, f"topics update-partitioned-topic {GONE} -p 3"
    ),
    "unload-topic": ActionRow({"topic": GONE}, TENANT, 401, f"topics unload {GONE}"),
    "create-missed-partitions": ActionRow(
        {"topic": TOPIC}, f"{TENANT} nprod ncons tprod tcons", 401, f"topics create-missed-partitions {TOPIC}"
    ),
}
