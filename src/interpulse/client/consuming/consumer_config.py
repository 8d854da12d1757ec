"""Settings of a consumer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from interpulse.client.checks import (
    check_choice,
    check_interval,
    check_key_reader,
    check_least,
    check_names,
    check_pairs,
    check_type,
)
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.client.lookup.lookup import TopicMode
from interpulse.model.schemas import SchemaInfo

SubscriptionType = Literal["exclusive", "shared", "failover", "key-shared"]
InitialPosition = Literal["latest", "earliest"]
CryptoFailureAction = Literal["fail", "discard", "consume"]

_SLOT_MAX: Final = 65_535
_DOUBLINGS_MAX: Final = 64  # by then every delay is at its limit


@dataclass(frozen=True, slots=True)
class RedeliveryBackoff:
    """Delays that grow with every redelivery of a message, up to a limit."""

    initial_ms: int = 10_000
    max_ms: int = 600_000
    multiplier: float = 2.0

    def __post_init__(self) -> None:
        if self.initial_ms < 1 or self.max_ms < self.initial_ms or self.multiplier < 1:
            raise ValueError(f"{self}: needs 1 <= initial_ms <= max_ms, and a multiplier of at least 1")

    def delay_ms(self, redelivery_count: int) -> int:
        """Return the delay in ms of a message that has been redelivered ``redelivery_count`` times."""
        return int(min(self.initial_ms * self.multiplier ** min(redelivery_count, _DOUBLINGS_MAX), self.max_ms))


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """Rules for moving messages that could not be processed to a dead-letter topic."""

    max_redeliver_count: int = 16
    """Number of redeliveries before a message moves to the dead-letter topic."""

    dead_letter_topic: str | None = None
    """Dead-letter topic. None: <topic>-<subscription>-DLQ, one for all partitions."""

    retry_letter_topic: str | None = None
    """Topic for copies made by ``reconsume_later``. None: <topic>-<subscription>-RETRY."""

    initial_subscription_name: str | None = None
    """Subscription to create on the dead-letter topic before its first message."""

    encryption_keys: tuple[str, ...] = ()
    """Names of public keys of the consumer's ``crypto_key_reader`` for copies of messages that came encrypted.

    Without any, such messages are not copied and are redelivered.
    """

    def __post_init__(self) -> None:
        check_names("encryption_keys", self.encryption_keys)
        if self.max_redeliver_count < 1:
            raise ValueError(f"max_redeliver_count={self.max_redeliver_count} must be at least 1")


@dataclass(frozen=True, slots=True)
class KeySharedPolicy:
    """Distribution of keys among the consumers of a Key_Shared subscription."""

    sticky_ranges: tuple[tuple[int, int], ...] = ()
    """Hash slots, 0 to 65535 and both ends included, that this consumer claims. Empty: the broker assigns them."""

    out_of_order_allowed: bool = False
    """True: a key may move to another consumer while messages of it are unacknowledged."""

    def __post_init__(self) -> None:
        behind = -1
        for first, last in sorted(self.sticky_ranges):
            if not behind < first <= last <= _SLOT_MAX:
                raise ValueError(f"sticky_ranges={self.sticky_ranges}: needs ranges within 0 to 65535 without overlap")
            behind = last


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Settings of one consumer."""

    subscription_type: SubscriptionType = "exclusive"
    durable: bool = True
    """False: the subscription ends with its last consumer, and each consumer begins at ``initial_position``."""

    initial_position: InitialPosition = "latest"
    """Position at which a new subscription starts. An existing one keeps its position."""

    name: str | None = None
    schema: SchemaInfo | None = None
    receiver_queue_size: int = 1000
    """Number of messages that the broker may send ahead of the application, at least 1, per partition."""

    priority_level: int = 0
    """Priority, 0 = highest. Shared: the broker serves it first. Failover: the broker prefers it as active consumer."""

    key_shared: KeySharedPolicy | None = None
    read_compacted: bool = False
    force_topic_creation: bool = True
    """False: subscribing never creates the topic, even if the broker's policy allows it."""

    replicate_subscription_state: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    batch_index_ack_enabled: bool = False
    """True: acknowledge single messages of a batch at the broker. False: only complete batches."""

    chunked_messages_max: int = 10
    """Maximum number of incomplete chunked messages per partition.

    When another one begins, the oldest is dropped and its chunks stay unacknowledged.
    """

    oldest_chunks_acknowledged: bool = False
    """True: acknowledge the chunks of a dropped message, which is then never received."""

    crypto_failure_action: CryptoFailureAction = "fail"
    """Action for messages that cannot be decrypted.

    fail: the consumer fails with CryptoError. discard: they are acknowledged unread. consume: they are delivered
    encrypted.
    """

    crypto_key_reader: CryptoKeyReader | None = field(default=None, repr=False)
    """Source of private keys: :class:`DefaultCryptoKeyReader` or your own. None: messages are not decrypted."""

    nack_delay_ms: int = 60_000
    """Delay until negatively acknowledged messages are redelivered."""

    nack_backoff: RedeliveryBackoff | None = None
    """Growing delays for negatively acknowledged messages, instead of ``nack_delay_ms``."""

    ack_timeout_ms: int = 0
    """Time after which received but unacknowledged messages are redelivered, 0 = never."""

    ack_timeout_backoff: RedeliveryBackoff | None = None
    """Growing delays for unacknowledged messages, instead of ``ack_timeout_ms``."""

    dead_letter_policy: DeadLetterPolicy | None = None
    """Rules for messages that were redelivered too often. Shared and Key_Shared subscriptions only."""

    retry_enabled: bool = False
    """True: ``reconsume_later`` may be used, and the consumer also reads its retry letter topic."""

    auto_update_partitions: bool = True
    """True: look for new partitions of partitioned topics, and read them from their beginning."""

    auto_update_partitions_interval_ms: int = 60_000
    """Interval between two searches for new partitions."""

    topics_mode: TopicMode = "PERSISTENT"
    """Topics that a pattern may match: persistent, non-persistent or all."""

    pattern_discovery_interval_ms: int = 60_000
    """Interval between two requests for the topics of a pattern. Brokers with topic watchers also announce changes."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)
        check_interval("pattern_discovery_interval_ms", self.pattern_discovery_interval_ms)
        check_choice("subscription_type", self.subscription_type, SubscriptionType)
        check_choice("initial_position", self.initial_position, InitialPosition)
        check_choice("crypto_failure_action", self.crypto_failure_action, CryptoFailureAction)
        check_key_reader(self.crypto_key_reader, "private_key")
        check_choice("topics_mode", self.topics_mode, TopicMode)
        check_least(self, 1, "receiver_queue_size", "chunked_messages_max")
        check_least(self, 0, "nack_delay_ms", "ack_timeout_ms")
        check_type("name", self.name, str, type(None))
        check_type("schema", self.schema, SchemaInfo, type(None))
        check_pairs("properties", self.properties)
        check_pairs("subscription_properties", self.subscription_properties)
        check_type("dead_letter_policy", self.dead_letter_policy, DeadLetterPolicy, type(None))
        check_type("key_shared", self.key_shared, KeySharedPolicy, type(None))
        if self.dead_letter_policy is not None and not (self.counts_redeliveries or self.retry_enabled):
            raise ValueError(
                f"dead_letter_policy needs a shared or key-shared subscription, not {self.subscription_type}: only "
                f"there brokers count redeliveries"
            )
        if self.key_shared is not None and self.subscription_type != "key-shared":
            raise ValueError(f"key_shared needs a key-shared subscription, not {self.subscription_type}")

    @property
    def counts_redeliveries(self) -> bool:
        """True if messages are delivered and redelivered one by one."""
        return self.subscription_type in ("shared", "key-shared")

    @property
    def effective_dead_letter_policy(self) -> DeadLetterPolicy | None:
        """Dead-letter policy in force. ``retry_enabled`` without a policy uses Pulsar's defaults."""
        return self.dead_letter_policy or (DeadLetterPolicy() if self.retry_enabled else None)

    def nack_delay(self, redelivery_count: int) -> int:
        """Return the delay in ms until a negatively acknowledged message is redelivered."""
        return self.nack_backoff.delay_ms(redelivery_count) if self.nack_backoff else self.nack_delay_ms

    def ack_timeout(self, redelivery_count: int) -> int:
        """Return the time in ms after which an unacknowledged message is redelivered; 0 = never."""
        backoff = self.ack_timeout_backoff
        return backoff.delay_ms(redelivery_count) if backoff else self.ack_timeout_ms
