"""The record of a partitioned topic."""

import json

from interpulse.model.topics import PartitionedTopicMetadata


def test_metadata_when_it_has_no_properties_then_writes_none() -> None:
    assert json.loads(PartitionedTopicMetadata(4).dump()) == {"partitions": 4, "deleted": False}


def test_metadata_when_written_then_reads_back() -> None:
    metadata = PartitionedTopicMetadata(4, deleted=True, properties={"team": "a"})
    assert PartitionedTopicMetadata.load(metadata.dump()) == metadata


def test_metadata_when_written_by_an_older_pulsar_then_defaults_fill_the_gaps() -> None:
    assert PartitionedTopicMetadata.from_json({"partitions": 2, "properties": None}) == PartitionedTopicMetadata(2)
    assert PartitionedTopicMetadata.from_json({}).partitions == 0
