"""Addresses of pages and paths of the admin API."""

from __future__ import annotations

import pytest

from interpulse.console.web import addresses
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NamespaceName, TopicName

HOSTILE = 'a&b=c#d?e/f%00"<\u202e>'


def test_page_url_when_names_are_hostile_then_reads_back_the_same() -> None:
    url = addresses.page_url("topic", name=HOSTILE, page=None)
    path, _, query = url.partition("?")
    assert path == "/console/topic"
    assert addresses.read_query(query) == {"name": HOSTILE}
    assert addresses.action_url("x", a=1) == "/console/actions/x?a=1"


def test_paths_of_the_admin_api() -> None:
    topic = TopicName.parse("persistent://a/b/c d%e")
    assert addresses.topic_path(topic, "/stats", x=True) == "/admin/v2/persistent/a/b/c+d%25e/stats?x=true"
    assert addresses.namespace_path(NamespaceName.parse("a/b"), "/retention") == "/admin/v2/namespaces/a/b/retention"
    assert addresses.admin_path("clusters", "a/b", all=1) == "/admin/v2/clusters/a%2Fb?all=1"


@pytest.mark.parametrize("text", ["a=%ff", "&".join("a=" for _ in range(51))])
def test_read_query_when_it_cannot_be_read_then_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        addresses.read_query(text)


@pytest.mark.parametrize(
    ("place", "goes_to"),
    [
        ("/console/topic?name=a//b", "/console/topic?name=a//b"),
        ("/console", "/console"),
        ("//evil/console", "/console"),
        ("https://evil/console", "/console"),
        ("/console/%2f/evil", "/console"),
        ("/console/\\evil", "/console"),
        ("/console/%ff", "/console"),
        ("/console\n", "/console"),
        ("/admin", "/console"),
    ],
)
def test_safe_next(place: str, goes_to: str) -> None:
    assert addresses.safe_next(place) == goes_to
