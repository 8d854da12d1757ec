"""What a broker learns of a client of the proxy."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.errors import AuthenticationError
from interpulse.proxy.forwarding import PROXY_VERSION, broker_connect, broker_connect_for, forwarded_credentials
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import OriginalClient
from interpulse.wire.frames import FrameDecoder


def sent(**more: Any) -> pb.CommandConnect:
    return pb.CommandConnect(
        client_version="client",
        protocol_version=19,
        proxy_to_broker_url="broker:6650",
        original_principal="admin",
        original_auth_data="stolen",
        original_auth_method="token",
        auth_method_name="token",
        auth_data=b"mine",
        feature_flags=pb.FeatureFlags(supports_auth_refresh=True, supports_topic_watchers=True),
        **more,
    )


def forwarded(connect: pb.CommandConnect, *, credentials_forwarded: bool) -> pb.CommandConnect:
    (frame,) = FrameDecoder().feed(broker_connect(connect, credentials_forwarded=credentials_forwarded))
    return frame.command.connect


@pytest.mark.parametrize("credentials_forwarded", [True, False])
def test_connect_when_forwarded_then_keeps_version_and_flags_but_no_original_client(
    credentials_forwarded: bool,
) -> None:
    greeting = forwarded(sent(), credentials_forwarded=credentials_forwarded)
    assert greeting.proxy_version.startswith("interpulse-")
    for name in ("proxy_to_broker_url", "original_principal", "original_auth_data", "original_auth_method"):
        assert not greeting.HasField(name)
    assert (greeting.client_version, greeting.protocol_version) == ("client", 19)
    assert greeting.feature_flags == sent().feature_flags
    assert (greeting.auth_method_name, greeting.auth_data) == (
        ("token", b"mine") if credentials_forwarded else ("none", b"")
    )


@pytest.mark.parametrize("method", ["token", None])
def test_connect_when_the_proxy_speaks_for_the_client_then_names_it_and_shows_its_own_credentials(
    method: str | None,
) -> None:
    original = OriginalClient("app", PROXY_VERSION, method, "mine" if method else None)
    (frame,) = FrameDecoder().feed(broker_connect_for(original, sent(), "basic", b"proxy:word"))
    greeting = frame.command.connect
    assert (greeting.auth_method_name, greeting.auth_data) == ("basic", b"proxy:word")
    assert (greeting.original_principal, greeting.proxy_version) == ("app", PROXY_VERSION)
    assert greeting.HasField("original_auth_method") is greeting.HasField("original_auth_data") is (method is not None)
    assert (greeting.original_auth_method, greeting.original_auth_data) == ((method, "mine") if method else ("", ""))
    assert (greeting.client_version, greeting.protocol_version) == ("client", 19)
    assert greeting.feature_flags == sent().feature_flags
    assert not greeting.HasField("proxy_to_broker_url")


def test_connect_when_it_has_fields_that_are_newer_than_the_proxy_then_keeps_them() -> None:
    connect = sent()
    connect.MergeFromString(b"\xf2\x3f\x03new")  # field 1022
    assert b"\xf2\x3f\x03new" in broker_connect(connect, credentials_forwarded=False)


@pytest.mark.parametrize(
    ("method", "data", "secret"),
    [
        ("token", b"env:HOME", "env:HOME"),
        ("token", b"file:///etc/passwd", "file:///etc/passwd"),
        ("basic", b"a:b", "a:b"),
        ("basic", b"file:///etc/passwd", "file:///etc/passwd"),
        ("basic", b"env:HOME", "env:HOME"),
        ("basic", b'{"userId":"a"}:b', '{"userId":"a"}:b'),
    ],
)
def test_credentials_when_forwarded_then_are_the_text_itself_and_never_a_source(
    method: str, data: bytes, secret: str
) -> None:
    found = forwarded_credentials(pb.CommandConnect(client_version="", auth_method_name=method, auth_data=data))
    assert found is not None
    assert (found.method, found.secret()) == (method, secret)


@pytest.mark.parametrize("method", ["", "none"])
def test_credentials_when_there_are_none_then_none(method: str) -> None:
    assert forwarded_credentials(pb.CommandConnect(client_version="", auth_method_name=method)) is None


@pytest.mark.parametrize(
    ("method", "data"), [("athenz", b"x"), ("tls", b""), ("token", b"\xff"), ("basic", b"no-password")]
)
def test_credentials_when_they_cannot_be_forwarded_then_refused(method: str, data: bytes) -> None:
    with pytest.raises(AuthenticationError):
        forwarded_credentials(pb.CommandConnect(client_version="", auth_method_name=method, auth_data=data))
