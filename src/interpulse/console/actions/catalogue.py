"""Every action of the console."""

from __future__ import annotations

from typing import Final

from interpulse.console.actions import cluster_actions, repair_actions, subscription_actions, topic_actions
from interpulse.console.actions.action import Action

_ALL: Final = (
    *topic_actions.ACTIONS,
    *subscription_actions.ACTIONS,
    *repair_actions.ACTIONS,
    *cluster_actions.ACTIONS,
)
ACTIONS: Final[dict[str, Action]] = {action.name: action for action in _ALL}
