"""The table in the reference of policies follows the catalogue."""

from tools.generate_policy_reference import PAGE, page


def test_table_of_policies_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python -m tools.generate_policy_reference"
