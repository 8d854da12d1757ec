"""The options of the administration's entry point."""

import pytest
from click.testing import CliRunner

from interpulse import __version__
from interpulse.cli.admin.admin import admin
from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_version_when_asked_for_then_is_printed(flag: str) -> None:
    assert CliRunner().invoke(admin, [flag]).output == f"{__version__}\n"


def test_url_when_given_as_flag_then_wins_over_environment(
    web: StubWeb, run_admin: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("webServiceUrl", "http://127.0.0.1:1")
    web.answer("GET", "/admin/v2/tenants", [])
    assert run_admin("--admin-url", web.url, "tenants", "list").exit_code == 0


def test_timeout_when_not_positive_then_is_wrong_usage(run_admin: RunAdmin) -> None:
    result = run_admin("--request-timeout", "0", "tenants", "list")
    assert result.exit_code == 2
    assert "0 is not in the range x>=1" in result.stderr
