"""Rule of PIP-414: a topic name must agree with its partition metadata.

`decide_open` and `decide_create_plain` check it. `topic_diagnosis` finds the topics that break it and their repair.
"""

from __future__ import annotations

from interpulse.model.errors import Inconsistency, TopicInconsistent
from interpulse.rules.topic_view import TopicView


def check_consistency(view: TopicView) -> None:
    """Refuse a name that disagrees with its partition metadata. Raise TopicInconsistent.

    PIP-414 has six rows: a partition name without metadata (1), inside (2) and outside of it (3), a base name without
    (4) and with metadata (5), and heartbeat namespaces, which are exempt (6). System topics are not exempt.
    """
    name, partitions = view.name, view.partitions
    if name.namespace_name.is_heartbeat:
        return
    if not name.is_partition:
        if partitions:
            message = f"Found partitioned metadata for non-partitioned topic: {name}"
            raise TopicInconsistent(message, Inconsistency.PARTITIONED_METADATA_FOUND, str(name))
    elif not partitions:
        message = f"Partition metadata not found for the partitioned topic: {name}"
        raise TopicInconsistent(message, Inconsistency.METADATA_MISSING, str(name))
    elif name.partition_index >= partitions:
        message = f"Illegal topic partition name {name}: {name.base} has {partitions} partitions, 0 to {partitions - 1}"
        raise TopicInconsistent(message, Inconsistency.PARTITION_BEYOND_METADATA, str(name))
