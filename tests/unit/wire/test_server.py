"""The broker's end of a conversation: greeting, what has to wait, keep-alive."""

from collections.abc import Sequence

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import LocalProtocolError, RemoteProtocolError
from interpulse.wire.frames import Frame, FrameDecoder
from interpulse.wire.server import ServerProtocol
from tests.support import commands

FLAGS = pb.FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)


def make_server() -> ServerProtocol:
    return ServerProtocol(server_version="Pulsar Server 1", feature_flags=FLAGS, now=0.0)


def greeting(version: int = 21) -> bytes:
    flags = pb.FeatureFlags(supports_auth_refresh=True)
    return commands.connect(client_version="test", protocol_version=version, feature_flags=flags)


def sent(server: ServerProtocol) -> list[pb.BaseCommand]:
    return [frame.command for frame in FrameDecoder().feed(server.data_to_send())]


def connected_server() -> ServerProtocol:
    server = make_server()
    server.receive_data(greeting())
    server.accept()
    server.data_to_send()
    return server


def frames_of(received: Sequence[object]) -> list[Frame]:
    frames = [item for item in received if isinstance(item, Frame)]
    assert len(frames) == len(received)
    return frames


@pytest.mark.parametrize(("version", "agreed"), [(19, 19), (21, 21), (99, 21), (0, 0)])
def test_connect_when_accepted_then_connected_says_the_lower_version(version: int, agreed: int) -> None:
    server = make_server()
    (frame,) = frames_of(server.receive_data(greeting(version)))
    assert frame.command.type == pb.BaseCommand.CONNECT
    assert server.data_to_send() == b""
    server.accept()
    (answer,) = sent(server)
    assert answer.connected.protocol_version == agreed
    assert answer.connected.server_version == "Pulsar Server 1"
    assert answer.connected.max_message_size == 5 * 1024 * 1024
    assert answer.connected.feature_flags == FLAGS
    assert server.data_to_send() == b""


@pytest.mark.parametrize("data", [commands.PING, commands.PONG, commands.flow(1, 1)])
def test_first_command_when_it_is_not_connect_then_remote_protocol_error(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        make_server().receive_data(data)


def test_connect_when_it_comes_twice_then_remote_protocol_error() -> None:
    with pytest.raises(RemoteProtocolError):
        connected_server().receive_data(greeting())
    with pytest.raises(RemoteProtocolError):
        make_server().receive_data(greeting() + greeting())


def test_commands_when_sent_behind_connect_then_wait_until_it_is_accepted() -> None:
    server = make_server()
    assert len(server.receive_data(greeting() + commands.flow(1, 10) + commands.PING)) == 1
    assert server.receive_data(commands.flow(2, 10)) == []
    server.accept()
    frames = frames_of(server.receive_data(commands.flow(3, 10)))
    assert [frame.command.flow.consumer_id for frame in frames] == [1, 2, 3]
    assert server.receive_data(b"") == []


def test_commands_when_too_many_wait_then_remote_protocol_error() -> None:
    server = make_server()
    server.receive_data(greeting())
    with pytest.raises(RemoteProtocolError):
        server.receive_data(commands.flow(1, 10) * 1001)


def test_client_when_refused_then_gets_error_and_nothing_more_is_heard() -> None:
    server = make_server()
    server.receive_data(greeting() + commands.flow(1, 10))
    server.refuse(3, "Failed to authenticate")
    (answer,) = sent(server)
    assert (answer.error.error, answer.error.request_id) == (pb.AuthenticationError, 2**64 - 1)
    assert server.receive_data(commands.flow(1, 10)) == []


def test_ping_when_it_comes_among_commands_then_is_answered_and_not_handed_out() -> None:
    server = connected_server()
    frames = frames_of(server.receive_data(commands.flow(1, 1) + commands.PING + commands.PONG + commands.flow(2, 1)))
    assert [frame.command.flow.consumer_id for frame in frames] == [1, 2]
    assert server.data_to_send() == commands.PONG


def test_tick_when_the_client_speaks_then_pings_each_interval() -> None:
    server = connected_server()
    server.tick(29.0)
    assert server.data_to_send() == b""
    for now in (30.0, 60.0, 90.0):
        assert server.next_tick == now
        server.tick(now)
        assert server.data_to_send() == commands.PING
        server.receive_data(commands.PONG)


def test_tick_when_the_client_is_silent_then_remote_protocol_error_unless_we_do_not_read() -> None:
    server = connected_server()
    server.tick(30.0)
    server.tick(60.0, reading=False)
    with pytest.raises(RemoteProtocolError):
        server.tick(90.0)


def test_tick_when_the_greeting_takes_too_long_then_remote_protocol_error() -> None:
    server = make_server()
    server.receive_data(greeting())
    with pytest.raises(RemoteProtocolError):
        server.tick(30.0)


def test_challenge_when_the_client_takes_them_then_is_sent_and_answered() -> None:
    server = connected_server()
    server.challenge("token")
    (challenge,) = sent(server)
    assert challenge.authChallenge.challenge.auth_method_name == "token"
    answer = commands.auth_response(client_version="c", protocol_version=0, auth_method="token", auth_data=b"new")
    (frame,) = frames_of(server.receive_data(answer))
    assert frame.command.authResponse.response.auth_data == b"new"


def test_wrong_calls_are_local_protocol_errors() -> None:
    server = make_server()
    with pytest.raises(LocalProtocolError):
        server.accept()
    with pytest.raises(LocalProtocolError):
        server.refuse(0, "")
    with pytest.raises(LocalProtocolError):
        _ = server.connect
    server.receive_data(greeting(version=13))
    server.accept()
    assert server.accepts_closing
    assert not server.accepts_auth_challenge
    with pytest.raises(LocalProtocolError):
        server.challenge("token")
