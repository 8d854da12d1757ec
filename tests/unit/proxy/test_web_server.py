"""The paths that a proxy forwards."""

from __future__ import annotations

import pytest

from interpulse.proxy.web_server import is_forwarded


@pytest.mark.parametrize(
    ("path", "forwarded"),
    [
        ("/admin", True),
        ("/admin/v2/clusters", True),
        ("/admin/v3/functions", True),
        ("/lookup/v2/topic/persistent/public/default/a..b", True),
        ("/admin/v2/persistent/public/default/a%2Fb/stats", True),
        ("/admin/v2/persistent/public/default/.hidden", True),
        ("/", False),
        ("/administration", False),
        ("/metrics", False),
        ("//admin", False),
        ("/Admin", False),
        ("/admin/../metrics", False),
        ("/admin/..", False),
        ("/admin/./v2", False),
        ("/admin/%2e%2e/metrics", False),
        ("/admin/%252e%252e/metrics", False),
        ("/admin/..%2fmetrics", False),
        ("/admin/..;/metrics", False),
        ("/admin/..\\metrics", False),
        ("http://elsewhere.example/admin", False),
    ],
)
def test_path_when_checked_then_forwarded_or_not(path: str, forwarded: bool) -> None:
    assert is_forwarded(path) is forwarded
