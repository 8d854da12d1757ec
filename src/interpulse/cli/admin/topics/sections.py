"""Headings of ``topics --help``, and the commands under each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SECTIONS: Final[Mapping[str, str]] = {
    "Create, change and delete": "create create-partitioned-topic update-partitioned-topic create-missed-partitions "
    "update-properties get-properties remove-properties delete delete-partitioned-topic",
    "Find and look at": "list list-partitioned-topics get-partitioned-topic-metadata stats partitioned-stats "
    "stats-internal partitioned-stats-internal lookup partitioned-lookup batch-lookup bundle-range "
    "replication-status doctor",
    "Subscriptions": "subscriptions create-subscription unsubscribe get-subscription-properties "
    "update-subscription-properties reset-cursor skip skip-all clear-backlog expire-messages "
    "expire-messages-all-subscriptions analyze-backlog",
    "Messages": "peek-messages examine-messages get-message-by-id get-message-id last-message-id get-backlog-size",
    "Upkeep": "unload compact compaction-status trim-topic truncate terminate partitioned-terminate",
    "Permissions": "permissions grant-permission revoke-permission",
    "Policies under names of their own": "enable-deduplication disable-deduplication get-deduplication-enabled "
    "get-backlog-quotas",
}
"""Commands by heading. Policies are left out, since the help lists them separately."""
