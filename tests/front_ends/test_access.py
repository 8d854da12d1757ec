"""The table of permissions on our broker, and what only ours can be asked: many topics with one question."""

from __future__ import annotations

import json

import pytest

from interpulse.testing import InProcessBroker
from tests.front_ends.access import BINARY, GONE, REST, ROLES, TOPIC, Player, Row, logged_in
from tests.support import commands


@pytest.mark.parametrize("row", BINARY, ids=lambda row: row.id)
def test_command_by_every_role(access_player: Player, row: Row) -> None:
    answers = {role: access_player.binary(row, role) for role in ROLES}
    assert answers == {role: row.expected(role) for role in ROLES}


@pytest.mark.parametrize("row", REST, ids=lambda row: row.id)
def test_call_by_every_role(access_player: Player, row: Row) -> None:
    answers = {role: access_player.rest(row, role) for role in ROLES}
    assert answers == {role: row.expected(role) for role in ROLES}


@pytest.mark.parametrize(
    ("role", "refused"),
    [("admin", set()), ("nprod", {"none"}), ("tcons", {"gone", "none"}), ("nobody", {"t", "gone", "none"})],
)
def test_many_topics_when_looked_up_then_each_is_asked_for_by_itself(
    token_broker: InProcessBroker, access_player: Player, role: str, refused: set[str]
) -> None:
    """PIP-35: topics that may not be looked up fail alone, and nothing is said about whether they exist."""
    topics = {"t": TOPIC, "gone": GONE, "none": "persistent://none/none/t"}
    with logged_in(token_broker.service_url, role) as client:
        answer = client.ask(commands.batch_lookup(1, list(topics.values()), create_if_missing=False))
    by_code = {name: failure.error for failure in answer.failures for name in failure.topicname}
    assert {name for name in topics if by_code.get(topics[name]) == 4} == refused
    assert {name for name in topics if topics[name] not in by_code} == {"t"} - refused

    status, body = access_player.call(
        role, "POST", "/lookup/v2/topics", {"topics": list(topics.values()), "createIfMissing": False}
    )
    said = json.loads(body)
    assert status == 200
    by_status = {name: failure["status"] for failure in said["failures"] for name in failure["topics"]}
    assert {name for name in topics if by_status.get(topics[name]) == 403} == refused
    assert {name for name in topics if topics[name] not in by_status} == {"t"} - refused
