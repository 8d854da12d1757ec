"""The rows of PIP-414: which names agree with their partition metadata."""

from __future__ import annotations

import pytest

from interpulse.model.errors import TopicInconsistent
from interpulse.rules.consistency import check_consistency
from interpulse.rules.topic_view import TopicView
from tests.unit.rules.topic_world import HEARTBEAT, view_of


class TestConsistency:
    """PIP-414: a name must agree with the partition metadata of its base."""

    @pytest.mark.parametrize(
        ("view", "message"),
        [
            pytest.param(view_of("x-partition-0"), "Partition metadata not found", id="pip414-row1"),
            pytest.param(view_of("x-partition-2", 3), None, id="pip414-row2"),
            pytest.param(view_of("x-partition-3", 3), "has 3 partitions, 0 to 2", id="pip414-row3"),
            pytest.param(view_of("x"), None, id="pip414-row4"),
            pytest.param(view_of("x", 3), "Found partitioned metadata for non-partitioned topic", id="pip414-row5"),
            pytest.param(view_of(f"{HEARTBEAT}-partition-0"), None, id="pip414-row6"),
            pytest.param(view_of("__change_events-partition-0"), "Partition metadata not found", id="system-topic"),
            pytest.param(view_of("x-partition-01", 3), None, id="not-a-partition-name"),
            pytest.param(view_of("x-partition-0-DLQ", 3), None, id="dead-letter-topic-of-a-partition"),
        ],
    )
    def test_consistency(self, view: TopicView, message: str | None) -> None:
        if message is None:
            check_consistency(view)
            return
        with pytest.raises(TopicInconsistent, match=message) as refusal:
            check_consistency(view)
        assert str(view.name) in str(refusal.value)
