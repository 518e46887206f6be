"""An explicit-state model of the commit protocol: every state that two or three runs, faults and people can bring a small table to.

Every request to S3, DynamoDB and Glue is one atomic step, except that a job's uploads and its record are one, because nobody looks at
them before the commit. A run may pause between any two of its requests for as long as it likes, a lease may be taken over at any moment,
and the scenarios add deaths, commits whose answer is lost or that arrive late or twice, lifecycle rules, raw files that go, and people.

    rules.py        the rules as switches, and the kinds of harm       requests.py     what an S3 request does to a key
    state.py        item, changes, keys, catalog, writers              turn.py         one writer's next request
    *_steps.py      one function for each request of a run             environment.py  what happens beside the runs
    invariants.py   what must be true                                  explore.py      all states, and the shortest way to each harm
    scenarios.py    small scenarios, and which rule each of them is a test of

test_in_step.py compares the writes of whole runs, the model's and the code's. Change the model before you change the protocol.

Each rule in its own words, and the code that keeps it:

    owner_is_random
        A lease's owner is another one for each process, so that a run never takes another's lease for its own whose answer was lost.
        glue_jobs.protocol.job.run_table, glue_jobs.aws.state_table.StateTable.take_lease
    change_ids_are_unique
        A change id has the fence, a counter and chance in it: no two attempts write the same record.
        glue_jobs.core.ids.ChangeId, glue_jobs.protocol.table_run.TableRun.change
    lease_is_conditional
        A lease is taken only if fence, owner and beat are still what was seen, and each one raises the fence.
        glue_jobs.aws.state_table.StateTable.take_lease
    dead_lease_is_taken_over
        A lease whose owner gives no sign of life for its length is taken over.
        glue_jobs.protocol.lease.take_lease
    item_is_read_after_lease
        What a run plans with (head, cursor, pause) is read once it has the lease.
        glue_jobs.protocol.job.run_table
    deadline_stops_writes
        Nothing is sent after the lease's own deadline. In the model only what has no condition and makes or ends something for good needs
        it: DeleteTable, the record of a staged change, the mark and the aborts of a discard. Everything else may be sent by a zombie at
        any time, and the other rules make it harmless.
        glue_jobs.aws.clients.Deadline, glue_jobs.aws.catalog_table.sync_table
    writes_carry_the_fence
        Publishing, CatalogPending and the lease itself are only cleared by the run that has the fence.
        glue_jobs.aws.state_table.StateTable.clear_publishing, glue_jobs.aws.state_table.StateTable.release
    uploads_wait_for_the_commit
        Tasks upload parts; only the driver completes, hides and writes the catalog, after the commit.
        glue_jobs.aws.multipart_writer.MultipartWriter, glue_jobs.protocol.converge.converge
    record_before_commit
        The record is there before the head names it.
        glue_jobs.protocol.commit.commit
    commit_checks_fence
        A commit lands only under the fence of the lease it was made with.
        glue_jobs.aws.state_table.StateTable.commit
    commit_checks_head
        A commit lands only on the head it was built on, also if botocore sends it a second time.
        glue_jobs.aws.state_table.StateTable.commit
    commit_checks_publishing
        A commit lands only on a published head, except the one that takes back the unpublished head. Second to unfinished_first.
        glue_jobs.aws.state_table.Commit
    commit_checks_attributes
        A commit lands only if what a person may set (cursor, pause, keys …) is what was planned with.
        glue_jobs.core.state.PERSON_ATTRIBUTES, glue_jobs.protocol.commit.commit
    commit_sets_publishing
        The commit itself says that its publishing is not finished.
        glue_jobs.aws.state_table.StateTable.commit
    cursor_moves_with_head
        Head and cursor move in one write: a cursor that differs from the head's is a person's word.
        glue_jobs.protocol.table_run.TableRun
    refusal_is_read_back
        Also a plain refusal is read back: it may answer the second copy of a commit whose first one landed.
        glue_jobs.protocol.commit.commit
    landed_means_ancestor
        A change landed if it is the head or an ancestor of it.
        glue_jobs.protocol.history.is_landed
    fence_moves_before_giving_up
        While the fence is still the one a commit was sent with, it can still land: the fence is moved on first.
        glue_jobs.protocol.lease.Lease.move_on
    read_again_after_moving
        Between reading and moving the fence the commit may have landed: it is looked for again.
        glue_jobs.protocol.commit.commit
    dropping_aborts
        A failed attempt and a lost change are dropped by upload id, never by deleting keys.
        glue_jobs.protocol.converge.abort_uploads
    unfinished_first
        A run finishes what another left before it does anything of its own.
        glue_jobs.core.intake.plan_table, glue_jobs.protocol.undo.roll_back
    every_upload_is_tried
        converge tries to complete every upload, even if one is gone. Covers for lost_uploads_are_aborted, and that for it.
        glue_jobs.protocol.converge.in_parallel
    look_before_completing
        Where an upload may have been completed before, the key is looked at first: not every server refuses to do it twice.
        glue_jobs.aws.uploads.complete_upload
    completed_before_is_done
        An upload that is there no more is fine if its key has data, hidden or not.
        glue_jobs.aws.uploads.complete_upload
    bytes_are_checked
        Data that was found at a key is ours only if it has the recorded size and ETag; else the table is blocked.
        glue_jobs.protocol.converge.converge
    complete_before_hiding
        All files of the new snapshot are completed before the first one of the old is hidden.
        glue_jobs.protocol.converge.converge
    hide_only_when_complete
        If one of them can't be completed, nothing is hidden.
        glue_jobs.protocol.converge.UploadsGone
    hide_only_what_the_record_says
        Exactly the files that the record supersedes are hidden, never what a listing shows beside the snapshot.
        glue_jobs.core.record.ChangeRecord, glue_jobs.protocol.converge.converge
    hide_answers_are_read_per_key
        DeleteObjects answers 200 with errors inside: the keys in them are not hidden yet.
        glue_jobs.aws.objects.hide
    hiding_keeps_versions
        Hiding puts a delete marker; no data version is ever deleted.
        glue_jobs.aws.objects.hide
    lost_uploads_are_aborted
        Before a change with a gone upload is taken back, all its other uploads are aborted. See every_upload_is_tried.
        glue_jobs.protocol.table_run.TableRun.finish, glue_jobs.protocol.converge.abort_uploads
    lost_inputs_are_pending_again
        The change that takes a lost one back has the inputs and the cursor of the snapshot before it.
        glue_jobs.protocol.publish.undo_of_lost
    lost_inputs_must_be_there
        If the lost change's raw files are gone too, the head stays and the table is blocked.
        glue_jobs.protocol.publish.undo_of_lost
    undo_is_a_new_change
        Rollback and re-apply are new changes on top: history only grows.
        glue_jobs.core.undo.plan_undo
    restore_by_copy
        A hidden file comes back as a copy under a new key: pending, visible, hidden, never back.
        glue_jobs.protocol.restore.copy_files
    every_copy_or_no_rollback
        Before the commit every copy is there, or nothing is changed.
        glue_jobs.protocol.restore.find_sources, glue_jobs.aws.copies.copy_version
    rollback_pauses
        A rollback pauses the table in the same write, or the next run would apply the same files again.
        glue_jobs.core.undo.plan_undo
    rollback_inputs_must_be_there
        A rollback whose inputs could not be applied again is refused.
        glue_jobs.protocol.undo.prepare
    awaited_inputs_are_listed
        A change that makes raw files pending lists them: one that goes later blocks the table, and is never passed over.
        glue_jobs.core.snapshot.Snapshot, glue_jobs.core.intake.plan_table
    stage_keeps_another_pause
        A staged change pauses its table only if nobody else did: that pause would be lifted with ours.
        glue_jobs.protocol.stage.pause_for
    staged_commit_checks_parent
        A staged change is committed only if its parent is still the head.
        glue_jobs.protocol.stage.check_can_commit
    staged_commit_checks_attributes
        It is committed only if what a person may set is what it was staged with. The commit's own condition knows later values only.
        glue_jobs.core.staged.edited_since, glue_jobs.protocol.stage.check_can_commit
    staged_commit_checks_uploads
        Uploads that are known to be gone are not committed. One that goes later makes the change a lost one, as any.
        glue_jobs.protocol.stage.check_can_commit
    staged_commit_is_a_new_change
        The commit of a staged change is a change with an id and a time of its own: ids sort by commit, as-of reads go by time.
        glue_jobs.core.staged.as_committed, glue_jobs.protocol.table_run.TableRun.change_of_staged
    failed_commit_keeps_staged_uploads
        A commit of a staged change that did not land aborts nothing: another run may have committed the same uploads.
        glue_jobs.protocol.commit.commit
    only_its_own_pause_is_lifted
        Commit and discard lift the pause that was set for the staged change, and no other.
        glue_jobs.core.staged.is_paused_for, glue_jobs.core.staged.commit_of
    discard_refuses_what_landed
        The uploads of a staged change that was committed are not aborted. Covers for unfinished_first, and that for it: a discard that
        finishes what it finds has nothing left to abort.
        glue_jobs.protocol.stage.DiscardStaged
    erase_list_is_in_the_record
        What an erase removes stands in its record, before the commit: whoever goes on removes the same, and everybody can know it.
        glue_jobs.core.record.ChangeRecord, glue_jobs.protocol.commit.make_record
    commit_sets_erasing
        The commit of an erase says that its versions are not removed yet.
        glue_jobs.core.work.Work, glue_jobs.protocol.erase.erase
    erase_drops_older_uploads
        After its commit an erase aborts the uploads of the changes before it that never landed: they may have its rows.
        glue_jobs.protocol.erase.finish_erases
    only_older_uploads_are_dropped
        Uploads of changes after the erase stay: a zombie would abort those of one that has landed meanwhile.
        glue_jobs.protocol.erase.finish_erases
    listed_versions_are_not_restored
        From the commit on no rollback copies a version that the erase lists, though it is still there.
        glue_jobs.protocol.restore.find_sources
    versions_go_after_publishing
        Versions are removed once the erase is published: until then it may be taken back, and the files before it be needed.
        glue_jobs.protocol.erase.finish_erases
    only_listed_versions_are_removed
        Exactly the versions of the list are removed, not whatever is hidden.
        glue_jobs.aws.removal.remove_versions
    head_files_are_never_removed
        A file of the head's snapshot is not removed, also if a list names it. Covers for lost_erase_clears_erasing, and that for it.
        glue_jobs.protocol.erase.finish_erases
    erasing_stays_until_all_are_gone
        Erasing is cleared when a look at the versions shows none of the list, not when the removals were sent.
        glue_jobs.protocol.erase.left_versions
    lost_erase_clears_erasing
        The change that takes back a lost erase clears Erasing in the same write: its list is void. See head_files_are_never_removed.
        glue_jobs.protocol.publish.undo_of_lost
    readers_pass_over_unpublished
        While a publish is unfinished, a reader takes the parent's snapshot; where the head takes back a lost change, the head's own,
        because its parent never was complete. No reader of older snapshots is written yet; this is the rule that it will have to keep.
        tests.model.lease_steps.reader_look
    commit_sets_catalog_pending
        The commit itself says that the catalog step is not done.
        glue_jobs.aws.state_table.StateTable.commit
    catalog_has_a_fence
        A Glue table that a greater fence wrote is left alone: here the run has lost its lease. An item that forgot leases is not modelled.
        glue_jobs.aws.catalog_table.sync_table, glue_jobs.protocol.table_run.TableRun.redo_catalog
    catalog_version_is_compared
        A Glue table is updated only as the version that was read.
        glue_jobs.aws.catalog_table.sync_table
    partitions_are_only_added
        The catalog step adds partitions and removes none, but with a table of another layout.
        glue_jobs.aws.catalog_partitions.add_partitions
    undo_adds_partitions
        Also a rollback adds the partitions of its files: the table may have been made anew while they were undone.
        glue_jobs.protocol.table_run.TableRun
    creation_is_remembered
        Who has asked for a new table adds all partitions, also if it then finds one there: the answer to its own creation was lost.
        glue_jobs.aws.catalog_table.sync_table
    controller_finishes_idle_tables
        The controller starts a run for a table with Publishing or CatalogPending, though nothing is pending or it is paused.
        controller.gather, glue_jobs.core.intake.plan_table

Not modelled, because it is about clocks, sizes or settings, and tested elsewhere:
the watch of a held lease, and that one that is renewed is left alone (tests/protocol/test_lease.py); that the deadline stops every
kind of write and each retry (tests/aws/test_deadline.py, tests/protocol/test_lease.py); MaxRetries 0 (tests/local/test_embedded.py; a
retry would be one run more, and those are modelled); pages and retries of DeleteObjects (tests/aws/test_objects.py,
tests/aws/test_hide_matrix.py); an item that went back behind its records (tests/protocol/test_state_went_back.py). That a reader never
converges can't matter here: a zombie, which may do so at any time, does no harm. S3's refusal of what was signed 15 minutes before is
S3's, and nothing here relies on it. That a staged change is too old to be committed is about the bucket's rule and a clock, and that an
erase lists all that has its rows about reading them (tests/protocol/test_stage.py, tests/protocol/test_erase.py); here a file has them
unless it was made from files that have not. A lake bucket that others write into while a run publishes is not modelled either: a first
publishing does not look at each key again, only one that is redone.
"""
