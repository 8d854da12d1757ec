"""What a client does while its cluster does not answer: for what it waits, how long, and what it tells meanwhile."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from interpulse.model.errors import (
    AuthenticationError,
    MetadataError,
    PulsarError,
    QuotaExceededError,
    QuotaExceededException,
    UnknownListener,
)

__all__ = ["Healed", "Outages", "remedy_for"]

_log = logging.getLogger(__name__)

_TOLD_AFTER_S: Final = 5.0
_TOLD_EVERY_S: Final = 60.0
_REASONS_KEPT: Final = 20


class Healed(NamedTuple):
    """What failed at a cluster and was well again by itself: why, how often, and the seconds of all times together."""

    place: str
    reason: str
    times: int
    seconds: float


class Outages:
    """One cluster's. Times are those of any clock that only goes forward, in seconds."""

    def __init__(
        self,
        place: str,
        *,
        timeout_ms: int | None = None,
        waits_for_room: bool = True,
        rereads_credentials: bool = False,
    ) -> None:
        """``timeout_ms`` None: wait as long as it takes. ``waits_for_room``: also where a quota or a full disk refuses.
        ``rereads_credentials``: a token that has expired may be another one at the next attempt."""
        self.timeout_ms = timeout_ms
        self.waits_for_room = waits_for_room
        self._place = place
        self._rereads_credentials = rereads_credentials
        self._since: float | None = None
        self._told_at = 0.0
        self._reason = ""
        self._waiters: set[object] = set()
        self._healed: dict[str, Healed] = {}

    def heals(self, error: PulsarError) -> bool:
        """Whether what failed may succeed later although nobody changes the program."""
        if isinstance(error, UnknownListener | MetadataError):  # of which most are refusals
            return False
        if isinstance(error, QuotaExceededError | QuotaExceededException):
            return self.waits_for_room
        if isinstance(error, AuthenticationError):
            return self._rereads_credentials
        return error.retriable

    def note(self, error: PulsarError, now: float, *, began: float | None = None, waiter: object = None) -> None:
        """An attempt, which ``began`` earlier, failed and another one follows. Logged when it lasts, every minute.

        A ``waiter`` that may end before the cluster answers calls :meth:`given_up` then.
        """
        self._waiters.add(waiter)
        if self._since is None:
            self._since, self._told_at = now if began is None else began, float("-inf")
        self._reason = str(error)
        lasted = now - self._since
        if lasted >= _TOLD_AFTER_S and now - self._told_at >= _TOLD_EVERY_S:
            self._told_at = now
            limit = "none" if self.timeout_ms is None else f"{self.timeout_ms / 1000:g}"
            _log.warning(
                "cluster does not answer, waiting for it place=%s seconds=%.0f limit_s=%s error=%s",
                *(self._place, lasted, limit, error),
            )

    def given_up(self, waiter: object) -> None:
        """This one tries no more, if it still did. With the last one the outage ends: nothing healed, and when the
        cluster answers is not known."""
        self._waiters.discard(waiter)
        if not self._waiters:
            self._since = None

    def over(self, now: float) -> None:
        """It answers."""
        self._waiters.clear()
        if self._since is None:
            return
        if self._told_at > float("-inf"):
            _log.warning("cluster answers again place=%s after_s=%.0f", self._place, now - self._since)
        known = self._healed.get(self._reason)
        if known is not None or len(self._healed) < _REASONS_KEPT:
            times, seconds = (known.times, known.seconds) if known is not None else (0, 0.0)
            self._healed[self._reason] = Healed(self._place, self._reason, times + 1, seconds + now - self._since)
        self._since = None

    def take_healed(self) -> list[Healed]:
        """What healed since this was asked last; of very many different reasons the first ones."""
        healed, self._healed = self._healed, {}
        return list(healed.values())

    def is_too_long(self, now: float) -> bool:
        """Whether it has lasted longer than is waited for."""
        return self._since is not None and self.timeout_ms is not None and now - self._since > self.timeout_ms / 1000

    def waiting(self, now: float) -> tuple[str, float] | None:
        """Why it is waited, and for how many seconds by now; None if it is not."""
        return None if self._since is None else (self._reason, now - self._since)


_DISK: Final = "make room on the disk of the broker, it takes messages again by itself"
_QUOTA: Final = "consume or clear the backlog of the topic, or raise its quota: namespaces set-backlog-quota"
_WHO: Final = "renew the credentials: a token or certificate in a file is read again at every attempt"
_RIGHTS: Final = "grant the role what it lacks: namespaces grant-permission"
_TERMINATED: Final = "the topic takes nothing any more: delete it and create it anew, or leave it out"
_SCHEMA: Final = (
    "let the topic take the schema: namespaces set-schema-compatibility-strategy or set-is-allow-auto-update-schema, "
    "or schemas upload"
)
_LARGE: Final = "raise the limit for the topic: topics set-max-message-size, or maxMessageSize of the broker"
_ABSENT: Final = "create the topic, or leave it out"
_OPEN: Final = (
    "encrypt what is published, or let the namespace take it as it is: namespaces set-encryption-required --disable"
)
_AWAY: Final = "start the cluster, or see to its address and the network: it goes on by itself"
_REMEDIES: Final = {
    "noroomleft": _DISK,
    "no room left": _DISK,
    "out of room": _DISK,
    "quota": _QUOTA,
    "certificate": "renew the certificate: its file is read again at every attempt",
    "authenticat": _WHO,
    "expired": _WHO,
    "unauthorized": _WHO,
    "authoriz": _RIGHTS,
    "forbidden": _RIGHTS,
    "terminated": _TERMINATED,
    "must be encrypted": _OPEN,
    "encryption is required": _OPEN,
    "schema": _SCHEMA,
    "topicnotfound": _ABSENT,
    "topic not found": _ABSENT,
    "partition metadata not found": _ABSENT,
    "maximum message size": _LARGE,
    "holesfound": "choose the next laneEpoch",
    "laneinuse": "end the other writer of that producer name, or choose the next laneEpoch",
    "producerbusy": "end the other writer of that producer name, or wait until the broker lets go of a lost one",
    "persistenceerror": "look at the log of the broker, which cannot store entries",
    "notconnected": _AWAY,
    "operationtimeout": _AWAY,
    "no answer": _AWAY,
    "servicenotready": "wait: the topic is moved or loaded, it goes on by itself",
}
"""By what a text has in it, the first that fits."""


def remedy_for(told: str) -> str | None:
    """For a text that names an error by its class, or describes one; None where nothing is known."""
    text = told.lower()
    return next((remedy for word, remedy in _REMEDIES.items() if word in text), None)
