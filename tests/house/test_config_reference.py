"""The reference of the settings is what the settings say about themselves."""

from tools.generate_config_reference import PAGE, PROXY_PAGE, page, proxy_page


def test_page_when_compared_with_the_settings_then_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python tools/generate_config_reference.py"


def test_page_of_the_proxy_when_compared_with_the_settings_then_is_up_to_date() -> None:
    assert PROXY_PAGE.read_text() == proxy_page(), "run .venv/bin/python tools/generate_config_reference.py"
