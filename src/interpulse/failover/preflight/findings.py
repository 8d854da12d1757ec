"""Findings of a preflight, and the table of their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from interpulse.model.adjustments import AUDITED_KINDS, Severity

_SHOWN_MAX: Final = 3


class CheckKind(StrEnum):
    """Kinds of findings besides those of an audit."""

    NOT_COPIED = "NOT_COPIED"
    WAY_BACK_MISSING = "WAY_BACK_MISSING"
    NO_SOURCE_POSITIONS = "NO_SOURCE_POSITIONS"
    DEDUP_OFF = "DEDUP_OFF"
    LAG = "LAG"
    SUBSCRIPTION_NOT_MARKED = "SUBSCRIPTION_NOT_MARKED"
    SUBSCRIPTION_BEHIND = "SUBSCRIPTION_BEHIND"
    EXCLUSIVE_PRODUCERS = "EXCLUSIVE_PRODUCERS"
    READERS = "READERS"
    CUMULATIVE_ACKS = "CUMULATIVE_ACKS"
    LEDGERS_LOWER = "LEDGERS_LOWER"
    REDIRECT_ABORTS = "REDIRECT_ABORTS"
    CLIENTS_NOT_MOVED = "CLIENTS_NOT_MOVED"
    CAPACITY = "CAPACITY"
    TTL_SHORTER = "TTL_SHORTER"
    RETENTION_SHORTER = "RETENTION_SHORTER"
    COMPACTED = "COMPACTED"
    DELAYED = "DELAYED"
    TRANSACTIONS = "TRANSACTIONS"
    PERMISSION_OF_OURS = "PERMISSION_OF_OURS"
    CLOCKS = "CLOCKS"
    ROLE = "ROLE"


MEANINGS: Final[dict[CheckKind, tuple[str, str]]] = {
    CheckKind.NOT_COPIED: ("error", "nothing copies a topic to the other site"),
    CheckKind.WAY_BACK_MISSING: ("error; warning with `--one-way`", "nothing copies a topic back"),
    CheckKind.NO_SOURCE_POSITIONS: ("error", "copies do not name their source, as those of Pulsar before 4.0"),
    CheckKind.DEDUP_OFF: ("error", "a site that a replication job writes to does not de-duplicate"),
    CheckKind.LAG: ("warning", "more messages than `lag_messages_max` are not copied yet"),
    CheckKind.SUBSCRIPTION_NOT_MARKED: ("warning", "a durable subscription is in use, and its position stays behind"),
    CheckKind.SUBSCRIPTION_BEHIND: ("warning", "acknowledgements of more than 10 s ago have not been carried"),
    CheckKind.EXCLUSIVE_PRODUCERS: (
        "error where messages go to; warning where they come from",
        "an exclusive producer shuts copies out, and a fence breaks it",
    ),
    CheckKind.READERS: ("warning", "a reader of an official client sees nothing until it is restarted"),
    CheckKind.CUMULATIVE_ACKS: (
        "warning",
        "a consumer of an official client may filter messages until it is restarted",
    ),
    CheckKind.LEDGERS_LOWER: ("warning", "such clients exist, and the other site has lower ledger numbers"),
    CheckKind.REDIRECT_ABORTS: ("warning", "a client of release C++ 4.2 may end when it is redirected"),
    CheckKind.CLIENTS_NOT_MOVED: ("error", "redirects are to move clients, and Apache Pulsar cannot redirect"),
    CheckKind.CAPACITY: ("warning", "a limit of the other site is below what this one carries"),
    CheckKind.TTL_SHORTER: ("warning", "messages expire within the longest expected outage (`--outage`)"),
    CheckKind.RETENTION_SHORTER: ("warning", "no cursor of a replicator and no retention keeps messages that long"),
    CheckKind.COMPACTED: ("info", "compacted topics: late messages may be older than the value of their key"),
    CheckKind.DELAYED: ("info", "delayed messages become due by the clock of the other site"),
    CheckKind.TRANSACTIONS: ("info", "messages of open transactions are not copied"),
    CheckKind.PERMISSION_OF_OURS: ("error", "the role of the command lacks a permission"),
    CheckKind.CLOCKS: ("warning", "the clocks of the sites differ by more than 5 s"),
    CheckKind.ROLE: ("error", "the roles of the sites contradict each other"),
}
"""Severity and meaning of each kind, for the reference."""

KINDS: Final = (*CheckKind, *AUDITED_KINDS)
"""All kinds by name, for ``--accept``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding at one site, with the command or the act that removes it.

    ``subjects`` are the topics, subscriptions, clients or namespaces that it is about; none: the whole site.
    """

    kind: str
    severity: Severity
    site: str
    what: str
    remedy: str
    subjects: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The first subjects, and the number of the others."""
        more = len(self.subjects) - _SHOWN_MAX
        shown = ", ".join(self.subjects[:_SHOWN_MAX])
        return f"{shown} and {more} more" if more > 0 else shown

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": str(self.kind),
            "severity": str(self.severity),
            "site": self.site,
            "subjects": list(self.subjects),
            "what": self.what,
            "remedy": self.remedy,
        }
