"""The reference of permissions is what routes and commands say they need: a new one without its row is red."""

from tools.generate_permission_reference import PAGE, page


def test_page_when_compared_with_routes_and_commands_then_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python tools/generate_permission_reference.py"
