"""Keys of tokens that change under a broker and its proxy (PIP-490): no token that is good is ever refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from interpulse.authentication.tokens import create_token, json_key
from interpulse.client import AdminClient, Client, Credentials
from interpulse.model.errors import AuthenticationError, NotFound
from interpulse.testing import InProcessBroker
from interpulse.testing.broker import Setting
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB
from tests.support.proxies import ProxyInThread, proxy_in_thread
from tests.support.waiting import SECONDS_MAX

TOPIC = "persistent://acme/app/rotated"
KEYS = {kid: ec.generate_private_key(ec.SECP256R1()) for kid in ("own", "a", "b")}
"""``own`` signs the tokens of broker and proxy themselves."""


def token(kid: str, role: str = "admin") -> str:
    return create_token(KEYS[kid], role, signature="ES256", headers={"kid": kid})


@dataclass(frozen=True)
class Rotating:
    """A broker and a proxy that share a file of keys."""

    broker: InProcessBroker
    proxy: ProxyInThread
    file: Path

    async def taken(self, kid: str) -> list[bool]:
        """Return for each port of broker and proxy if it takes a token of that key."""
        credentials = Credentials.token(token(kid))
        taken = []
        for place in (self.broker, self.proxy):
            async with Client(place.service_url, credentials=credentials, operation_timeout_ms=20_000) as client:
                taken.append(await accepted(client.get_partitions_for_topic(TOPIC, create=False)))
            async with AdminClient(place.web_url, credentials=credentials) as admin:
                taken.append(await accepted(admin.tenants.list()))
        return taken

    async def until_taken(self, kid: str, wanted: bool) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while await self.taken(kid) != [wanted] * 4:  # noqa: ASYNC110  # files tell nobody
                await asyncio.sleep(0.05)


async def accepted(call: Awaitable[object]) -> bool:
    try:
        await call
    except AuthenticationError:
        return False
    except NotFound:
        return True
    return True


def write_keys(file: Path, *kids: str) -> None:
    """Replace the file in one step."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"keys": [json_key(KEYS[kid].public_key(), kid) for kid in kids]}))
    new.replace(file)


@pytest.fixture
def rotating(tmp_path: Path) -> Iterator[Rotating]:
    file = tmp_path / "keys.json"
    write_keys(file, "own", "a")
    keys: dict[str, Setting] = {
        "tokenSecretKey": "",
        "tokenValidationKeysJwks": file.as_uri(),
        "tokenValidationKeysRefreshSeconds": 1,
        "tokenRequireKid": True,
    }
    given: dict[str, Setting] = {**access.settings(tmp_path), **keys, **NO_JOB}
    provider, plugin = given["authenticationProviders"], given["brokerClientAuthenticationPlugin"]
    given["brokerClientAuthenticationParameters"] = f"token:{token('own')}"
    given |= {"authenticateOriginalAuthData": True, "superUserRoles": "admin,proxy"}
    of_proxy: dict[str, Setting] = {
        "authenticationEnabled": True,
        "authenticationProviders": provider,
        "brokerClientAuthenticationPlugin": plugin,
        "brokerClientAuthenticationParameters": f"token:{token('own', 'proxy')}",
        "forwardAuthorizationCredentials": True,
    }
    with (
        InProcessBroker(tmp_path / "data", given) as broker,
        proxy_in_thread(broker.service_url, broker.web_url, **of_proxy, **keys) as proxy,
    ):
        yield Rotating(broker, proxy, file)


async def test_keys_when_rotated_then_tokens_of_both_are_good_until_the_old_key_goes(rotating: Rotating) -> None:
    assert (await rotating.taken("a"), await rotating.taken("b")) == ([True] * 4, [False] * 4)
    write_keys(rotating.file, "own", "a", "b")
    await rotating.until_taken("b", True)
    assert await rotating.taken("a") == [True] * 4
    write_keys(rotating.file, "own", "b")
    await rotating.until_taken("a", False)
    assert await rotating.taken("b") == [True] * 4
