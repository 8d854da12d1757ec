"""The properties of a namespace."""

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

ROOT = "/admin/v2/namespaces/t/ns"


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("set-property t/ns -k a -v b/c", ("PUT", f"{ROOT}/property/a/b%2Fc", None)),
        ("set-properties t/ns -p a=b,c=d -p e=", ("PUT", f"{ROOT}/properties", {"a": "b", "c": "d", "e": ""})),
        ("clear-properties t/ns", ("DELETE", f"{ROOT}/properties", None)),
    ],
)
def test_properties_when_changed_then_asks_for_it(sent_by: SentBy, typed: str, sent: tuple[str, str, object]) -> None:
    assert sent_by("namespaces", *typed.split()) == sent


def test_properties_when_asked_for_then_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/properties", {"a": "b", "c": ""})
    web.answer_raw("GET", f"{ROOT}/property/a", b"007", content_type="application/json")
    web.answer_raw("GET", f"{ROOT}/property/none", b"")
    assert run_admin("namespaces", "get-properties", "t/ns").stdout == "a    b\nc    \n"
    assert run_admin("namespaces", "get-property", "t/ns", "-k", "a").stdout == "007\n"
    assert run_admin("namespaces", "get-property", "t/ns", "-k", "none").stdout == "null\n"
    assert run_admin("namespaces", "remove-property", "t/ns", "--key", "a").stdout == "007\n"
    assert (web.last.method, web.last.target) == ("DELETE", f"{ROOT}/property/a")
