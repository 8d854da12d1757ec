"""Bugs of brokers that share a cluster, which S4 must find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interpulse.broker.ownership.bundle_locks import HeldBundle, HeldBundles
from interpulse.broker.ownership.lock_settlement import LockSettlement
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics import deletion
from interpulse.model.names import NamespaceName
from interpulse.storage.bookkeeper.connection import BookieConnection
from interpulse.storage.bookkeeper.pending import PendingEntries
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.zookeeper.outcomes import Mark
from tests.support.bookie_journal import BookieJournal


def receipt_below_ack_quorum() -> None:
    """15: an entry is acknowledged when the first bookie has it."""
    begin = PendingEntries.__init__
    PendingEntries.__init__ = lambda self, quorum: begin(self, quorum._replace(ack=1))  # type: ignore[method-assign]


def ledger_opened_without_fencing() -> None:
    """16: recovery reads a ledger whose writer may go on."""
    read = BookieConnection.read
    BookieConnection.read = lambda self, *arguments, **_: read(self, *arguments)  # type: ignore[method-assign]


def records_written_without_the_lock() -> None:
    """17: the records of a topic are written after its bundle was lost."""
    HeldBundle.lock = lambda self: {}  # type: ignore[method-assign]


def zombie_goes_on_serving() -> None:
    """18: a broker sends entries and answers lookups after its session."""
    HeldBundles.serving = lambda self: True  # type: ignore[method-assign]


def lost_answer_taken_for_failure() -> None:
    """19: a commit whose answer was lost is done again."""

    async def applied(self: Mark, what: str) -> bool:
        return False

    Mark.applied = applied  # type: ignore[method-assign]


def bundle_given_away_with_open_topics() -> None:
    """20: a broker removes the lock of a bundle first, and closes its topics afterwards."""
    release = SharedOwnership._release

    async def early(self: SharedOwnership, held: HeldBundle) -> None:
        await self._locks.remove(held.key, held.version)
        await release(self, held)

    SharedOwnership._release = early  # type: ignore[method-assign]


def entry_answered_before_the_sync() -> None:
    """131: bookies answer before their journal is on disk; clusters that do so lose messages."""
    BookieJournal.when_synced = lambda self, callback: callback()  # type: ignore[method-assign]


def released_bundle_served_after_its_lock() -> None:
    """132: the topics of a bundle whose release a lost session interrupts are served in the next session."""
    settle = LockSettlement.settle_held

    async def without_leaving(self: LockSettlement, held: Sequence[HeldBundle], session_id: int) -> None:
        await settle(self, [bundle for bundle in held if not bundle.leaving], session_id)

    LockSettlement.settle_held = without_leaving  # type: ignore[method-assign]


def finished_deletion_reported() -> None:
    """133: a broker that resumes a deletion reports an error if another request has just ended it."""

    class _Never(Exception):
        """An error that is not raised."""

    deletion.NotFound = _Never  # type: ignore[attr-defined, assignment]


def unloading_waits_under_a_lost_lock() -> None:
    """134: a topic that is unloaded when its bundle is lost goes on trying to write its record."""
    disown, abandon = TopicLog.disown, TopicLog.abandon

    async def late(self: TopicLog) -> None:
        disown(self)
        await abandon(self)

    TopicLog.disown = lambda self: None  # type: ignore[method-assign]
    TopicLog.abandon = late  # type: ignore[method-assign]


def resumed_deletion_without_its_mark() -> None:
    """135: a deletion that is resumed takes a namespace that was created again for the one that it began with."""

    async def none(self: Namespaces, namespace: NamespaceName) -> Mapping[str, int | None]:
        return {}

    delete = deletion.Deletion._delete_namespace

    async def begin_again(self: deletion.Deletion, namespace: NamespaceName, **options: bool) -> None:
        await delete(self, namespace, force=options.get("force", False))

    Namespaces.deletion_mark = none  # type: ignore[method-assign]
    deletion.Deletion._delete_namespace = begin_again  # type: ignore[method-assign]
