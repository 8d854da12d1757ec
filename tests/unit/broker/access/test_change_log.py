"""A line of the audit log stays one line, whatever a client calls itself."""

import logging

import pytest

from interpulse.broker.access.change_log import AUDIT_LOGGER, note_change
from interpulse.model.permissions import Principal


def test_change_when_its_client_has_a_name_of_two_lines_then_is_noted_on_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, AUDIT_LOGGER):
        note_change(Principal("proxy", "a\nchange requested role=admin"), "127.0.0.1", "PUT", "/x", 204, "")
    assert caplog.messages == [
        r"change requested role=proxy original='a\nchange requested role=admin' address=127.0.0.1 change=PUT "
        "subject=/x code=204 reason=-"
    ]
