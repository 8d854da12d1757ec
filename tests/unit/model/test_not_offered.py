"""Reasons that users read are true of a broker alone and of a cluster."""

import pytest

from interpulse.model.not_offered import NotOffered


@pytest.mark.parametrize("reason", NotOffered)
def test_reason_when_read_at_a_cluster_with_proxies_then_is_true_there_too(reason: NotOffered) -> None:
    for untrue in ("no proxy", "one disk", "one broker", "own files", "not on bookies"):
        assert untrue not in reason
