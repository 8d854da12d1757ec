"""The reference of the command line is what the commands say about themselves."""

from tools.generate_cli_reference import PAGE, page


def test_page_when_compared_with_the_commands_then_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python tools/generate_cli_reference.py"
