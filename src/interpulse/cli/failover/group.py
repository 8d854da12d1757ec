"""Group of commands about a pair of clusters; each is imported when it is called."""

from __future__ import annotations

import click

from interpulse.terminal.lazy import LazyCommand, LazyGroup

_ROOM = "interpulse.cli.failover"
_COMMANDS = {
    "back": LazyCommand(f"{_ROOM}.reconcile:back", "Reconcile if need be, then switch back."),
    "check": LazyCommand(f"{_ROOM}.check:check", "Check if the sites are ready for a switch."),
    "init": LazyCommand(f"{_ROOM}.operations:init", "Let the first site serve, and the other one stand by."),
    "plan": LazyCommand(f"{_ROOM}.plan:plan", "Write the runbook of a switch; nothing is changed."),
    "reconcile": LazyCommand(f"{_ROOM}.reconcile:reconcile", "Merge what a takeover left behind; both sites answer."),
    "status": LazyCommand(f"{_ROOM}.status:status", "Show roles, copies under way, and the last operation."),
    "switch": LazyCommand(f"{_ROOM}.operations:switch", "Switch to the other site without loss; both answer."),
    "tail": LazyCommand(f"{_ROOM}.tail:tail", "List the messages that a takeover left behind."),
    "takeover": LazyCommand(f"{_ROOM}.takeover:takeover", "Let a site serve in place of the other one, which is lost."),
    "undo": LazyCommand(f"{_ROOM}.operations:undo", "Take back a switch or takeover that has not promoted its target."),
    "watch": LazyCommand(f"{_ROOM}.watch:watch", "Report all the time what is not copied yet; a service."),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def failover() -> None:
    """Switch namespaces between the two clusters of a pair.

    Exit codes: 0 done; 1 done with warnings, or not ready; 2 a cluster could not be asked; 3 refused, nothing was
    changed; 4 broken off, the same command goes on; 5 taken back, everything is as before; 7 another operation holds
    the lease.
    """
