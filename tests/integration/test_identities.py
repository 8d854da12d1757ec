"""Passwords and tokens of an issuer, beside plain tokens: our client, its admin client and the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from passlib.hash import apr_md5_crypt

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.config_sources import load_config
from interpulse.cli.main import main
from interpulse.client import AdminClient, Client
from interpulse.client.credentials import Credentials
from interpulse.model.errors import AuthenticationError, AuthorizationError
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB
from tests.support.issuer import AUDIENCE, Issuer
from tests.support.waiting import eventually

TOPIC = "persistent://public/default/t"
PACKAGE = "org.apache.pulsar.broker.authentication."
OAUTH2 = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(f"admin:{apr_md5_crypt.hash('admin-word')}\nnobody:{apr_md5_crypt.hash('word')}\n")
    return path


@pytest.fixture
async def app(tmp_path: Path, issuer: Issuer, users: Path) -> AsyncIterator[BrokerApp]:
    """A broker that takes plain tokens, tokens of the issuer, and passwords; ``admin`` is its super user."""
    providers = ("AuthenticationProviderToken", "AuthenticationProviderBasic", "AuthenticationProviderOpenID")
    options = {
        "dataDir": str(tmp_path / "data"),
        "brokerServicePort": "0",
        "webServicePort": "0",
        **NO_JOB,
        **access.settings(tmp_path),
        "authenticationProviders": ",".join(PACKAGE + name for name in providers),
        "basicAuthConf": users.as_uri(),
        "openIDAllowedTokenIssuers": issuer.url,
        "openIDAllowedAudiences": AUDIENCE,
        "openIDRequireIssuersUseHttps": "false",
    }
    broker = BrokerApp(load_config(options=options).config)
    await broker.start()
    yield broker
    await broker.stop()


def oauth2(issuer: Issuer, directory: Path, client_id: str, **more: str) -> Credentials:
    key = issuer.key_file(directory / f"{client_id}.json", client_id, **more)
    return Credentials.oauth2(issuer.url, key.as_uri(), audience=AUDIENCE)


async def test_client_when_it_has_any_good_credentials_then_works_at_both_front_ends(
    app: BrokerApp, issuer: Issuer, tmp_path: Path
) -> None:
    for credentials in (
        Credentials.token(f"token:{access.token('admin')}"),
        Credentials.basic("admin", "admin-word"),
        oauth2(issuer, tmp_path, "admin"),
    ):
        async with Client(app.service_url, credentials=credentials) as client:
            await (await client.create_producer(TOPIC)).send(b"hello")
        async with AdminClient(app.web_url, credentials=credentials) as admin:
            assert await admin.namespaces.list("public") == ["public/default"]


async def test_client_when_its_credentials_are_bad_then_is_told_so_at_both_front_ends(
    app: BrokerApp, issuer: Issuer, tmp_path: Path
) -> None:
    bad = [Credentials.basic("admin", "word"), oauth2(issuer, tmp_path, "admin", secret="wrong")]
    issuer.lifetime_seconds = -60
    for credentials in (*bad, oauth2(issuer, tmp_path, "late")):
        async with Client(app.service_url, credentials=credentials, operation_timeout_ms=5000) as client:
            with pytest.raises(AuthenticationError):
                await client.create_producer(TOPIC)
        async with AdminClient(app.web_url, credentials=credentials) as admin:
            with pytest.raises(AuthenticationError):
                await admin.tenants.list()


async def test_client_when_it_was_granted_nothing_then_is_refused(
    app: BrokerApp, issuer: Issuer, tmp_path: Path
) -> None:
    for credentials in (Credentials.basic("nobody", "word"), oauth2(issuer, tmp_path, "nobody")):
        async with Client(app.service_url, credentials=credentials) as client:
            with pytest.raises(AuthorizationError):
                await client.create_producer(TOPIC)


async def test_client_when_the_token_of_its_issuer_ends_then_brings_another_and_stays(
    app: BrokerApp, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.lifetime_seconds = 3
    async with Client(app.service_url, credentials=oauth2(issuer, tmp_path, "admin")) as client:
        producer = await client.create_producer(TOPIC)
        given, connections = issuer.asked("/token"), connections_made(app)
        issuer.lifetime_seconds = 3600
        await eventually(lambda: issuer.asked("/token") > given)
        await producer.send(b"still here")
        assert connections_made(app) == connections


async def test_user_when_taken_out_of_the_file_then_is_cut_off(app: BrokerApp, users: Path) -> None:
    async with Client(
        app.service_url, credentials=Credentials.basic("admin", "admin-word"), operation_timeout_ms=3000
    ) as client:
        producer = await client.create_producer(TOPIC)
        await producer.send(b"1")
        await asyncio.to_thread(users.write_text, f"nobody:{apr_md5_crypt.hash('word')}\n")
        await eventually(lambda: not producer.is_connected)
    async with AdminClient(app.web_url, credentials=Credentials.basic("admin", "admin-word")) as admin:
        with pytest.raises(AuthenticationError):
            await admin.tenants.list()


def connections_made(app: BrokerApp) -> int:
    return app.parts.binary_server.connections.created


async def test_command_line_when_it_names_a_plugin_then_has_the_rights_of_its_role(
    app: BrokerApp, issuer: Issuer, tmp_path: Path
) -> None:
    key = issuer.key_file(tmp_path / "key.json", "admin")
    params = json.dumps({"issuerUrl": issuer.url, "privateKey": key.as_uri(), "audience": AUDIENCE})
    for plugin, given in ((OAUTH2, params), ("AuthenticationBasic", "admin:admin-word")):
        flags = ["--admin-url", app.web_url, "--auth-plugin", plugin, "--auth-params", given]
        ran = await asyncio.to_thread(CliRunner().invoke, main, ["admin", *flags, "tenants", "list"])
        assert (ran.exit_code, "public" in ran.output) == (0, True), ran.output
