"""The planted bugs: each patches one place, and a scenario must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.bugs import front_ends, single_broker


@dataclass(frozen=True, slots=True)
class Plant:
    """A bug, and the scenario that must find it."""

    number: int
    scenario: str
    plant: Callable[[], None]

    @property
    def name(self) -> str:
        return self.plant.__name__.replace("_", " ")


def _numbered(scenario: str, *plants: Callable[[], None]) -> list[Plant]:
    return [Plant(int((plant.__doc__ or "").partition(":")[0]), scenario, plant) for plant in plants]


_ALL = [
    *_numbered(
        "single",
        single_broker.receipt_before_the_sync,
        single_broker.sync_left_out,
        single_broker.failed_write_ignored,
        single_broker.failed_group_taken_for_written,
        single_broker.directory_not_synced,
        single_broker.recovery_without_checksums,
        single_broker.recovered_tail_not_written_again,
        single_broker.in_flight_taken_for_duplicate,
        single_broker.sequence_ids_not_replayed,
        single_broker.sent_again_in_wrong_order,
        single_broker.first_unconfirmed_entry_dropped,
        single_broker.cursors_never_stored,
        single_broker.restored_cursor_ahead,
        single_broker.sequence_ids_of_all_names_mixed,
    ),
    *_numbered(
        "lookups",
        front_ends.answers_kept_after_a_change,
        front_ends.permit_leaked_by_a_batch_lookup,
    ),
    *_numbered(
        "stops",
        front_ends.cursors_not_stored_at_the_stop,
        front_ends.stop_without_a_limit,
    ),
    *_numbered(
        "admin",
        front_ends.change_answered_before_it_is_stored,
        front_ends.connections_left_by_a_closed_client,
        front_ends.skip_answered_before_it_is_stored,
        front_ends.changes_sent_twice,
    ),
]
PLANTS = {plant.number: plant for plant in _ALL}
"""By their number in the specification."""
