"""What a real Pulsar deletes before Spark reads it is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster
from tests.scenarios.spark_losses import LOSSES, assert_loss_is_told, trimmed_ledger_of_read_entries_is_no_loss

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("loss", LOSSES)
def test_entries_that_are_deleted_before_they_are_read_are_told(
    real_pulsar: Address, loss: Callable[..., list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    assert_loss_is_told(loss, Cluster(real_pulsar.service_url, real_pulsar.web_url), caplog)


def test_trimmed_ledger_of_read_entries_is_no_loss(real_pulsar: Address) -> None:
    trimmed_ledger_of_read_entries_is_no_loss(Cluster(real_pulsar.service_url, real_pulsar.web_url))
