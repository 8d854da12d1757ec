"""What a real Pulsar deletes before Spark reads it is told, and nothing else is taken for a loss."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interpulse.model.errors import DataLoss
from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster
from tests.scenarios.spark_ends import (
    LIMITS,
    checkpoint_beyond_the_end_of_a_ledger_goes_on,
    compacted_reads_end_where_compaction_left_the_topic,
    limited_stream_reads_all_ledgers,
    loss_is_reported_at_the_start,
)
from tests.scenarios.spark_losses import LOSSES, assert_loss_is_told, trimmed_ledger_of_read_entries_is_no_loss

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("loss", LOSSES)
def test_entries_that_are_deleted_before_they_are_read_are_told(
    real_pulsar: Address, loss: Callable[..., list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    assert_loss_is_told(loss, Cluster(real_pulsar.service_url, real_pulsar.web_url), caplog)


def test_trimmed_ledger_of_read_entries_is_no_loss(real_pulsar: Address) -> None:
    trimmed_ledger_of_read_entries_is_no_loss(Cluster(real_pulsar.service_url, real_pulsar.web_url))


@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_limited_stream_reads_all_ledgers(real_pulsar: Address, limit: dict[str, str]) -> None:
    limited_stream_reads_all_ledgers(Cluster(real_pulsar.service_url, real_pulsar.web_url), limit)


def test_checkpoint_beyond_the_end_of_a_ledger_goes_on(real_pulsar: Address) -> None:
    checkpoint_beyond_the_end_of_a_ledger_goes_on(Cluster(real_pulsar.service_url, real_pulsar.web_url))


def test_compacted_reads_end_where_compaction_left_the_topic(real_pulsar: Address) -> None:
    compacted_reads_end_where_compaction_left_the_topic(Cluster(real_pulsar.service_url, real_pulsar.web_url))


def test_loss_before_a_restart_is_reported_at_the_start(real_pulsar: Address) -> None:
    with pytest.raises(DataLoss, match=r"gone.*none is there.*failOnDataLoss=false"):
        loss_is_reported_at_the_start(Cluster(real_pulsar.service_url, real_pulsar.web_url))
