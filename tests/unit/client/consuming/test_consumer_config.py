"""What consumers can be told, and what they refuse to be told."""

from collections.abc import Callable

import pytest

from interpulse.client.consuming.consumer_config import (
    ConsumerConfig,
    DeadLetterPolicy,
    KeySharedPolicy,
    RedeliveryBackoff,
)


@pytest.mark.parametrize(
    ("redelivery_count", "delay_ms"), [(0, 100), (1, 200), (2, 400), (3, 500), (64, 500), (10**9, 500)]
)
def test_backoff_when_a_message_comes_again_then_waits_longer_up_to_the_limit(
    redelivery_count: int, delay_ms: int
) -> None:
    assert RedeliveryBackoff(100, 500, 2).delay_ms(redelivery_count) == delay_ms


@pytest.mark.parametrize(
    ("make", "named"),
    [
        pytest.param(lambda: RedeliveryBackoff(0, 5), "initial_ms=0", id="backoff-without-delay"),
        pytest.param(lambda: RedeliveryBackoff(10, 5), "max_ms=5", id="backoff-limit-below-start"),
        pytest.param(lambda: RedeliveryBackoff(10, 20, 0.5), "multiplier=0.5", id="backoff-that-shrinks"),
        pytest.param(lambda: DeadLetterPolicy(0), "max_redeliver_count=0", id="dead-at-once"),
        pytest.param(lambda: KeySharedPolicy(((5, 4),)), r"\(\(5, 4\),\)", id="range-backwards"),
        pytest.param(lambda: KeySharedPolicy(((0, 65536),)), "65536", id="range-too-far"),
        pytest.param(lambda: KeySharedPolicy(((0, 9), (9, 20))), "without overlap", id="ranges-overlap"),
        pytest.param(
            lambda: ConsumerConfig("failover", dead_letter_policy=DeadLetterPolicy(1)), "not failover", id="uncounted"
        ),
        pytest.param(
            lambda: ConsumerConfig("shared", key_shared=KeySharedPolicy()), "not shared", id="keys-of-no-interest"
        ),
        pytest.param(
            lambda: ConsumerConfig(pattern_discovery_interval_ms=0), "pattern_discovery_interval_ms=0", id="no-interval"
        ),
    ],
)
def test_setting_when_it_makes_no_sense_then_refused_with_its_value(make: Callable[[], object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()


def test_delays_when_a_backoff_is_given_then_it_rules() -> None:
    plain = ConsumerConfig(nack_delay_ms=7)
    assert (plain.nack_delay(3), plain.ack_timeout(3)) == (7, 0)
    growing = ConsumerConfig(nack_backoff=RedeliveryBackoff(10, 50), ack_timeout_backoff=RedeliveryBackoff(20, 50))
    assert (growing.nack_delay(1), growing.ack_timeout(0)) == (20, 20)


def test_dead_letter_policy_when_only_retrying_is_wanted_then_pulsars_policy() -> None:
    assert ConsumerConfig().effective_dead_letter_policy is None
    assert ConsumerConfig(retry_enabled=True).effective_dead_letter_policy == DeadLetterPolicy(16)
    policy = DeadLetterPolicy(2)
    assert ConsumerConfig("shared", dead_letter_policy=policy).effective_dead_letter_policy is policy
