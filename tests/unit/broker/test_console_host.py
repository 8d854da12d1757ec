"""Where there is a console."""

from __future__ import annotations

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.console_host import availability

ALL = "0.0.0.0"


@pytest.mark.parametrize(
    ("mode", "address", "authentication", "anonymous", "installed", "expected"),
    [
        ("auto", "127.0.0.1", False, "", True, ""),
        ("auto", "::1", False, "", True, ""),
        ("auto", "localhost", False, "", True, ""),
        ("auto", ALL, False, "", True, "lets in callers without credentials"),
        ("auto", "broker-1", False, "", True, "lets in callers without credentials"),
        ("auto", ALL, True, "", True, ""),
        ("auto", ALL, True, "guest", True, "lets in callers without credentials"),
        ("true", ALL, False, "", True, ""),
        ("false", "127.0.0.1", True, "", True, "consoleEnabled=false"),
        ("auto", "127.0.0.1", False, "", False, "interpulse[console]"),
        ("true", "127.0.0.1", False, "", False, "interpulse[console]"),
        ("false", "127.0.0.1", False, "", False, "consoleEnabled=false"),
    ],
)
def test_availability(
    mode: str, address: str, authentication: bool, anonymous: str, installed: bool, expected: str
) -> None:
    config = BrokerConfig(
        console_enabled=mode,
        bind_address=address,
        authentication_enabled=authentication,
        anonymous_user_role=anonymous,
    )
    found = availability(config, installed=installed)
    assert found.on == (not expected)
    assert expected in found.reason
