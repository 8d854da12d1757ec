"""The settings of a consumer."""

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

__all__ = [
    "ConsumerConfig",
    "CryptoFailureAction",
    "DeadLetterPolicy",
    "InitialPosition",
    "KeySharedPolicy",
    "RedeliveryBackoff",
    "SubscriptionType",
]

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
        """The delay of a message that has been redelivered that often."""
        return int(min(self.initial_ms * self.multiplier ** min(redelivery_count, _DOUBLINGS_MAX), self.max_ms))


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """Messages that could not be handled move to a dead-letter topic."""

    max_redeliver_count: int = 16
    """How often a message may be redelivered before it moves to the dead-letter topic."""

    dead_letter_topic: str | None = None
    """None: <topic>-<subscription>-DLQ, one for all partitions."""

    retry_letter_topic: str | None = None
    """Where ``reconsume_later`` puts messages. None: <topic>-<subscription>-RETRY."""

    initial_subscription_name: str | None = None
    """A subscription that the dead-letter topic gets before its first message."""

    encryption_keys: tuple[str, ...] = ()
    """Names of public keys of the consumer's ``crypto_key_reader``, which the copies of messages that came encrypted
    are encrypted with. Without any, such messages are not copied, and come again."""

    def __post_init__(self) -> None:
        check_names("encryption_keys", self.encryption_keys)
        if self.max_redeliver_count < 1:
            raise ValueError(f"max_redeliver_count={self.max_redeliver_count} must be at least 1")


@dataclass(frozen=True, slots=True)
class KeySharedPolicy:
    """How the keys of a Key_Shared subscription are distributed."""

    sticky_ranges: tuple[tuple[int, int], ...] = ()
    """The hash slots 0 to 65535 that this consumer wants, both ends included. Empty: the broker distributes them."""

    out_of_order_allowed: bool = False
    """A key may move to another consumer while messages of it are unacknowledged."""

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
    """Where a new subscription starts; an existing one keeps its position."""

    name: str | None = None
    schema: SchemaInfo | None = None
    receiver_queue_size: int = 1000
    """Messages that the broker may send ahead of the application, at least 1; per partition."""

    priority_level: int = 0
    """Shared: consumers with a lower number are served first. Failover: they are chosen first."""

    key_shared: KeySharedPolicy | None = None
    read_compacted: bool = False
    force_topic_creation: bool = True
    """False: subscribing never creates the topic, whatever the broker's policy says."""

    replicate_subscription_state: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    batch_index_ack_enabled: bool = False
    """Acknowledge single messages of a batch at the broker. False: the batch, once all its messages are done."""

    chunked_messages_max: int = 10
    """Messages in chunks that may be incomplete at a time, per partition; when one more begins, the oldest gives way
    and its chunks stay unacknowledged."""

    oldest_chunks_acknowledged: bool = False
    """The chunks of a message that gives way are acknowledged: that message is never received."""

    crypto_failure_action: CryptoFailureAction = "fail"
    """The treatment of messages that cannot be decrypted. fail: the consumer ends there with CryptoError; discard:
    they are acknowledged unread; consume: they are handed out as they are."""

    crypto_key_reader: CryptoKeyReader | None = field(default=None, repr=False)
    """Gives the private keys of encrypted messages: :class:`DefaultCryptoKeyReader`, or one of yours. None: nothing is
    decrypted."""

    nack_delay_ms: int = 60_000
    """The delay until negatively acknowledged messages are redelivered."""

    nack_backoff: RedeliveryBackoff | None = None
    """Growing delays for them, instead of ``nack_delay_ms``."""

    ack_timeout_ms: int = 0
    """The time after which received, unacknowledged messages are redelivered, 0 = never."""

    ack_timeout_backoff: RedeliveryBackoff | None = None
    """Growing delays for them, instead of ``ack_timeout_ms``."""

    dead_letter_policy: DeadLetterPolicy | None = None
    """The treatment of messages that were redelivered too often; shared and key-shared subscriptions only."""

    retry_enabled: bool = False
    """``reconsume_later`` may be used: the consumer reads its retry letter topic as well."""

    auto_update_partitions: bool = True
    """A consumer of a partitioned topic looks for new partitions, and takes them from their beginning."""

    auto_update_partitions_interval_ms: int = 60_000
    """How often it looks."""

    topics_mode: TopicMode = "PERSISTENT"
    """Which topics a pattern may match."""

    pattern_discovery_interval_ms: int = 60_000
    """How often a consumer with a pattern asks for its topics. Brokers with topic watchers announce changes besides."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)
        check_interval("pattern_discovery_interval_ms", self.pattern_discovery_interval_ms)
        check_choice("subscription_type", self.subscription_type, SubscriptionType)
        check_choice("initial_position", self.initial_position, InitialPosition)
        check_choice("crypto_failure_action", self.crypto_failure_action, CryptoFailureAction)
        check_key_reader(self.crypto_key_reader, "private_key")
        check_choice("topics_mode", self.topics_mode, TopicMode)
        check_least(1, receiver_queue_size=self.receiver_queue_size, chunked_messages_max=self.chunked_messages_max)
        check_least(0, nack_delay_ms=self.nack_delay_ms, ack_timeout_ms=self.ack_timeout_ms)
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
        """Messages are delivered, and redelivered, one by one."""
        return self.subscription_type in ("shared", "key-shared")

    @property
    def effective_dead_letter_policy(self) -> DeadLetterPolicy | None:
        """The dead-letter policy; retrying without one takes Pulsar's defaults."""
        return self.dead_letter_policy or (DeadLetterPolicy() if self.retry_enabled else None)

    def nack_delay(self, redelivery_count: int) -> int:
        """The delay until a negatively acknowledged message is redelivered, in ms."""
        return self.nack_backoff.delay_ms(redelivery_count) if self.nack_backoff else self.nack_delay_ms

    def ack_timeout(self, redelivery_count: int) -> int:
        """The time after which an unacknowledged message is redelivered, in ms; 0 = never."""
        backoff = self.ack_timeout_backoff
        return backoff.delay_ms(redelivery_count) if backoff else self.ack_timeout_ms
