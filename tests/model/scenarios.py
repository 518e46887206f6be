"""The scenarios, small enough to look at every state, and for each rule the one in which its absence does harm."""

from __future__ import annotations

from typing import NamedTuple

from tests.model.explore import Scenario
from tests.model.rules import Harm


def _of(*jobs: str, faults: str, inputs: int = 2, meets: tuple[str, ...] = ()) -> Scenario:
    """jobs: one text per run, its jobs separated by blanks."""
    return Scenario(tuple(tuple(text.split()) for text in jobs), frozenset(faults.split()), inputs, meets)


_LATE = ("taken over", "answer lost", "late commit of A1 lands", "late commit of A1 is refused", "fence moved", "another run took over")
SCENARIOS = {
    "two batches": _of("batch", "batch", faults="deaths", meets=("taken over", "commit B1 refused", "clear Publishing refused")),
    "batch and append, answers lost and late": _of(
        "batch", "append", faults="lost_answer delay deaths hide_fails", meets=(*_LATE, "drop fA1a")
    ),
    "commits sent twice": _of(
        "rewrite rewrite", "append", faults="duplicate deaths", meets=("A1, sent twice", "late commit of A1 is refused")
    ),
    "batch and rollback": _of("batch", "rollback", faults="lost_answer delay deaths", meets=(*_LATE, "complete f0@B1", "hide fA1a")),
    "rollback and re-apply": _of(
        "batch rollback", "reapply", faults="lost_answer delay deaths", meets=("complete f0@A2", "complete fA1a@B1", "hide f0@A2")
    ),
    "scheduled run after a rollback": _of(
        "batch rollback", "batch", faults="deaths", meets=("A: commit A2", "B: commit B1", "nothing to do")
    ),
    "zombie whose successor rolled back": _of(
        "batch",
        "batch rollback-resume batch",
        faults="deaths",
        meets=("A: commit A1 refused", "complete f0@B2", "hide fB1a", "B: commit B3"),
    ),
    "uploads gone": _of(
        "batch", "rest", faults="lifecycle deaths", meets=("A1 is lost", "lifecycle aborts fA1a", "B: finish A1", "B: finish A2")
    ),
    "uploads gone, answers lost and late": _of("batch", "rest", faults="lifecycle deaths lost_answer delay", meets=("A1 is lost", *_LATE)),
    "copies gone": _of("batch rollback", "rest", faults="lifecycle deaths", meets=("A2 is lost", "lifecycle aborts f0@A2")),
    "uploads and their raw file gone": _of(
        "batch", "rest", faults="lifecycle deaths raw_goes", inputs=1, meets=("inputs of A1 are gone too",)
    ),
    "raw files gone around a rollback": _of(
        "batch rollback-resume",
        "batch",
        faults="raw_goes deaths",
        meets=("would be pending and are gone", "is waited for is gone: blocked"),
    ),
    "a hidden version expires": _of("batch rollback", "rest", faults="expiry", meets=("f0 expires", "has expired: refused")),
    "a person edits": _of("batch", "batch", faults="edit deaths", meets=("pauses the table", "moves the cursor", "A: commit A1 refused")),
    "somebody else writes": _of("batch", "rest", faults="foreign deaths", meets=("foreign bytes in fA1a: blocked",)),
    "a server that completes twice": _of("batch", "batch", faults="lenient one_at_a_time deaths", meets=("B: finish A1",)),
    "catalog race": _of(
        "columns",
        "columns",
        faults="catalog deaths",
        meets=("left alone", "read again", "B: finish the catalog of A1", "CatalogPending refused"),
    ),
    "catalog and rollback": _of("columns", "rollback", faults="catalog deaths", meets=("left alone", "table of B1")),
    "another layout": _of("layout", "rest", faults="catalog deaths", meets=("delete the table", "deadline is over", "somebody created")),
    "back and forth over another layout": _of(
        "partition layout to-c0 to-A1", "", faults="catalog deaths unanswered", meets=("create the table of A3, answer lost", "table of A4")
    ),
    "a reader": _of("batch", "read", faults="deaths lifecycle", meets=("read c0", "read A1", "read A2")),
    "three runs, one rolls back": _of("batch", "rollback-resume", "append", faults="", meets=("commit C1", "complete f0@B1")),
    "three runs, one re-applies": _of("batch", "rollback", "reapply", faults="", meets=("complete fA1a@C1",)),
    # stage and erase
    "a staged change is committed, twice": _of(
        "stage", "commit", "commit", faults="deaths lost_answer", inputs=1, meets=("which commits A1", "A1: was committed", "C: finish B1")
    ),
    "a staged change is discarded": _of(
        "stage", "commit", "discard", faults="", meets=("discard of A1: was committed", "A1: was discarded", "C: lift the pause")
    ),
    "a staged change is overtaken": _of("stage", "rewrite", "commit", faults="", inputs=1, meets=("A1: another change came between",)),
    "staged uploads gone": _of("stage", "commit", faults="lifecycle deaths", inputs=1, meets=("A1: uploads are gone", "B1 is lost")),
    "a person edits a staged table": _of(
        "stage", "commit", faults="edit deaths", inputs=1, meets=("A1: the item was edited", "paused by somebody else")
    ),
    "erase and batch": _of(
        "erase", "batch", faults="deaths lost_answer delay", inputs=1, meets=("B: commit B1", "remove fB1a", "clear Erasing refused")
    ),
    "erase and rollback": _of(
        "batch erase", "rollback", faults="deaths remove_fails", inputs=1, meets=("was erased: refused", "removing f0 failed", "are left")
    ),
    "erase, and erase again": _of("erase", "resume", faults="deaths lost_answer delay remove_fails", meets=("B: finish erase A1",)),
    "an erase's uploads gone": _of("batch erase", "resume", faults="lifecycle deaths", inputs=1, meets=("A2 is lost", "B: remove f0")),
    "stage, erase, commit": _of(
        "stage", "erase", "commit", faults="", inputs=1, meets=("remove rows of A1", "abort fA1a", "C: commit of A1", "C: commit C1")
    ),
    "a reader of what is erased": _of("erase", "read", faults="deaths lifecycle", meets=("were erased", "all read")),
}


class Probe(NamedTuple):
    """Without `rule` there is `harm` in the scenario. beside: rules of which one at a time can be spared, because this one covers for it:
    the harm is there only without both."""

    rule: str
    scenario: str
    harm: Harm
    beside: str = ""


PROBES = (
    Probe("owner_is_random", "catalog race", Harm.CATALOG_STALE),
    Probe("change_ids_are_unique", "two batches", Harm.ROWS_DOUBLED),
    Probe("lease_is_conditional", "batch and append, answers lost and late", Harm.FENCE_WENT_BACK),
    Probe("dead_lease_is_taken_over", "two batches", Harm.NOT_REPAIRED),
    Probe("item_is_read_after_lease", "two batches", Harm.REFUSED_FOR_NOTHING),
    Probe("deadline_stops_writes", "another layout", Harm.CATALOG_STALE),
    Probe("writes_carry_the_fence", "two batches", Harm.ROWS_LOST),
    Probe("uploads_wait_for_the_commit", "two batches", Harm.ROWS_DOUBLED),
    Probe("record_before_commit", "two batches", Harm.NOT_REPAIRED),
    Probe("commit_checks_fence", "batch and append, answers lost and late", Harm.FALSE_REPORT),
    Probe("commit_checks_head", "commits sent twice", Harm.HISTORY_SHRANK),
    Probe("commit_checks_publishing", "two batches", Harm.ROWS_DOUBLED, beside="unfinished_first"),
    Probe("commit_checks_attributes", "a person edits", Harm.EDIT_OVERWRITTEN),
    Probe("commit_sets_publishing", "two batches", Harm.ROWS_LOST),
    Probe("cursor_moves_with_head", "batch and rollback", Harm.INPUT_LOST),
    Probe("refusal_is_read_back", "commits sent twice", Harm.FALSE_REPORT),
    Probe("landed_means_ancestor", "batch and append, answers lost and late", Harm.FALSE_REPORT),
    Probe("fence_moves_before_giving_up", "batch and append, answers lost and late", Harm.FALSE_REPORT),
    Probe("read_again_after_moving", "batch and append, answers lost and late", Harm.FALSE_REPORT),
    Probe("dropping_aborts", "batch and append, answers lost and late", Harm.ROWS_LOST, beside="landed_means_ancestor"),
    Probe("dropping_aborts", "uploads gone", Harm.ROWS_DOUBLED, beside="every_upload_is_tried"),
    Probe("unfinished_first", "two batches", Harm.NOT_REPAIRED),
    Probe("every_upload_is_tried", "uploads gone", Harm.ROWS_DOUBLED, beside="lost_uploads_are_aborted"),
    Probe("look_before_completing", "a server that completes twice", Harm.SECOND_VERSION),
    Probe("completed_before_is_done", "two batches", Harm.ROWS_LOST),
    Probe("bytes_are_checked", "somebody else writes", Harm.FOREIGN_ROWS),
    Probe("complete_before_hiding", "uploads gone", Harm.ROWS_LOST),
    Probe("hide_only_when_complete", "uploads gone", Harm.ROWS_LOST),
    Probe("hide_only_what_the_record_says", "two batches", Harm.ROWS_LOST),
    Probe("hide_answers_are_read_per_key", "batch and append, answers lost and late", Harm.ROWS_DOUBLED),
    Probe("hiding_keeps_versions", "two batches", Harm.VERSION_DELETED),
    Probe("lost_uploads_are_aborted", "uploads gone", Harm.ROWS_DOUBLED, beside="every_upload_is_tried"),
    Probe("lost_inputs_are_pending_again", "uploads gone", Harm.INPUT_LOST),
    Probe("lost_inputs_must_be_there", "uploads and their raw file gone", Harm.STRANDED),
    Probe("undo_is_a_new_change", "batch and rollback", Harm.HISTORY_SHRANK),
    Probe("restore_by_copy", "batch and rollback", Harm.ROWS_LOST),
    Probe("restore_by_copy", "rollback and re-apply", Harm.VISIBLE_TWICE),
    Probe("every_copy_or_no_rollback", "a hidden version expires", Harm.HALF_RESTORED),
    Probe("rollback_pauses", "scheduled run after a rollback", Harm.ROLLBACK_UNDONE),
    Probe("rollback_inputs_must_be_there", "raw files gone around a rollback", Harm.STRANDED),
    Probe("awaited_inputs_are_listed", "raw files gone around a rollback", Harm.INPUT_LOST),
    Probe("stage_keeps_another_pause", "a person edits a staged table", Harm.EDIT_OVERWRITTEN),
    Probe("staged_commit_checks_parent", "a staged change is overtaken", Harm.ROWS_DOUBLED),
    Probe("staged_commit_checks_attributes", "a person edits a staged table", Harm.EDIT_OVERWRITTEN),
    Probe("staged_commit_checks_uploads", "staged uploads gone", Harm.LOST_FROM_THE_START),
    Probe("staged_commit_is_a_new_change", "a staged change is committed, twice", Harm.BACKDATED),
    Probe("failed_commit_keeps_staged_uploads", "a staged change is committed, twice", Harm.LANDED_LOST),
    Probe("only_its_own_pause_is_lifted", "a person edits a staged table", Harm.EDIT_OVERWRITTEN),
    Probe("discard_refuses_what_landed", "a staged change is discarded", Harm.LANDED_LOST, beside="unfinished_first"),
    Probe("deadline_stops_writes", "a staged change is discarded", Harm.LANDED_LOST),
    Probe("erase_list_is_in_the_record", "erase, and erase again", Harm.VERSION_DELETED),
    Probe("commit_sets_erasing", "erase, and erase again", Harm.KEY_LEFT),
    Probe("erase_drops_older_uploads", "stage, erase, commit", Harm.KEY_LEFT),
    Probe("only_older_uploads_are_dropped", "erase and batch", Harm.LANDED_LOST),
    Probe("listed_versions_are_not_restored", "erase and rollback", Harm.ERASE_UNFINISHED),
    Probe("versions_go_after_publishing", "an erase's uploads gone", Harm.ROWS_LOST),
    Probe("only_listed_versions_are_removed", "erase and batch", Harm.VERSION_DELETED),
    Probe("head_files_are_never_removed", "an erase's uploads gone", Harm.ROWS_LOST, beside="lost_erase_clears_erasing"),
    Probe("erasing_stays_until_all_are_gone", "erase, and erase again", Harm.KEY_LEFT),
    Probe("lost_erase_clears_erasing", "an erase's uploads gone", Harm.VERSION_DELETED),
    Probe("readers_pass_over_unpublished", "a reader", Harm.READ_HALF),
    Probe("commit_sets_catalog_pending", "catalog race", Harm.CATALOG_STALE),
    Probe("catalog_has_a_fence", "catalog race", Harm.CATALOG_STALE),
    Probe("catalog_version_is_compared", "catalog race", Harm.CATALOG_STALE),
    Probe("partitions_are_only_added", "catalog race", Harm.CATALOG_STALE),
    Probe("undo_adds_partitions", "back and forth over another layout", Harm.CATALOG_STALE),
    Probe("creation_is_remembered", "back and forth over another layout", Harm.CATALOG_STALE),
    Probe("controller_finishes_idle_tables", "scheduled run after a rollback", Harm.NOT_REPAIRED),
)
