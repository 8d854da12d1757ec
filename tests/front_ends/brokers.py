"""Brokers of ours that hold the records that the rows of the table start from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from interpulse.storage.api import Put
from interpulse.testing import InProcessBroker
from tests.front_ends.records import BEYOND, OUR_EMPTY_TOPIC, prepared, prepared_beyond
from tests.front_ends.rows import PARTITIONS_MAX, Case

SETTINGS: Final = {"maxNumPartitionsPerPartitionedTopic": str(PARTITIONS_MAX)}
"""Of every broker the table is asked of."""

NO_JOB: Final = {"replicationJob": "external"}  # nothing is replicated, other clusters are only asked


def put(broker: InProcessBroker, values: Mapping[str, bytes]) -> None:
    """Store these keys."""
    changes = [Put(key, value) for key, value in values.items()]
    broker.call(lambda app: app.registry.metadata.commit(changes))


@contextmanager
def our_broker(
    directory: Path, cases: Collection[Case] = (), other: InProcessBroker | None = None
) -> Iterator[InProcessBroker]:
    """A broker of cluster ``standalone`` that is about to be asked; ``other`` stands in the cluster beyond."""
    with InProcessBroker(directory, SETTINGS | NO_JOB) as broker:
        put(broker, prepared(cases, "standalone", OUR_EMPTY_TOPIC, _address(other)))
        yield broker


@contextmanager
def beyond(directory: Path, cases: Collection[Case]) -> Iterator[InProcessBroker]:
    """The other cluster, which the broker that is asked asks in turn."""
    with InProcessBroker(directory, {"clusterName": BEYOND} | NO_JOB) as broker:
        put(broker, prepared_beyond(cases, OUR_EMPTY_TOPIC))
        yield broker


def _address(broker: InProcessBroker | None) -> tuple[str, str] | None:
    return (broker.service_url, broker.web_url) if broker else None
