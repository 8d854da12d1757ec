"""The reference of the command line is what the commands say about themselves."""

from tools.generate_cli_reference import PAGE, TREE_PAGE, page, tree_page


def test_page_when_compared_with_the_commands_then_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python tools/generate_cli_reference.py"


def test_page_of_pulsars_commands_when_compared_with_ours_then_is_up_to_date() -> None:
    assert TREE_PAGE.read_text() == tree_page(), "run .venv/bin/python tools/generate_cli_reference.py"
