"""Answers whose ``response`` must be there, and the PIP-344 and PIP-35 fields."""

from collections.abc import Callable
from itertools import product

import pytest

from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

Read = Callable[[bytes], pb.BaseCommand]


def test_answers_always_carry_response(read: Read) -> None:
    metadata = read(commands.partitioned_metadata_response(1, 0)).partitionMetadataResponse
    assert metadata.HasField("response")
    assert metadata.HasField("partitions")
    redirect = read(commands.lookup_response(1, broker_url="pulsar://a:1", redirect=True)).lookupTopicResponse
    assert redirect.HasField("response")
    assert redirect.response == pb.CommandLookupTopicResponse.Redirect
    failed = read(commands.lookup_error(1, 6, "later")).lookupTopicResponse
    assert (failed.response, failed.error) == (pb.CommandLookupTopicResponse.Failed, pb.ServiceNotReady)
    failure = read(commands.partitioned_metadata_error(1, 11, "")).partitionMetadataResponse
    assert failure.response == pb.CommandPartitionedTopicMetadataResponse.Failed
    assert failure.HasField("message")


@pytest.mark.parametrize("request_id", [0, 127, 128, 2**14, 2**64 - 1])
@pytest.mark.parametrize("tls", ["", "pulsar+ssl://a:2"])
@pytest.mark.parametrize("flags", list(product([False, True], repeat=3)))
def test_answer_of_a_lookup_is_what_protobuf_writes(request_id: int, tls: str, flags: tuple[bool, bool, bool]) -> None:
    redirect, authoritative, proxied = flags
    kind = pb.CommandLookupTopicResponse.Redirect if redirect else pb.CommandLookupTopicResponse.Connect
    message = pb.CommandLookupTopicResponse(
        brokerServiceUrl="pulsar://a:1",
        brokerServiceUrlTls=tls or None,
        response=kind,
        request_id=request_id,
        authoritative=authoritative,
        proxy_through_service_url=proxied,
    )
    assert commands.encode(message) == commands.lookup_response(
        request_id,
        broker_url="pulsar://a:1",
        broker_url_tls=tls,
        redirect=redirect,
        authoritative=authoritative,
        proxy_through_service_url=proxied,
    )


def test_metadata_request_when_it_may_create_then_looks_like_an_old_client(read: Read) -> None:
    assert not read(commands.partitioned_metadata(1, "t")).partitionMetadata.HasField("metadata_auto_creation_enabled")
    request = read(commands.partitioned_metadata(1, "t", create=False)).partitionMetadata
    assert request.metadata_auto_creation_enabled is False


def test_batch_lookup_and_its_answers_survive_the_wire(read: Read) -> None:
    request = read(commands.batch_lookup(3, ["a", "b"], expand_partitions=True)).batchLookupTopic
    assert (list(request.topics), request.expand_partitions, request.create_if_missing) == (["a", "b"], True, True)
    group = pb.BatchLookupGroup(brokerServiceUrl="pulsar://a:1", topicname=["a"])
    answer = read(commands.batch_lookup_response(3, groups=[group], partitions={"b": 2})).batchLookupTopicResponse
    assert answer.groups[0].topicname == ["a"]
    assert (answer.partitions[0].topic, answer.partitions[0].partitions) == ("b", 2)
    assert read(commands.batch_lookup_error(3, 14, "full")).batchLookupTopicResponse.error == pb.TooManyRequests


@pytest.mark.parametrize("request_id", [0, 1, 127, 128, 16_383, 16_384, 2**31, 2**56 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("partitions", [0, 1, 200, 2**32 - 1])
def test_answer_to_a_metadata_question_is_what_protobuf_writes(request_id: int, partitions: int) -> None:
    message = pb.CommandPartitionedTopicMetadataResponse(
        partitions=partitions, request_id=request_id, response=pb.CommandPartitionedTopicMetadataResponse.Success
    )
    assert commands.partitioned_metadata_response(request_id, partitions) == commands.encode(message)
