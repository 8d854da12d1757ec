"""The planted bugs: each patches one place, and a scenario must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.bugs import (
    determinism,
    front_ends,
    imports,
    lanes,
    lifecycle,
    proxies,
    shared_cluster,
    single_broker,
    subscriptions,
)


@dataclass(frozen=True, slots=True)
class Plant:
    """A bug, and the scenario that must find it."""

    number: int
    scenario: str
    plant: Callable[[], None]

    @property
    def name(self) -> str:
        return self.plant.__name__.replace("_", " ")

    @property
    def text(self) -> str:
        """The bug in one clause."""
        return (self.plant.__doc__ or "").partition("\n")[0].partition(": ")[2].rstrip(".")


def _numbered(scenario: str, *plants: Callable[[], None]) -> list[Plant]:
    return [Plant(int((plant.__doc__ or "").partition(":")[0]), scenario, plant) for plant in plants]


_NUMBERED = [
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
        single_broker.failed_topic_goes_on_counting,
    ),
    *_numbered(
        "subscriptions",
        subscriptions.key_handed_to_a_second_consumer,
        subscriptions.returned_entries_forgotten,
        subscriptions.cumulative_acknowledgement_too_far,
        subscriptions.delays_end_early,
        subscriptions.redelivery_count_lost,
        subscriptions.dead_letter_one_delivery_early,
        subscriptions.seek_behind_its_target,
        subscriptions.batch_indexes_forgotten_at_redelivery,
        subscriptions.batch_indexes_not_stored,
        subscriptions.messages_overtake_a_full_redelivery,
        subscriptions.key_moved_before_it_is_free,
    ),
    *_numbered(
        "shared",
        shared_cluster.receipt_below_ack_quorum,
        shared_cluster.ledger_opened_without_fencing,
        shared_cluster.records_written_without_the_lock,
        shared_cluster.zombie_goes_on_serving,
        shared_cluster.lost_answer_taken_for_failure,
        shared_cluster.bundle_given_away_with_open_topics,
        shared_cluster.entry_answered_before_the_sync,
    ),
    *_numbered(
        "proxied_cluster",
        proxies.owner_kept_past_a_move,
        proxies.permit_kept_by_a_client_that_is_gone,
    ),
    *_numbered(
        "proxied",
        proxies.client_counted_after_its_broker_went,
        proxies.large_reads_overtaken,
        proxies.connections_kept_for_questions,
    ),
    *_numbered(
        "lifecycle",
        lifecycle.partition_deleted_meanwhile_left_out,
        lifecycle.deletion_leaves_the_partition_metadata,
        lifecycle.refused_creation_leaves_partitions,
        lifecycle.question_creates_the_topic,
        lifecycle.expansion_in_two_commits,
        lifecycle.topic_deleted_twice,
    ),
    *_numbered(
        "lanes",
        lanes.lane_reopened_with_another_epoch,
        lanes.holes_skipped,
        lanes.lane_file_behind_the_mark,
        lanes.lane_directory_not_synced,
        lanes.copies_ahead_not_accounted_for,
        lanes.hold_forgotten_by_the_cursor,
        lanes.forgotten_lane_taken_for_a_new_one,
        lanes.copies_acknowledged_before_their_receipts,
        lanes.acknowledged_copies_forgotten,
        lanes.lane_file_replaced,
    ),
    *_numbered(
        "mesh",
        lanes.copies_sent_on,
        lanes.released_topic_begins_at_its_end,
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
        "imports",
        imports.imported_cursor_ahead,
        imports.imported_batches_forgotten,
        imports.new_ledgers_not_noted,
        imports.documents_copied_before_the_check,
        imports.newest_ledger_taken_from_its_record,
    ),
    *_numbered(
        "admin",
        front_ends.change_answered_before_it_is_stored,
        front_ends.connections_left_by_a_closed_client,
        front_ends.skip_answered_before_it_is_stored,
        front_ends.changes_sent_twice,
    ),
]
PLANTS = {plant.number: plant for plant in _NUMBERED}
"""By their number in the specification."""

RARE = {
    plant.number: plant
    for plant in (
        *_numbered("single", single_broker.removed_segment_reported),
        *_numbered(
            "shared",
            shared_cluster.released_bundle_served_after_its_lock,
            shared_cluster.finished_deletion_reported,
            shared_cluster.unloading_waits_under_a_lost_lock,
        ),
        *_numbered("proxied_cluster", shared_cluster.resumed_deletion_without_its_mark),
        *_numbered(
            "lanes",
            lanes.complete_reader_not_asked_again,
            lanes.source_consumer_left_open,
            lanes.sent_behind_a_refused_entry,
        ),
    )
}
"""Bugs that the cases of their findings show; new seeds seldom do."""

UNREPEATABLE = {
    plant.number: plant
    for plant in _numbered(
        "shared",
        determinism.order_of_addresses,
        determinism.clock_of_the_machine,
        determinism.order_of_hashes,
    )
}
"""Faults of the simulation itself: runs of one seed differ."""

ALL = {**PLANTS, **RARE, **UNREPEATABLE}
