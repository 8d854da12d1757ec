"""The commands that bring extras."""

from interpulse.model.extras import pip_install


def test_command_when_shown_then_holds_for_an_index_and_for_a_checkout() -> None:
    assert pip_install("perf") == "pip install 'interpulse[perf]', or '.[perf]' in a checkout"
