"""Both ends of a connection, against each other and against frames made by hand."""

from collections.abc import Sequence

import pytest

from interpulse.model.errors import AuthenticationError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import LocalProtocolError, RemoteProtocolError
from interpulse.wire.frames import Frame, FrameDecoder
from interpulse.wire.protocols import ClientProtocol, KeepAlive, ServerProtocol
from tests.support import commands


def test_interval_when_it_ends_then_the_next_one_begins_at_that_moment() -> None:
    keep_alive = KeepAlive(30.0, 100.0)
    assert not keep_alive.elapsed(129.9)
    assert keep_alive.next_tick == 130.0
    assert keep_alive.elapsed(131.0)
    assert keep_alive.next_tick == 161.0
    assert not keep_alive.elapsed(131.0)


def test_peer_when_it_is_silent_then_remote_protocol_error_names_the_interval() -> None:
    keep_alive = KeepAlive(0.5, 0.0)
    with pytest.raises(RemoteProtocolError, match=r"^nothing heard for 0\.5 s$"):
        keep_alive.check_heard()
    keep_alive.heard = True
    keep_alive.check_heard()
    assert keep_alive.ping() == commands.PING
    with pytest.raises(RemoteProtocolError):
        keep_alive.check_heard()


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
