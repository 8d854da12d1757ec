"""Outages of a cluster: retries, their time limits, and the log events meanwhile."""

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

_log = logging.getLogger(__name__)

_LOGGED_AFTER_S: Final = 5.0
_LOGGED_EVERY_S: Final = 60.0
_REASONS_MAX: Final = 20


class ResolvedOutage(NamedTuple):
    """Resolved outages with one reason: their number, and their seconds in total."""

    place: str
    reason: str
    times: int
    seconds: float


class Outages:
    """Outages of one cluster. Times are seconds of a monotonic clock."""

    def __init__(
        self,
        place: str,
        *,
        timeout_ms: int | None = None,
        waits_for_room: bool = True,
        rereads_credentials: bool = False,
    ) -> None:
        """Create the outages of a cluster.

        ``timeout_ms`` limits one outage (None = no limit). ``waits_for_room`` also retries while a quota or a full disk
        refuses. ``rereads_credentials`` retries after an expired token, because the next attempt may use a new one.
        """
        self.timeout_ms = timeout_ms
        self.waits_for_room = waits_for_room
        self._place = place
        self._rereads_credentials = rereads_credentials
        self._since: float | None = None
        self._logged_at = 0.0
        self._reason = ""
        self._waiters: set[object] = set()
        self._resolved: dict[str, ResolvedOutage] = {}

    def may_resolve(self, error: PulsarError) -> bool:
        """Return True if a failure may resolve itself without a change of the program."""
        if isinstance(error, UnknownListener | MetadataError):  # most of them are refusals
            return False
        if isinstance(error, QuotaExceededError | QuotaExceededException):
            return self.waits_for_room
        if isinstance(error, AuthenticationError):
            return self._rereads_credentials
        return error.retriable

    def note(self, error: PulsarError, now: float, *, began: float | None = None, waiter: object = None) -> None:
        """Record a failed attempt that ``began`` earlier and is followed by another.

        Log a lasting outage every minute. A ``waiter`` that may end before the cluster answers must call
        :meth:`given_up` then.
        """
        self._waiters.add(waiter)
        if self._since is None:
            self._since, self._logged_at = now if began is None else began, float("-inf")
        self._reason = str(error)
        lasted = now - self._since
        if lasted >= _LOGGED_AFTER_S and now - self._logged_at >= _LOGGED_EVERY_S:
            self._logged_at = now
            limit = "none" if self.timeout_ms is None else f"{self.timeout_ms / 1000:g}"
            _log.warning(
                "cluster does not answer, waiting for it place=%s seconds=%.0f limit_s=%s error=%s",
                *(self._place, lasted, limit, error),
            )

    def given_up(self, waiter: object) -> None:
        """Record that this waiter has stopped trying. With the last one the outage ends unresolved."""
        self._waiters.discard(waiter)
        if not self._waiters:
            self._since = None

    def over(self, now: float) -> None:
        """Record that the cluster answers again."""
        self._waiters.clear()
        if self._since is None:
            return
        if self._logged_at > float("-inf"):
            _log.warning("cluster answers again place=%s after_s=%.0f", self._place, now - self._since)
        earlier = self._resolved.get(self._reason)
        if earlier is not None or len(self._resolved) < _REASONS_MAX:
            times, seconds = (earlier.times, earlier.seconds) if earlier is not None else (0, 0.0)
            self._resolved[self._reason] = ResolvedOutage(
                self._place, self._reason, times + 1, seconds + now - self._since
            )
        self._since = None

    def take_resolved(self) -> list[ResolvedOutage]:
        """Return the outages resolved since the last call. If there are very many reasons, only the first ones."""
        resolved, self._resolved = self._resolved, {}
        return list(resolved.values())

    def is_too_long(self, now: float) -> bool:
        """Return True if the outage exceeds its time limit."""
        return self._since is not None and self.timeout_ms is not None and now - self._since > self.timeout_ms / 1000

    def waiting(self, now: float) -> tuple[str, float] | None:
        """Return the reason of the current outage and its seconds so far; None if there is none."""
        return None if self._since is None else (self._reason, now - self._since)


_DISK: Final = "free disk space on the broker; it then accepts messages again"
_CREDENTIALS: Final = "renew the credentials; a token or certificate in a file is read again at every attempt"
_RIGHTS: Final = "grant the role the missing permission: namespaces grant-permission"
_SCHEMA: Final = (
    "allow the schema on the topic: namespaces set-schema-compatibility-strategy or set-is-allow-auto-update-schema, "
    "or schemas upload"
)
_ABSENT: Final = "create the topic, or exclude it"
_PLAINTEXT: Final = (
    "encrypt the messages, or allow unencrypted ones in the namespace: namespaces set-encryption-required --disable"
)
_UNREACHABLE: Final = "start the cluster, or check its address and the network; work continues automatically"
_REMEDIES: Final = {
    "noroomleft": _DISK,
    "no room left": _DISK,
    "out of room": _DISK,
    "quota": "consume or clear the backlog of the topic, or raise its quota: namespaces set-backlog-quota",
    "certificate": "renew the certificate; its file is read again at every attempt",
    "authenticat": _CREDENTIALS,
    "expired": _CREDENTIALS,
    "unauthorized": _CREDENTIALS,
    "authoriz": _RIGHTS,
    "forbidden": _RIGHTS,
    "terminated": "the topic is terminated: delete it and create it again, or exclude it",
    "must be encrypted": _PLAINTEXT,
    "encryption is required": _PLAINTEXT,
    "schema": _SCHEMA,
    "topicnotfound": _ABSENT,
    "topic not found": _ABSENT,
    "partition metadata not found": _ABSENT,
    "maximum message size": (
        "raise the limit for the topic: topics set-max-message-size, or maxMessageSize of the broker"
    ),
    "holesfound": "choose the next laneEpoch",
    "laneinuse": "stop the other writer of that producer name, or choose the next laneEpoch",
    "producerbusy": "stop the other writer of that producer name, or wait until the broker drops a lost one",
    "persistenceerror": "check the log of the broker, which cannot store entries",
    "notconnected": _UNREACHABLE,
    "operationtimeout": _UNREACHABLE,
    "no answer": _UNREACHABLE,
    "servicenotready": "wait: the topic is being moved or loaded, and work continues automatically",
}
"""Remedies by a part of the error text. The first match applies."""


def remedy_for(error: str) -> str | None:
    """Return the remedy for an error text that names an error class or describes one; None if there is none."""
    text = error.lower()
    return next((remedy for word, remedy in _REMEDIES.items() if word in text), None)
