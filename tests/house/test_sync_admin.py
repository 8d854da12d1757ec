"""The blocking admin client has what the asynchronous one has."""

from __future__ import annotations

import inspect

import pytest

from interpulse.client.admin import admin_client as admin
from interpulse.sync import AdminClient
from tools.generate_sync_admin import MODULE, module_text


def test_module_when_compared_with_the_asynchronous_client_then_is_up_to_date() -> None:
    assert MODULE.read_text() == module_text(), "run .venv/bin/python tools/generate_sync_admin.py"


PARTS = [name for name, part in vars(admin.AdminClient("http://x")).items() if type(part).__name__.endswith("Admin")]


@pytest.mark.parametrize("part", PARTS)
def test_part_when_compared_then_has_the_same_methods_with_the_same_parameters(part: str) -> None:
    asynchronous = getattr(admin.AdminClient("http://x"), part)
    with AdminClient("http://x") as client:
        blocking = getattr(client, part)
        methods = inspect.getmembers(asynchronous, inspect.iscoroutinefunction)
        assert methods
        for name, method in methods:
            if not name.startswith("_"):
                assert inspect.signature(getattr(blocking, name)) == inspect.signature(method), name
