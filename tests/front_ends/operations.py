"""Rows of the table on administrative operations: what may be created, expanded and deleted, in which state.

The answer is the status of HTTP, which all front ends to the admin API show.
"""

from __future__ import annotations

from typing import Final

from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain
from tests.front_ends.rows import DELETED, FOREIGN, FULL, MISSING, OFF, ON, TWO, Differs, Row

WHOLE: Final = "x-partition-0 x-partition-1 x-partition-2 x=3"
HOLED: Final = "x-partition-0 x-partition-2 x=3"
FOUR: Final = "x-partition-0 x-partition-1 x-partition-2 x-partition-3 x=4"
TWO_PARTITIONS: Final = "x-partition-0 x-partition-1 x=2"

NOT_YET: Final = "a rule of later releases: what changes when it is trimmed cannot be created"


def done(
    id: str,
    question: str,
    status: int,
    *,
    name: str = "x",
    there: str = "",
    left: str | None = None,
    namespace: str = ON,
    domain: Domain = PERSISTENT,
    front_ends: tuple[str, ...] = ("rest", "cli", "java-admin"),
    differs: Differs | None = None,
) -> Row:
    """One operation in one state; without ``left`` it changes no record."""
    after = {} if left is None else {question: left}
    answers = {question: str(status)}
    return Row(
        id, name, answers, there, after, namespace, domain, front_ends, {} if differs is None else {question: differs}
    )


REST_ONLY: Final = ("rest",)
NO_JAVA: Final = ("rest", "cli")  # the Java client refuses it without asking
NP: Final = NON_PERSISTENT

CREATE_PARTITIONED: Final = (
    done("create-partitioned", "create partitioned 3", 204, left=WHOLE),
    done("create-partitioned-np", "create partitioned 3", 204, left="x=3", domain=NP),
    done("create-partitioned-namespace-missing", "create partitioned 3", 404, namespace=MISSING),
    done("create-partitioned-namespace-being-deleted", "create partitioned 3", 404, namespace=DELETED),
    done("create-partitioned-namespace-of-another-cluster", "create partitioned 3", 412, namespace=FOREIGN),
    done("create-partitioned-partition-name", "create partitioned 3", 412, name="x-partition-0"),
    done("create-partitioned-mark-anywhere", "create partitioned 3", 412, name="x-partition-abc"),
    done(
        "create-partitioned-np-partition-name", "create partitioned 3", 412, name="x-partition-0", domain=NP,
        differs=Differs("204", "partitions of a partition could never be opened", left="x-partition-0=3"),
    ),
    done(
        "create-partitioned-np-mark-anywhere", "create partitioned 3", 204, name="x-partition-abc", domain=NP,
        left="x-partition-abc=3",
    ),
    done("create-partitioned-transaction-internal", "create partitioned 3", 400, name="x__transaction_pending_ack"),
    done(
        "create-partitioned-trailing-blank", "create partitioned 2", 412, name="x ", front_ends=REST_ONLY,
        differs=Differs("204", NOT_YET, left="x+-partition-0 x+-partition-1 x+=2"),
    ),
    done("create-partitioned-none", "create partitioned 0", 406, front_ends=NO_JAVA),
    done("create-partitioned-negative", "create partitioned -1", 406, front_ends=REST_ONLY),
    done("create-partitioned-above-the-maximum", "create partitioned 11", 406),
    done("create-partitioned-topic-limit", "create partitioned 2", 412, namespace=FULL),
    done("create-partitioned-plain-exists", "create partitioned 3", 409, there="x"),
    done("create-partitioned-exists", "create partitioned 3", 409, there=WHOLE),
    done("create-partitioned-being-deleted", "create partitioned 3", 409, there="x=3!"),
    done("create-partitioned-both-kinds", "create partitioned 3", 409, there=f"{WHOLE} x"),
    done("create-partitioned-metadata-lost", "create partitioned 3", 204, there="x-partition-1", left=WHOLE),
    done("create-partitioned-stored-outside", "create partitioned 3", 409, there="x-partition-3"),
    done("create-partitioned-stored-far-outside", "create partitioned 3", 409, there="x-partition-0 x-partition-7"),
    done("create-partitioned-local", "create partitioned 3 local", 204, left=WHOLE),
    done("create-partitioned-local-again", "create partitioned 3 local", 204, there=WHOLE),
    done("create-partitioned-local-holed", "create partitioned 3 local", 204, there=HOLED, left=WHOLE),
    done("create-partitioned-local-fewer", "create partitioned 2 local", 409, there=WHOLE),
    done(
        "create-partitioned-local-more", "create partitioned 4 local", 409, there=WHOLE,
        differs=Differs("204", "it leaves a partition that the metadata does not count", left=f"{WHOLE} x-partition-3"),
    ),
    done("create-partitioned-local-both-kinds", "create partitioned 3 local", 204, there=f"{WHOLE} x"),
    done("create-partitioned-local-orphan", "create partitioned 3 local", 409, there=f"{WHOLE} x-partition-7"),
)  # fmt: skip

CREATE: Final = (
    done("create", "create", 204, left="x"),
    done("create-np", "create", 204, domain=NP),
    done("create-auto-off", "create", 204, left="x", namespace=OFF),
    done("create-namespace-missing", "create", 404, namespace=MISSING),
    done("create-namespace-being-deleted", "create", 404, namespace=DELETED),
    done("create-namespace-of-another-cluster", "create", 412, namespace=FOREIGN),
    done("create-transaction-internal", "create", 400, name="x__transaction_pending_ack"),
    done(
        "create-trailing-blank", "create", 412, name="x ", front_ends=REST_ONLY,
        differs=Differs("204", NOT_YET, left="x+"),
    ),
    done("create-topic-limit", "create", 409, namespace=FULL),
    done("create-exists", "create", 409, there="x"),
    done("create-partitioned-topic-exists", "create", 409, there=WHOLE),
    done("create-np-partitioned-topic-exists", "create", 409, there="x=3", domain=NP),
    done("create-both-kinds", "create", 409, there=f"{WHOLE} x"),
    done("create-partition-of-nothing", "create", 412, name="x-partition-1"),
    done("create-partition-of-plain", "create", 412, name="x-partition-1", there="x"),
    done("create-partition-exists", "create", 409, name="x-partition-1", there=WHOLE),
    done("create-partition-lost", "create", 204, name="x-partition-1", there=HOLED, left=WHOLE),
    done("create-partition-outside", "create", 412, name="x-partition-5", there=WHOLE),
    done("create-orphan", "create", 412, name="x-partition-7", there=f"{WHOLE} x-partition-7"),
    done("create-number-as-java-reads-it", "create", 412, name="x-partition-01"),
    done("create-no-number", "create", 204, name="x-partition-abc", left="x-partition-abc"),
    done("create-two-marks", "create", 409, name="x-partition-1-partition-2"),
    done("create-np-partition-of-nothing", "create", 412, name="x-partition-1", domain=NP),
    done("create-np-partition-outside", "create", 412, name="x-partition-5", there="x=3", domain=NP),
)  # fmt: skip

EXPAND: Final = (
    done("expand", "expand 4", 204, there=WHOLE, left=FOUR),
    done("expand-np", "expand 4", 204, there="x=3", left="x=4", domain=NP),
    done("expand-to-the-same", "expand 3", 204, there=WHOLE),
    done("expand-partition-name", "expand 4", 412, name="x-partition-0", there=WHOLE),
    done("expand-nothing", "expand 4", 409),
    done("expand-plain", "expand 4", 409, there="x"),
    done("expand-metadata-lost", "expand 4", 409, there="x-partition-0"),
    done("expand-fewer", "expand 2", 422, there=WHOLE),
    done("expand-above-the-maximum", "expand 11", 422, there=WHOLE),
    done("expand-holed", "expand 4", 204, there=HOLED, left=FOUR),
    done("expand-holed-to-the-same", "expand 3", 204, there=HOLED, left=WHOLE),
    done("expand-orphan", "expand 4", 409, there=f"{WHOLE} x-partition-3"),
    done("expand-orphan-forced", "expand 4 force", 204, there=f"{WHOLE} x-partition-3", left=FOUR),
    done("expand-namespace-missing", "expand 4", 409, namespace=MISSING),
    done(
        "expand-namespace-of-another-cluster", "expand 4", 412, there=WHOLE, namespace=FOREIGN,
        differs=Differs("412", "what is refused is not done", left=FOUR),
    ),
    done(
        "expand-being-deleted", "expand 4", 409, there=f"{WHOLE}!",
        differs=Differs("204", "the deletion under way would be forgotten", left=FOUR),
    ),
)  # fmt: skip

MISSED: Final = (
    done("create-missed", "create missed", 204, there=HOLED, left=WHOLE),
    done("create-missed-none-missing", "create missed", 204, there=WHOLE),
    done("create-missed-np", "create missed", 204, there="x=3", domain=NP),
    done("create-missed-partition-name", "create missed", 412, name="x-partition-1", there=HOLED),
    done("create-missed-mark-anywhere", "create missed", 412, name="x-partition-abc"),
    done("create-missed-plain", "create missed", 404, there="x"),
    done("create-missed-nothing", "create missed", 404),
    done("create-missed-metadata-lost", "create missed", 404, there="x-partition-0"),
)

DELETE: Final = (
    done("delete", "delete", 204, there="x", left=""),
    done("delete-nothing", "delete", 404),
    done("delete-np-nothing", "delete", 204, domain=NP),
    done("delete-np-partitioned-topic", "delete", 409, there="x=3", domain=NP),
    done("delete-np-partition", "delete", 204, name="x-partition-1", there="x=3", domain=NP),
    done("delete-np-partition-outside", "delete", 204, name="x-partition-7", there="x=3", domain=NP),
    done("delete-partitioned-topic", "delete", 409, there=WHOLE),
    done("delete-partition", "delete", 204, name="x-partition-1", there=WHOLE, left=HOLED),
    done("delete-partition-lost", "delete", 404, name="x-partition-1", there=HOLED),
    done("delete-orphan", "delete", 204, name="x-partition-7", there=f"{WHOLE} x-partition-7", left=WHOLE),
    done("delete-metadata-lost", "delete", 204, name="x-partition-0", there="x-partition-0", left=""),
    done("delete-both-kinds", "delete", 409, there=f"{WHOLE} x"),
    done(
        "delete-both-kinds-forced", "delete force", 204, there=f"{WHOLE} x", left=WHOLE,
        differs=Differs("409", "there would be no way to get rid of one of the two", left=f"{WHOLE} x"),
    ),
    done("delete-namespace-missing", "delete", 404, namespace=MISSING),
)  # fmt: skip

DELETE_PARTITIONED: Final = (
    done("delete-partitioned", "delete partitioned", 204, there=WHOLE, left=""),
    done("delete-partitioned-np", "delete partitioned", 204, there="x=3", left="", domain=NP),
    done("delete-partitioned-forced", "delete partitioned force", 204, there=WHOLE, left=""),
    done("delete-partitioned-holed", "delete partitioned", 204, there=HOLED, left=""),
    done("delete-partitioned-without-records", "delete partitioned", 204, there="x=3", left=""),
    done("delete-partitioned-partition-name", "delete partitioned", 412, name="x-partition-1", there=WHOLE),
    done("delete-partitioned-plain", "delete partitioned", 409, there="x"),
    done("delete-partitioned-nothing", "delete partitioned", 404),
    done("delete-partitioned-metadata-lost", "delete partitioned", 404, there="x-partition-0"),
    done("delete-partitioned-both-kinds", "delete partitioned", 204, there=f"{WHOLE} x", left="x"),
    done("delete-partitioned-orphan", "delete partitioned", 204, there=f"{WHOLE} x-partition-7", left="x-partition-7"),
    done("delete-partitioned-begun", "delete partitioned", 204, there=f"{WHOLE}!", left=""),
    done("delete-partitioned-namespace-missing", "delete partitioned", 404, namespace=MISSING),
)

SUBSCRIPTION: Final = (
    done("subscription", "create subscription", 204, left="x"),
    done("subscription-again", "create subscription again", 409, there="x"),
    done("subscription-auto-off", "create subscription", 412, namespace=OFF),
    done("subscription-plain-auto-off", "create subscription", 204, there="x", namespace=OFF),
    done("subscription-auto-partitioned", "create subscription", 204, left=TWO_PARTITIONS, namespace=TWO),
    done("subscription-partitioned", "create subscription", 204, there=WHOLE),
    done("subscription-partitioned-auto-off", "create subscription", 204, there=WHOLE, namespace=OFF),
    done("subscription-partition", "create subscription", 204, name="x-partition-1", there=WHOLE),
    done("subscription-partition-lost", "create subscription", 204, name="x-partition-1", there=HOLED, left=WHOLE),
    done("subscription-partition-of-nothing", "create subscription", 409, name="x-partition-0"),
    done("subscription-partition-of-nothing-auto-off", "create subscription", 412, name="x-partition-0", namespace=OFF),
    done("subscription-outside", "create subscription", 412, name="x-partition-3", there=WHOLE),
    done("subscription-orphan", "create subscription", 409, name="x-partition-7", there=f"{WHOLE} x-partition-7"),
    done("subscription-np", "create subscription", 400, domain=NP),
    done("subscription-namespace-missing", "create subscription", 404, namespace=MISSING),
)

OPERATIONS: Final = (
    *CREATE_PARTITIONED, *CREATE, *EXPAND, *MISSED, *DELETE, *DELETE_PARTITIONED, *SUBSCRIPTION
)  # fmt: skip
