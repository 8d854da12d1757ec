"""What several test modules of the client need."""

from collections.abc import AsyncIterator, Iterator

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.config import ClientConfig
from interpulse.client.session import Session
from tests.support.scripted_broker import ScriptedBroker
from tests.support.stub_web import StubWeb


@pytest.fixture
def web() -> Iterator[StubWeb]:
    """A web service whose answers the test chooses."""
    with StubWeb() as stub:
        yield stub


@pytest.fixture
async def admin(web: StubWeb) -> AsyncIterator[AdminClient]:
    """An admin client of that service."""
    async with AdminClient(web.url) as client:
        yield client


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    """A broker whose answers the test chooses."""
    async with ScriptedBroker() as scripted:
        yield scripted


@pytest.fixture
async def session(broker: ScriptedBroker) -> AsyncIterator[Session]:
    """A client of that broker, which tries again at once."""
    made = Session(ClientConfig(broker.url, backoff_initial_ms=1, backoff_max_ms=10, operation_timeout_ms=60_000))
    yield made
    await made.close()
