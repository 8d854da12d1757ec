"""The limits that policies set for each published entry; a topic without such policies has no `PublishLimits`.

An entry that violates a limit is refused. An entry above the publish rate is stored, and reading from its client pauses
until the rate allows more.
"""

from __future__ import annotations

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.dispatch.delayed_entries import check_delay
from interpulse.broker.live.dispatch.dispatch_limits import PAUSE_MS_MIN, RateLimit
from interpulse.broker.live.entry_metadata import message_metadata_of
from interpulse.model.errors import MetadataError, NotAllowed
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import PublishRate


class PublishLimits:
    """The limits of one topic; `of` makes new ones whenever the settings of the topic change."""

    __slots__ = (
        "_delay_ms_max",
        "_encryption_required",
        "_message_bytes_max",
        "_rate",
        "_rate_limit",
        "throttled_count",
    )

    def __init__(self, settings: TopicSettings, now_ms: int) -> None:
        self._message_bytes_max = settings.max_message_size
        self._encryption_required = settings.encryption_required
        self._delay_ms_max = _delay_ms_max(settings)
        self._rate: PublishRate | None = settings.publish_rate
        self._rate_limit = _rate_limit(settings.publish_rate, now_ms)
        self.throttled_count = 0
        """The number of times that a client was throttled."""

    @classmethod
    def of(cls, settings: TopicSettings, before: PublishLimits | None, now_ms: int) -> PublishLimits | None:
        """Return the limits of these settings, None if there are none. An unchanged rate keeps its tokens."""
        demanding = settings.publish_rate or settings.max_message_size > 0 or settings.encryption_required
        if not demanding and not _delay_ms_max(settings):
            return None
        limits = cls(settings, now_ms)
        if before is not None:
            limits.throttled_count = before.throttled_count
            if before._rate == settings.publish_rate:
                limits._rate_limit = before._rate_limit
        return limits

    def check(self, entry: bytes, *, is_chunk: bool, is_marker: bool) -> None:
        """Check an entry. Raise NotAllowed for its size or delay, MetadataError if it must be encrypted."""
        limit = self._message_bytes_max
        if 0 < limit < len(entry) and not is_chunk:
            raise NotAllowed(f"Exceed maximum message size: {len(entry)} bytes (maxMessageSize={limit})")
        if self._encryption_required and not is_marker and not message_metadata_of(entry).encryption_keys:
            raise MetadataError("Messages must be encrypted (encryptionRequired=true)")
        if self._delay_ms_max and not is_marker:
            check_delay(entry, self._delay_ms_max)

    def charge(self, messages: int, size: int, now_ms: int) -> int:
        """Charge a stored entry, and return the ms for which its client must not be read."""
        if self._rate_limit is None:
            return 0
        self._rate_limit.spend(messages, size, now_ms)
        wait_ms = self._rate_limit.wait_ms(now_ms)
        if wait_ms:
            self.throttled_count += 1
            wait_ms = max(wait_ms, PAUSE_MS_MIN)
        return wait_ms


def check_encrypted(topic: TopicName, settings: TopicSettings, *, encrypted: bool) -> None:
    """Raise MetadataError for a producer without encryption where it is required."""
    if settings.encryption_required and not encrypted:
        raise MetadataError(f"Encryption is required in {topic} (encryptionRequired=true)")


def _delay_ms_max(settings: TopicSettings) -> int:
    """Return the longest delay that messages may ask for; 0 = any."""
    delays = settings.delayed_delivery
    return max(delays.max_delay_millis, 0) if delays is not None and delays.active else 0


def _rate_limit(rate: PublishRate | None, now_ms: int) -> RateLimit | None:
    return RateLimit(rate.messages, rate.bytes, 1, now_ms) if rate is not None and rate.limited else None
