"""Greeting and errors."""

from collections.abc import Callable

from interpulse.model.errors import TopicNotFound
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

Read = Callable[[bytes], pb.BaseCommand]


def test_error_when_it_answers_no_request_then_its_id_is_minus_one(read: Read) -> None:
    assert read(commands.error(-1, 3, "no")).error.request_id == 2**64 - 1


def test_error_of_a_failure_carries_its_code_and_sentence(read: Read) -> None:
    error = read(commands.error_of(5, TopicNotFound("gone"))).error
    assert (error.request_id, error.error, error.message) == (5, pb.TopicNotFound, "gone")


def test_connect_when_there_are_no_credentials_then_leaves_them_out(read: Read) -> None:
    connect = read(commands.connect(client_version="v", protocol_version=21, feature_flags=pb.FeatureFlags())).connect
    assert not connect.HasField("auth_data")
    assert not connect.HasField("proxy_to_broker_url")
    assert connect.auth_method_name == "none"


def test_transactions_when_refused_then_with_the_words_clients_compare(read: Read) -> None:
    error = read(commands.transactions_refused(1)).error
    assert (error.error, error.message) == (pb.NotAllowedError, "Transactions are not enabled.")
