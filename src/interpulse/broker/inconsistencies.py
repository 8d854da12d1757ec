"""Topics whose metadata is inconsistent (PIP-414): every refusal is counted and logged.

Both front ends report every refusal that they translate. Each kind has a counter. Each topic and kind has one WARNING
per period, with the number of refusals since the last one. Memory is bounded: when more topics are refused within a
period than fit, the next warnings give the number of refusals without a warning.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from interpulse.model.errors import Inconsistency, PulsarError, TopicInconsistent
from interpulse.model.names import TopicName

_log = logging.getLogger(__name__)

PERIOD_MS: Final = 60_000
TOPICS_MAX: Final = 1000
_SHOWN_MAX: Final = 600


@dataclass(slots=True)
class _Warned:
    at_ms: int
    suppressed: int = 0


class InconsistencyCounters:
    """The counters and the log of inconsistent topics. ``now_ms`` is the broker's clock."""

    def __init__(self, now_ms: Callable[[], int], *, period_ms: int = PERIOD_MS, topics_max: int = TOPICS_MAX) -> None:
        self.counts: Counter[Inconsistency] = Counter(dict.fromkeys(Inconsistency, 0))
        """Refusals since the broker started, by kind."""
        self._now_ms = now_ms
        self._period_ms = period_ms
        self._topics_max = topics_max
        self._warned: dict[tuple[str, Inconsistency], _Warned] = {}  # oldest first
        self._unmentioned = 0

    def note(self, error: PulsarError, client: Callable[[], str]) -> None:
        """Report an ``error`` that a front end answers with; other kinds of errors are ignored.

        ``client`` returns the name and address of the client, and is called only for a log line.
        """
        if not isinstance(error, TopicInconsistent) or error.kind is None:
            return
        self.counts[error.kind] += 1
        now_ms = self._now_ms()
        key = _shown(error.topic), error.kind
        warned = self._warned.get(key)
        if warned is not None and now_ms - warned.at_ms < self._period_ms:
            warned.suppressed += 1
            return
        if warned is None and not self._make_room(now_ms):
            self._unmentioned += 1
            return
        self._warned.pop(key, None)
        self._warned[key] = _Warned(now_ms)
        self._warn(error, error.kind, client(), suppressed=warned.suppressed if warned else 0)

    def _make_room(self, now_ms: int) -> bool:
        """Forget the topic with the oldest warning if the table is full, unless that warning is within its period."""
        if len(self._warned) < self._topics_max:
            return True
        oldest = next(iter(self._warned))
        if now_ms - self._warned[oldest].at_ms < self._period_ms:
            return False
        self._unmentioned += self._warned.pop(oldest).suppressed
        return True

    def _warn(self, error: TopicInconsistent, kind: Inconsistency, client: str, *, suppressed: int) -> None:
        _log.warning(
            "topic refused kind=%s topic=%s client=%s suppressed=%d unmentioned=%d reason=%s remedy=%s",
            kind,
            _shown(error.topic),
            _shown(client),
            suppressed,
            self._unmentioned,
            _shown(str(error)),
            _shown(remedy(kind, error.topic)),
        )
        self._unmentioned = 0


def _shown(text: str) -> str:
    """Return a name for the log: names come from clients, and may be long or hold line breaks."""
    shown = text if text.isprintable() else ascii(text)
    return shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}..."


def remedy(kind: Inconsistency, topic: str) -> str:
    """Return the remedy for an operator."""
    name = TopicName.parse(topic)
    doctor = f"topics doctor {name.base} shows the stored state"
    if kind is Inconsistency.METADATA_MISSING:
        return (
            f"{doctor}; topics create-partitioned-topic {name.base} -p N, with N above the highest partition there is, "
            f"keeps what is stored; if nothing is, clients open {name.base} instead"
        )
    if kind is Inconsistency.PARTITION_BEYOND_METADATA:
        return (
            f"{doctor}; topics update-partitioned-topic {name.base} -p {name.partition_index + 1} -f lets the topic "
            f"grow over it; topics delete {name} if it is not needed"
        )
    return (
        f"{doctor}; clients open the partitions, not the base name; if a plain topic is stored beside them keep one: "
        f"topics delete {name} -f deletes the plain one, topics delete-partitioned-topic {name} the other"
    )
