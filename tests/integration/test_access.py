"""A broker with authentication and authorisation, and who comes to it: our client, the command line, bare calls."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.broker.app import BrokerApp
from interpulse.broker.assembly import CannotServe
from interpulse.broker.config.config_sources import load_config
from interpulse.cli.main import main
from interpulse.client import Client
from interpulse.client.credentials import Credentials
from interpulse.model.errors import AuthenticationError, AuthorizationError
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.front_ends.access import GONE, TOPIC, Player, logged_in, settings, token
from tests.front_ends.brokers import NO_JOB
from tests.support import commands
from tests.support.raw_client import RawClient

METRICS = "/metrics/"


def by_token(role: str) -> Credentials:
    return Credentials.token(f"token:{token(role)}")


def test_super_users_when_changed_at_run_time_then_gain_and_lose_their_rights(access_player: Player) -> None:
    setting = "/admin/v2/brokers/configuration/superUserRoles"

    def may(role: str) -> bool:
        return access_player.call(role, "GET", "/admin/v2/tenants")[0] == 200

    assert (may("admin"), may("second")) == (True, False)
    assert access_player.call("admin", "POST", f"{setting}/second")[0] == 204
    assert (may("admin"), may("second")) == (False, True)
    assert access_player.call("second", "DELETE", setting)[0] == 204
    assert (may("admin"), may("second")) == (True, False)


# --- our client


async def test_client_when_it_has_what_it_needs_then_produces_and_consumes(token_broker: InProcessBroker) -> None:
    async with Client(token_broker.service_url, credentials=by_token("acme-admin")) as client:
        consumer = await client.subscribe(TOPIC, "mine")
        producer = await client.create_producer(TOPIC)
        await producer.send(b"hello")
        assert (await consumer.receive()).content == b"hello"


@pytest.mark.parametrize("topic", [TOPIC, GONE])
async def test_client_when_it_may_not_then_is_told_so_whether_the_topic_exists_or_not(
    token_broker: InProcessBroker, topic: str
) -> None:
    async with Client(token_broker.service_url, credentials=by_token("nobody")) as client:
        with pytest.raises(AuthorizationError, match="not authorized"):
            await client.create_producer(topic)
        with pytest.raises(AuthorizationError, match="not authorized"):
            await client.subscribe(topic, "s")


@pytest.mark.parametrize("credentials", [None, Credentials.token("token:abc")], ids=["none", "bad"])
async def test_client_when_not_let_in_then_says_so_at_both_front_ends(
    token_broker: InProcessBroker, credentials: Credentials | None
) -> None:
    for url in (token_broker.service_url, token_broker.web_url):
        refused = refused_clients(token_broker)
        async with Client(url, credentials=credentials, operation_timeout_ms=5000) as client:
            with pytest.raises(AuthenticationError):
                await client.create_producer(TOPIC)
        if url == token_broker.service_url:
            assert refused_clients(token_broker) > refused


async def test_client_when_its_token_ends_then_brings_a_new_one_and_stays(
    token_broker: InProcessBroker, tmp_path: Path
) -> None:
    """The broker asks over the connection that is open; the client reads its token file again."""
    path = tmp_path / "token"
    path.write_text(token("nprod", expires_in_seconds=5))
    async with Client(token_broker.service_url, credentials=Credentials.token(path.as_uri())) as client:
        producer = await client.create_producer(TOPIC)
        path.write_text(token("nprod"))
        before = connections_made(token_broker)
        await wait_for_login(token_broker, "nprod")
        await producer.send(b"still here")
        assert connections_made(token_broker) == before


def connections_made(broker: InProcessBroker) -> int:
    page = Player(broker.service_url, broker.web_url).call(None, "GET", METRICS)[1]
    return int(sample(page, "pulsar_connection_created_total_count"))


def refused_clients(broker: InProcessBroker) -> int:
    page = Player(broker.service_url, broker.web_url).call(None, "GET", METRICS)[1]
    return int(sample(page, "pulsar_connection_create_fail_count"))


async def wait_for_login(broker: InProcessBroker, role: str) -> None:
    """Until credentials were brought once more."""

    def successes() -> int:
        return broker.app.context.access.authentication.meter.successes["AuthenticationProviderToken", "token"]  # type: ignore[union-attr]

    before, deadline = successes(), time.monotonic() + 60
    while successes() == before:
        assert time.monotonic() < deadline, f"{role} brought no new credentials"
        await asyncio.sleep(0.05)


# --- the command line


def run(broker: InProcessBroker, role: str, *arguments: str) -> tuple[int, str]:
    flags = ["--admin-url", broker.web_url, "--auth-plugin", "org.apache.pulsar.client.impl.auth.AuthenticationToken"]
    result = CliRunner().invoke(main, ["admin", *flags, "--auth-params", f"token:{token(role)}", *arguments])
    return result.exit_code, result.output


def test_command_line_when_it_names_a_token_then_has_the_rights_of_its_role(token_broker: InProcessBroker) -> None:
    assert run(token_broker, "acme-admin", "namespaces", "list", "acme") == (0, "acme/app\n")
    code, printed = run(token_broker, "nobody", "namespaces", "list", "acme")
    assert code != 0
    assert "Don't have permission to administrate resources on this tenant" in printed


def test_plan_of_replication_when_a_tenants_administrator_asks_then_is_made(token_broker: InProcessBroker) -> None:
    (local,) = run(token_broker, "admin", "clusters", "list")[1].split()
    command = ("namespaces", "set-clusters", "acme/app", "-c", local, "--preview")
    assert run(token_broker, "acme-admin", *command) == (0, f"acme/app can be replicated to {local} as it is.\n")
    code, printed = run(token_broker, "other-admin", *command)
    assert (code, "on namespace [acme/app]" in printed) == (4, True), printed


# --- calls


def test_call_when_without_credentials_then_told_how_and_nothing_else(access_player: Player) -> None:
    for method, path in (
        ("GET", "/admin/v2/clusters"),
        ("GET", "/admin/v2/no-such-path"),
        ("PATCH", "/admin/v2/clusters"),
    ):
        assert access_player.call(None, method, path) == (401, '{"reason": "Authentication required"}')
    assert access_player.call(None, "GET", "/livez")[0] == 200


def test_call_when_a_proxy_makes_it_then_both_roles_count(access_player: Player) -> None:
    path = "/lookup/v2/topic/persistent/acme/app/t"
    access_player.call("admin", "POST", "/admin/v2/namespaces/acme/app/permissions/proxy", ["produce"])

    def asked(role: str, original: str | None) -> int:
        return access_player.call(
            role, "GET", path, headers={} if original is None else {"X-Original-Principal": original}
        )[0]

    assert asked("proxy", "nprod") == 200
    assert asked("proxy", "nobody") == 401
    assert asked("proxy", None) == 401
    assert asked("proxy", "proxy") == 401
    assert asked("nobody", "admin") == 401
    assert asked("nprod", "nprod") == 200


def test_metrics_when_clients_come_then_count_who_was_let_in(access_player: Player) -> None:
    names = (
        "pulsar_authentication_success_total",
        "pulsar_authentication_failures_total",
        "pulsar_expired_token_total",
    )
    before = [sample(access_player.call(None, "GET", METRICS)[1], name) for name in names]
    expired = {"Authorization": f"Bearer {token('nprod', expires_in_seconds=-60)}"}
    assert access_player.call(None, "GET", "/admin/v2/clusters", headers=expired)[0] == 401
    assert access_player.call("nprod", "GET", "/admin/v2/clusters")[0] == 200
    page = access_player.call(None, "GET", METRICS)[1]
    assert [sample(page, name) for name in names] == [count + 1 for count in before]
    assert 'provider_name="AuthenticationProviderToken",auth_method="token",reason="INVALID_TOKEN"' in page


def sample(page: str, name: str) -> float:
    """The sum of the samples of one name."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(f"{name}{{"))


def test_refusal_when_logged_then_without_the_token(
    token_broker: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    secret = token("app", expires_in_seconds=-60)
    with caplog.at_level(logging.DEBUG):
        Player(token_broker.service_url, token_broker.web_url).call(
            None, "GET", "/admin/v2/clusters", headers={"Authorization": f"Bearer {secret}"}
        )
        with RawClient(token_broker.service_url, greet=False) as client:
            connect = pb.CommandConnect(client_version="raw", auth_method_name="token", auth_data=secret.encode())
            assert client.ask(commands.encode(connect)).message == "Failed to authenticate"
    assert caplog.text.count("the token has expired") == 2
    assert secret not in caplog.text
    assert secret.rsplit(".", 1)[1] not in caplog.text


async def test_refusals_when_there_are_many_then_the_log_has_one_line_and_their_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = await start(tmp_path, **settings(tmp_path))
    try:
        player = Player(app.service_url, app.web_url)
        for path in (*["/admin/v2/clusters"] * 5, "/console/overview.json"):
            wrong = {"Authorization": "Bearer wrong"}
            assert (await asyncio.to_thread(player.call, None, "GET", path, headers=wrong))[0] == 401
        assert [len(lines) for lines in authentication_lines(caplog)] == [1, 0]
    finally:
        await app.stop()
    one, more = authentication_lines(caplog)
    assert len(one) == 1
    assert [line.partition(" newest_reason=")[0] for line in more] == [
        "more authentications failed address=127.0.0.1 count=5"
    ]


def authentication_lines(caplog: pytest.LogCaptureFixture) -> tuple[list[str], list[str]]:
    """Of the first of an address, and of the others."""
    begins = ("authentication failed ", "more authentications failed ")
    one, more = ([line for line in caplog.messages if line.startswith(begin)] for begin in begins)
    return one, more


# --- the audit log


def test_change_when_asked_then_the_audit_log_says_by_whom_and_what_came_of_it(
    token_broker: InProcessBroker, access_player: Player, caplog: pytest.LogCaptureFixture
) -> None:
    grants = "/admin/v2/namespaces/acme/app/permissions/noted"
    with caplog.at_level(logging.INFO, "interpulse.audit"):
        access_player.call("acme-admin", "POST", grants, ["functions"])
        access_player.call("nobody", "DELETE", grants)
        access_player.call(None, "DELETE", grants)
        access_player.call("admin", "GET", "/admin/v2/tenants")
        with logged_in(token_broker.service_url, "ncons") as client:
            client.ask(commands.subscribe(1, 1, TOPIC, "leaving"))
            client.ask(commands.encode(pb.CommandUnsubscribe(consumer_id=1, request_id=2)))
    lines = [record.getMessage() for record in caplog.records if record.name == "interpulse.audit"]
    begin = "change requested role"
    assert lines[0] == (
        f"{begin}=acme-admin original=- address=127.0.0.1 change=POST subject={grants} code=204 reason=-"
    )
    assert lines[1].startswith(f"{begin}=nobody original=- address=127.0.0.1 change=DELETE subject={grants} code=403")
    assert lines[2].startswith(f"{begin}=- original=- address=127.0.0.1 change=DELETE subject={grants} code=401")
    assert lines[3].startswith(f"{begin}=ncons original=- address=127.0.0.1:")
    assert f"change=UNSUBSCRIBE subject={TOPIC} leaving code=0 reason=-" in lines[3]
    assert len(lines) == 4


# --- permissions that change


def test_permission_when_revoked_then_what_is_open_is_closed_and_cannot_come_back(
    token_broker: InProcessBroker, access_player: Player
) -> None:
    grants = "/admin/v2/namespaces/acme/app/permissions/passing"
    assert access_player.call("acme-admin", "POST", grants, ["produce", "consume"])[0] == 204
    with logged_in(token_broker.service_url, "passing") as client:
        assert isinstance(client.ask(commands.producer(1, 1, TOPIC)), pb.CommandProducerSuccess)
        assert isinstance(client.ask(commands.subscribe(2, 1, TOPIC, "passing")), pb.CommandSuccess)
        assert access_player.call("acme-admin", "DELETE", grants)[0] == 204
        closed = {client.receive().command.type for _ in range(2)}
        assert closed == {pb.BaseCommand.CLOSE_PRODUCER, pb.BaseCommand.CLOSE_CONSUMER}
        assert client.ask(commands.producer(3, 1, TOPIC)).message == "Client is not authorized to Produce"


# --- starting


async def start(tmp_path: Path, **given: str) -> BrokerApp:
    options = {"dataDir": str(tmp_path / "data"), "brokerServicePort": "0", "webServicePort": "0", **NO_JOB, **given}
    app = BrokerApp(load_config(options=options).config)
    await app.start()
    return app


async def test_start_when_a_key_cannot_be_read_then_says_which_and_leaves_nothing_open(tmp_path: Path) -> None:
    given = settings(tmp_path) | {"tokenSecretKey": "file:///not/there"}
    with pytest.raises(CannotServe, match="tokenSecretKey cannot be used: /not/there cannot be read"):
        await start(tmp_path, **given)
    await (await start(tmp_path)).stop()


@pytest.mark.parametrize(("address", "warned"), [("0.0.0.0", True), ("127.0.0.1", False)])
async def test_start_when_others_reach_a_broker_without_authentication_then_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, address: str, warned: bool
) -> None:
    await (await start(tmp_path, bindAddress=address)).stop()
    assert ("clients without credentials may do everything" in caplog.text) is warned


async def test_start_when_others_reach_a_broker_with_authentication_then_does_not_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await (await start(tmp_path, bindAddress="0.0.0.0", **settings(tmp_path))).stop()
    assert "clients without credentials" not in caplog.text


async def test_metrics_when_authenticated_then_need_a_token(tmp_path: Path) -> None:
    app = await start(tmp_path, authenticateMetricsEndpoint="true", **settings(tmp_path))
    try:
        player = Player(app.service_url, app.web_url)
        assert (await asyncio.to_thread(player.call, None, "GET", METRICS))[0] == 401
        assert (await asyncio.to_thread(player.call, "nobody", "GET", METRICS))[0] == 200
    finally:
        await app.stop()
