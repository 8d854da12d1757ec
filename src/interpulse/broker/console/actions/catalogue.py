"""Every action of the console."""

from __future__ import annotations

from typing import Final

from interpulse.broker.console.actions import topic_actions
from interpulse.broker.console.actions.action import Action

__all__ = ["ACTIONS"]

ACTIONS: Final[dict[str, Action]] = {action.name: action for action in (*topic_actions.ACTIONS,)}
