"""The table of front ends: what each command sees in each state of a topic, the same through all of them.

Ids name the source: ``pip344-row5`` is row 5 of the new behaviour of PIP-344, ``pip414-...`` a state of PIP-414,
``create-...``, ``expand-...`` and so on an administrative operation. Where real Pulsar answers otherwise and we do not
follow, the row says so with its reason; there is no other difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain
from tests.front_ends.operations import OPERATIONS
from tests.front_ends.rows import (
    ABOVE,
    BASE_NAME,
    DELETED,
    FOREIGN,
    FULL,
    MISSING,
    NO_METADATA,
    NOT_FOUND,
    NOTHING,
    NOWHERE,
    OFF,
    OK,
    ON,
    OUTSIDE,
    REFUSED,
    REMOTE,
    TWO,
    Differs,
    Row,
    opened,
)

WHOLE: Final = "x-partition-0 x-partition-1 x-partition-2 x=3"
HOLED: Final = "x-partition-0 x-partition-2 x=3"

ONE_QUESTION: Final = "over HTTP it would differ from the binary protocol: the metadata makes such a partition exist"
FINAL: Final = "the failure is permanent, and 6 lets clients of the C++ family ask again until their timeout"


def seen(
    id: str,
    name: str,
    creating: str,
    asking: str,
    opening: str,
    *,
    there: str = "",
    lookup: str = OK,
    http: str = OK,
    stats: str | None = None,
    subscribing_only: str | None = None,
    namespace: str = ON,
    domain: Domain = PERSISTENT,
    partitions: int = 0,
    differs: Mapping[str, Differs] | None = None,
) -> Row:
    """One state, seen by every command: metadata with and without creation, lookup, and a client that opens the topic.

    A question that does not create loads what is stored, and a non-persistent partition always, since nothing is stored
    of it. A client asks for the metadata first, so it opens the partitions of a partitioned topic although none can
    open that name itself. ``partitions`` is the count that a missing topic gets.
    """
    loaded = name in there.split() or (domain == NON_PERSISTENT and "-partition-" in name)
    count = int(creating) if creating.isdigit() else 0
    by_client = creating if not creating.isdigit() else OK if count else opening
    created = f"x={partitions}" if partitions else there
    left = {"partitions create": created}
    if opening == OK:
        left |= dict.fromkeys(("producer", "subscribe"), opened(there, name, 0, domain))
    if by_client == OK:
        left |= dict.fromkeys(("open producer", "open consumer"), opened(created, name, count, domain))
    answers = {
        "partitions create": creating,
        "partitions": asking,
        "lookup": lookup,
        "http lookup": http,
        "producer": opening,
        "subscribe": opening,
        "subscribe only": subscribing_only or (opening if loaded else NOT_FOUND),
        "open producer": by_client,
        "open consumer": by_client,
        "stats": stats or (opening if loaded else NOT_FOUND),
    }
    if namespace not in (MISSING, DELETED):
        records = there.split()
        answers["list"] = " ".join(sorted(record for record in records if "=" not in record)) or NOTHING
        answers["list partitioned"] = "x" if any("=" in record for record in records) else NOTHING
    return Row(id, name, answers, there, left, namespace, domain, differs=differs or {})


PIP414: Final = (
    seen("pip344-row4-nothing-auto-on", "x", "0", NOT_FOUND, OK),
    seen("pip344-row7-nothing-auto-off", "x", NOT_FOUND, NOT_FOUND, NOT_FOUND, http=NOT_FOUND, namespace=OFF),
    seen("pip414-partition-of-nothing-auto-on", "x-partition-0", "0", NOT_FOUND, NO_METADATA),
    seen(
        "pip414-partition-of-nothing-auto-off", "x-partition-0", NOT_FOUND, NOT_FOUND, NOT_FOUND,
        http=NOT_FOUND, namespace=OFF,
    ),
    seen("pip344-row1-plain", "x", "0", "0", OK, there="x"),
    seen("pip344-row1-plain-auto-off", "x", "0", "0", OK, there="x", namespace=OFF),
    seen("pip414-partition-of-plain-auto-on", "x-partition-2", "0", NOT_FOUND, NO_METADATA, there="x"),
    seen("pip344-row2-partitioned-auto-on", "x", "3", "3", BASE_NAME, there=WHOLE),
    seen("pip344-row2-partitioned-auto-off", "x", "3", "3", NOT_FOUND, there=WHOLE, namespace=OFF),
    seen("pip414-partition", "x-partition-2", "0", "0", OK, there=WHOLE),
    seen("pip414-partition-auto-off", "x-partition-2", "0", "0", OK, there=WHOLE, namespace=OFF),
    seen("pip414-outside", "x-partition-3", NOT_FOUND, NOT_FOUND, NOT_FOUND, there=WHOLE, http=NOT_FOUND),
    seen("pip414-record-lost-auto-on", "x-partition-1", "0", NOT_FOUND, OK, there=HOLED),
    seen("pip414-record-lost-auto-off", "x-partition-1", "0", NOT_FOUND, OK, there=HOLED, namespace=OFF),
    seen("pip414-metadata-lost", "x-partition-0", "0", "0", NO_METADATA, there="x-partition-0"),
    seen("pip414-metadata-lost-auto-off", "x-partition-0", "0", "0", NO_METADATA, there="x-partition-0", namespace=OFF),
    seen(
        "pip414-metadata-lost-base-auto-off", "x", NOT_FOUND, NOT_FOUND, NOT_FOUND,
        there="x-partition-0", http=NOT_FOUND, namespace=OFF,
    ),
    seen("pip414-metadata-lost-base-auto-on", "x", "0", NOT_FOUND, OK, there="x-partition-0"),
    seen("pip414-both-kinds", "x", "3", "3", BASE_NAME, there=f"{WHOLE} x"),
    seen("pip414-both-kinds-auto-off", "x", "3", "3", BASE_NAME, there=f"{WHOLE} x", namespace=OFF),
    seen("pip414-orphan", "x-partition-7", "0", "0", OUTSIDE, there=f"{WHOLE} x-partition-7"),
    seen("pip414-no-partition-name", "x-partition-01", "0", NOT_FOUND, OK, there=WHOLE),
    seen("pip414-partition-of-a-system-topic", "x__transaction_pending_ack-partition-0", "0", NOT_FOUND, NO_METADATA,
         namespace=OFF),
    Row(
        "pip414-transaction-internal", "x__transaction_pending_ack",
        {"partitions create": "0", "partitions": NOT_FOUND, "lookup": OK, "producer": REFUSED, "subscribe": REFUSED},
    ),
    seen("pip414-letter-topic-of-a-partition", "x-partition-0-DLQ", "0", NOT_FOUND, OK, there=WHOLE),
)  # fmt: skip
"""PIP-414: what each command sees of a name that agrees, or does not agree, with its partition metadata.

Four of the states are at the same time rows of PIP-344, and its six cases of asking for the partitions of a topic.
"""

_NOT_LOADED: Final = {
    f"{front_end} partitions": Differs(NOT_FOUND, ONE_QUESTION)
    for front_end in ("rest", "cli", "client-http", "java-http", "java-admin")
}

PIP414_NON_PERSISTENT: Final = (
    seen("pip414-np-nothing-auto-on", "x", "0", NOT_FOUND, OK, domain=NON_PERSISTENT),
    seen("pip414-np-nothing-auto-off", "x", NOT_FOUND, NOT_FOUND, NOT_FOUND, namespace=OFF, domain=NON_PERSISTENT),
    seen("pip414-np-partition-of-nothing-auto-on", "x-partition-0", "0", NOT_FOUND, NO_METADATA, domain=NON_PERSISTENT),
    seen(
        "pip414-np-partition-of-nothing-auto-off", "x-partition-0", NOT_FOUND, NOT_FOUND, NO_METADATA,
        namespace=OFF, domain=NON_PERSISTENT,
    ),
    seen("pip414-np-partitioned-auto-on", "x", "3", "3", BASE_NAME, there="x=3", domain=NON_PERSISTENT),
    seen(
        "pip414-np-partitioned-auto-off", "x", "3", "3", NOT_FOUND, there="x=3", namespace=OFF, domain=NON_PERSISTENT
    ),
    seen("pip414-np-partition", "x-partition-2", "0", "0", OK, there="x=3", domain=NON_PERSISTENT, differs=_NOT_LOADED),
    seen(
        "pip414-np-partition-auto-off", "x-partition-2", "0", "0", OK,
        there="x=3", namespace=OFF, domain=NON_PERSISTENT, differs=_NOT_LOADED,
    ),
    seen("pip414-np-outside", "x-partition-3", NOT_FOUND, NOT_FOUND, OUTSIDE, there="x=3", domain=NON_PERSISTENT),
)  # fmt: skip
"""The same for topics that have no record: they exist while they are loaded, and their partitions with the metadata."""

PIP344: Final = (
    seen("pip344-row3", "x-partition-1", "0", NOT_FOUND, NO_METADATA, namespace=TWO),
    seen("pip344-row5", "x", "2", NOT_FOUND, OK, namespace=TWO, partitions=2),
    seen("pip344-row5-non-persistent", "x", "2", NOT_FOUND, OK, namespace=TWO, partitions=2, domain=NON_PERSISTENT),
    seen("pip344-row5-letter-topic", "x-DLQ", "0", NOT_FOUND, OK, namespace=TWO),
    seen("pip344-namespace-missing", "x", NOT_FOUND, NOT_FOUND, "error 6",
         lookup=NOT_FOUND, http=NOT_FOUND, namespace=MISSING),
    seen("pip344-namespace-being-deleted", "x", NOT_FOUND, NOT_FOUND, NOT_FOUND,
         lookup=NOT_FOUND, http=NOT_FOUND, namespace=DELETED),
    Row(
        "pip344-namespace-of-another-cluster", "x",
        {"partitions create": {"binary": "error 1", "rest": "412"}, "partitions": {"binary": NOT_FOUND, "rest": "412"}},
        namespace=FOREIGN, front_ends=("binary", "rest"),
    ),
    Row(
        "pip344-namespace-without-clusters", "x",
        {"partitions create": {"binary": "error 1", "rest": "412"}, "partitions": {"binary": NOT_FOUND, "rest": "412"}},
        namespace=NOWHERE, front_ends=("binary", "rest"),
    ),
    Row(
        "pip344-default-above-the-maximum", "x", {"partitions create": REFUSED, "partitions": NOT_FOUND},
        namespace=ABOVE, front_ends=("binary", "rest"),
        differs={
            "binary partitions create": Differs("error 6", FINAL), "rest partitions create": Differs("500", FINAL),
        },
    ),
    Row(
        "pip344-topic-limit", "x", {"partitions create": REFUSED, "partitions": NOT_FOUND},
        namespace=FULL, front_ends=("binary", "rest"), differs={"binary partitions create": Differs("error 6", FINAL)},
    ),
    Row(
        "pip344-row6-partitioned-elsewhere", "x", {"partitions create": "4", "partitions": NOT_FOUND},
        left={"partitions create": "x=4"}, namespace=REMOTE, beyond="x=4",
    ),
    Row(
        "pip344-row6-one-topic-elsewhere", "x", {"partitions create": "0", "partitions": NOT_FOUND},
        namespace=REMOTE, beyond="x",
    ),
    Row(
        "pip344-row5-nowhere-else", "x", {"partitions create": "2", "partitions": NOT_FOUND},
        left={"partitions create": "x=2"}, namespace=REMOTE,
    ),
    Row(
        "pip344-row6-partition-name", "x-partition-1", {"partitions create": "0", "partitions": NOT_FOUND},
        namespace=REMOTE, beyond="x=4 x-partition-1",
    ),
    Row(
        "pip344-body", "x",
        {
            "partitions body": '{"deleted":false,"partitions":3,"properties":{"p":"v"}}',
            "partitions create body": '{"deleted":false,"partitions":3}',
        },
        there="x=3+",
    ),
    Row(
        "pip344-body-without-properties", "x",
        dict.fromkeys(("partitions body", "partitions create body"), '{"deleted":false,"partitions":3}'), there="x=3",
    ),
    Row(
        "pip344-body-plain", "x",
        dict.fromkeys(("partitions body", "partitions create body"), '{"deleted":false,"partitions":0}'), there="x",
    ),
)  # fmt: skip
"""PIP-344: what is not a matter of consistency; rows 1, 2, 4 and 7 stand among the states of PIP-414."""

ROWS: Final = (*PIP344, *PIP414, *PIP414_NON_PERSISTENT, *OPERATIONS)
