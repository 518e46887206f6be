"""The protocol's rules as switches, and the kinds of harm that a missing rule does. The package's docstring says what each rule means."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Rules:
    """Which rules the writers keep; all of them unless said otherwise."""

    # lease
    owner_is_random: bool = True
    change_ids_are_unique: bool = True
    lease_is_conditional: bool = True
    dead_lease_is_taken_over: bool = True
    item_is_read_after_lease: bool = True
    deadline_stops_writes: bool = True
    writes_carry_the_fence: bool = True
    # commit
    uploads_wait_for_the_commit: bool = True
    record_before_commit: bool = True
    commit_checks_fence: bool = True
    commit_checks_head: bool = True
    commit_checks_publishing: bool = True
    commit_checks_attributes: bool = True
    commit_sets_publishing: bool = True
    cursor_moves_with_head: bool = True
    refusal_is_read_back: bool = True
    landed_means_ancestor: bool = True
    fence_moves_before_giving_up: bool = True
    read_again_after_moving: bool = True
    dropping_aborts: bool = True
    # converge
    unfinished_first: bool = True
    every_upload_is_tried: bool = True
    look_before_completing: bool = True
    completed_before_is_done: bool = True
    bytes_are_checked: bool = True
    complete_before_hiding: bool = True
    hide_only_when_complete: bool = True
    hide_only_what_the_record_says: bool = True
    hide_answers_are_read_per_key: bool = True
    hiding_keeps_versions: bool = True
    # lost changes
    lost_uploads_are_aborted: bool = True
    lost_inputs_are_pending_again: bool = True
    lost_inputs_must_be_there: bool = True
    # rollback
    undo_is_a_new_change: bool = True
    restore_by_copy: bool = True
    every_copy_or_no_rollback: bool = True
    rollback_pauses: bool = True
    rollback_inputs_must_be_there: bool = True
    awaited_inputs_are_listed: bool = True
    # stage
    stage_keeps_another_pause: bool = True
    staged_commit_checks_parent: bool = True
    staged_commit_checks_attributes: bool = True
    staged_commit_checks_uploads: bool = True
    staged_commit_is_a_new_change: bool = True
    failed_commit_keeps_staged_uploads: bool = True
    only_its_own_pause_is_lifted: bool = True
    discard_refuses_what_landed: bool = True
    # erase
    erase_list_is_in_the_record: bool = True
    commit_sets_erasing: bool = True
    erase_drops_older_uploads: bool = True
    only_older_uploads_are_dropped: bool = True
    listed_versions_are_not_restored: bool = True
    versions_go_after_publishing: bool = True
    only_listed_versions_are_removed: bool = True
    head_files_are_never_removed: bool = True
    erasing_stays_until_all_are_gone: bool = True
    lost_erase_clears_erasing: bool = True
    # readers, catalog, controller
    readers_pass_over_unpublished: bool = True
    commit_sets_catalog_pending: bool = True
    catalog_has_a_fence: bool = True
    catalog_version_is_compared: bool = True
    partitions_are_only_added: bool = True
    undo_adds_partitions: bool = True
    creation_is_remembered: bool = True
    controller_finishes_idle_tables: bool = True


ALL = Rules()
NAMES = tuple(field.name for field in fields(Rules))


class Harm(enum.Enum):
    """What an invariant found."""

    ROWS_LOST = "a file of the head is not visible and the item does not say that a run is needed"
    ROWS_DOUBLED = "a file that is not the head's is visible and the item does not say that a run is needed"
    FOREIGN_ROWS = "a published file holds somebody else's bytes"
    INPUT_LOST = "a raw file is neither applied, nor pending, nor waited for"
    HALF_RESTORED = "a rollback has not the rows of its target"
    STRANDED = "a change made a raw file pending that it knew to be gone"
    NOT_REPAIRED = "one plain run afterwards does not put it right"
    FENCE_WENT_BACK = "the fence became smaller"
    HISTORY_SHRANK = "a change that was the head is no longer in the head's history"
    FALSE_REPORT = "a run said that its change did not land, and it did"
    REFUSED_FOR_NOTHING = "a commit was refused though nobody touched the table since the lease"
    EDIT_OVERWRITTEN = "a commit landed over a person's edit that it had not seen"
    ROLLBACK_UNDONE = "a scheduled run applied again what a rollback took back"
    VISIBLE_TWICE = "a hidden key became visible again"
    SECOND_VERSION = "a key got two data versions"
    VERSION_DELETED = "a data version was deleted"
    LANDED_LOST = "a run aborted an upload of a change that had landed"
    LOST_FROM_THE_START = "a staged change was committed though its uploads were seen to be gone"
    BACKDATED = "a change landed under a later lease than its record is of: as-of reads show it before it was there"
    KEY_LEFT = "an erase is finished, and a version or a staged change still has its rows"
    ERASE_UNFINISHED = "one plain erase run afterwards does not finish what another began"
    READ_HALF = "a reader met a file that is not there yet"
    CATALOG_STALE = "the catalog is not the head's and the item does not say that a run is needed"
