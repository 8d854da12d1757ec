"""When tokens end."""

import base64
import json

import pytest

from interpulse.cli.watching.check import certificate_of_server, token_end


def token(claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.sig"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (token({"sub": "a", "exp": 1700}), 1700.0),
        (token({"sub": "a"}), None),
        (token([1]), None),
        ("nonsense", None),
        ("a.%%%.b", None),
        ("", None),
    ],
)
def test_end_of_a_token(text: str, end: float | None) -> None:
    assert token_end(text) == end


def test_certificate_when_the_address_is_not_one_of_tls_then_there_is_none() -> None:
    assert certificate_of_server("http://127.0.0.1:8080", None) is None
