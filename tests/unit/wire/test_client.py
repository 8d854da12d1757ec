"""The client's end of a conversation, alone and against the broker's end."""

import pytest

from interpulse.model.errors import AuthenticationError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.client import ClientProtocol
from interpulse.wire.errors import LocalProtocolError, RemoteProtocolError
from interpulse.wire.frames import Frame, FrameDecoder
from interpulse.wire.server import ServerProtocol
from tests.support import commands


def make_pair(**arguments: object) -> tuple[ClientProtocol, ServerProtocol]:
    client = ClientProtocol(client_version="Interpulse", now=0.0, **arguments)  # type: ignore[arg-type]
    flags = pb.FeatureFlags(supports_batch_lookup=True)
    server = ServerProtocol(
        server_version="Pulsar Server 1", feature_flags=flags, now=0.0, message_bytes_max=8 * 1024 * 1024
    )
    return client, server


def connect(client: ClientProtocol, server: ServerProtocol) -> None:
    server.receive_data(client.data_to_send())
    server.accept()
    client.receive_data(server.data_to_send())


def test_greeting_when_both_ends_talk_then_they_agree() -> None:
    client, server = make_pair(proxy_to_broker_url="127.0.0.1:6650", auth_method="token", auth_data=b"jwt")
    connect(client, server)
    assert client.is_connected
    assert client.protocol_version == server.protocol_version == 21
    assert client.peer_flags.supports_batch_lookup
    assert client.message_bytes_max == 8 * 1024 * 1024
    assert server.connect.proxy_to_broker_url == "127.0.0.1:6650"
    assert (server.connect.auth_method_name, server.connect.auth_data) == ("token", b"jwt")


def test_larger_messages_when_the_broker_allows_them_then_are_accepted() -> None:
    client, server = make_pair()
    connect(client, server)
    (frame,) = client.receive_data(commands.send(1, 1, bytes(7 * 1024 * 1024)))
    assert isinstance(frame, Frame)
    assert len(frame.entry or b"") == 7 * 1024 * 1024


def test_greeting_when_refused_then_raises_the_error_of_the_broker() -> None:
    client, server = make_pair()
    server.receive_data(client.data_to_send())
    server.refuse(3, "Failed to authenticate")
    with pytest.raises(AuthenticationError, match="Failed to authenticate"):
        client.receive_data(server.data_to_send())
    assert not client.is_connected


def test_greeting_when_the_broker_says_something_else_then_remote_protocol_error() -> None:
    client, _ = make_pair()
    with pytest.raises(RemoteProtocolError):
        client.receive_data(commands.success(1))


def test_second_connected_is_a_remote_protocol_error() -> None:
    client, server = make_pair()
    connect(client, server)
    again = commands.connected(
        server_version="x", protocol_version=1, message_bytes_max=1, feature_flags=pb.FeatureFlags()
    )
    with pytest.raises(RemoteProtocolError):
        client.receive_data(again)


def test_broker_properties_before_its_answer_are_a_local_protocol_error() -> None:
    client, _ = make_pair()
    with pytest.raises(LocalProtocolError):
        _ = client.peer_flags


def test_challenge_when_it_comes_then_is_answered_with_fresh_credentials() -> None:
    client, server = make_pair(auth_method="token", auth_data=b"old")
    connect(client, server)
    server.challenge("token")
    assert client.receive_data(server.data_to_send()) == []
    assert client.wants_credentials
    client.answer_challenge(b"new")
    assert not client.wants_credentials
    (frame,) = server.receive_data(client.data_to_send())
    assert frame.command.authResponse.response.auth_data == b"new"


def test_request_ids_begin_at_zero_and_never_repeat() -> None:
    client, _ = make_pair()
    assert [client.next_request_id() for _ in range(3)] == [0, 1, 2]


def test_keep_alive_when_the_broker_falls_silent_then_remote_protocol_error() -> None:
    client, server = make_pair()
    connect(client, server)
    client.tick(30.0)
    assert server.receive_data(client.data_to_send()) == []
    client.receive_data(server.data_to_send())
    client.tick(60.0)
    assert FrameDecoder().feed(client.data_to_send())[0].command.type == pb.BaseCommand.PING
    with pytest.raises(RemoteProtocolError):
        client.tick(90.0)
