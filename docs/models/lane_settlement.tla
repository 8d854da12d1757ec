--------------------------- MODULE lane_settlement ---------------------------
(* One lane of a replication job: entries 1..Entries of a source topic are     *)
(* written to a target that de-duplicates by producer name. Every process may *)
(* stop between any two steps, connections break, and attempts of tasks live  *)
(* on as zombies. An entry stands for its sequence id; 0 stands for "none".   *)
(* A task goes on copying behind its range, and reports how far it has copied *)
(* for certain; the source may trim entries once the cursor is behind them.   *)
(*                                                                            *)
(* Code: spark/lanes.py (decide_opening, is_overrun, starting_lane),          *)
(* spark/writing/lane.py (Lane), spark/writing/lane_writer.py (LaneWriter),   *)
(* spark/state_files.py (LaneFiles), spark/copying/copy_reader.py (CopyReader, *)
(* ReportCommit), spark/copying/range_copies.py (RangeCopies),                *)
(* spark/reading/source_view.py (_acknowledge_copies),                        *)
(* client/producing/send_queue.py                                             *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Entries, BatchMax, Attempts, Kills, Cuts, Fails, Forgets, Losses,
          RunsAhead,
          Deduplicates, ReadsBack, VerifiesRefused, LaneFileFirst, ReadsBackNew,
          Accounts, AwaitsReceipts, Recalls, RecallsUnmarked,
          AccountsAgain, FencesReports
(* The counts bound the faults. RunsAhead switches the run-ahead on. The rules *)
(* behind it are TRUE in the code, and each is FALSE in a planted bug or in a  *)
(* fault that this model has shown (the last two).                            *)

VARIABLES
  begin, plan, marked, files, cursor,  \* on disk: checkpoint, lane files; on the source: the cursor
  live, kept,                          \* on disk: the report of a task, and what was recalled (recalled.json)
  halted,                              \* the error that the driver stopped with
  log, top, holder,                    \* the target: entries, highest id of the name, holder of the name
  task,                                \* attempts, by number
  faults                               \* faults so far
vars == <<begin, plan, marked, files, cursor, live, kept, halted, log, top, holder, task, faults>>

Unwritten == [seq |-> 0, at |-> 0, claimed |-> 0, reached |-> 0]
Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Ids(from) == {log[i] : i \in {j \in 1..Len(log) : j > from}}
Place(id) == Max({i \in 1..Len(log) : log[i] = id})
Range(a, b) == [i \in 1..(b - a) |-> a + i]
EndOf(k) == IF k = 0 THEN begin ELSE plan[k].upto
Newest == Max(DOMAIN files)
Copied == Max({files[Newest].seq, files[Newest].reached})  \* LaneState.copied_upto
Below(k) == files[Max({j \in DOMAIN files : j < k})]
Fault(kind, most) == faults[kind] < most /\ faults' = [faults EXCEPT ![kind] = @ + 1]
fields @@ rest == [x \in DOMAIN fields \union DOMAIN rest |-> IF x \in DOMAIN fields THEN fields[x] ELSE rest[x]]
Set(a, fields) == task' = [task EXCEPT ![a] = fields @@ @]
Ended == [ours |-> FALSE, pc |-> "ended", batch |-> 0, from |-> 0, before |-> Unwritten, last |-> 0, settled |-> 0,
          unacked |-> <<>>, heard |-> FALSE, refused |-> {}, reach |-> 0, seen |-> 0]
Live(a) == task[a].pc \in {"waiting", "sending", "closing"}

Nothing == [batch |-> 0, upto |-> 0]

Init ==
  /\ begin = 0 /\ plan = <<>> /\ marked = 0 /\ cursor = 0 /\ live = Nothing /\ kept = Nothing
  /\ files = [k \in {0} |-> Unwritten]  \* the anchor: route_topics._anchor
  /\ halted = "no" /\ log = <<>> /\ top = 0 /\ holder = 0 /\ task = <<>>
  /\ faults = [kill |-> 0, cut |-> 0, fail |-> 0, forget |-> 0, loss |-> 0]

------------------------------------------------------------------------------
(* The driver: Spark's micro-batch, and ReportCommit between its two marks.    *)

Plan == \* from what is copied; Spark stores the offset, then the cursor follows (planner.acknowledge)
  /\ halted = "no" /\ marked = Len(plan) /\ \A a \in DOMAIN task : task[a].ours => task[a].pc = "ended"
  /\ LET from == Max({EndOf(marked), Copied})
     IN /\ \E n \in 1..BatchMax : from + n <= Entries /\ plan' = Append(plan, [from |-> from, upto |-> from + n])
        /\ cursor' = Max({cursor, from})
  /\ UNCHANGED <<begin, marked, files, live, kept, halted, log, top, holder, task, faults>>

Start == \* LaneFiles.recall, LaneWriter.recall; the task starts from the newest lane file below its batch (LaneStates.below)
  /\ halted = "no" /\ marked < Len(plan) /\ Len(task) < Attempts
  /\ \A a \in DOMAIN task : task[a].ours => task[a].pc = "ended"
  /\ LET k == marked + 1
         newest == Max({live.batch, kept.batch})
         isRecent == newest >= IF RecallsUnmarked THEN Newest ELSE Newest + 1
         reports == {report \in {live, kept} : report.batch = newest /\ isRecent /\ Recalls}
         recalled == Max({0} \union {report.upto : report \in reports})
     IN /\ kept' = IF recalled = 0 THEN kept ELSE [batch |-> newest, upto |-> recalled]
        /\ task' = Append(task, [pc |-> "waiting", ours |-> TRUE, wire |-> <<>>, batch |-> k,
             from |-> Max({plan[k].from, recalled}),
             before |-> [Below(k) EXCEPT !.claimed = Max({@, recalled}), !.reached = Max({@, recalled})]] @@ Ended)
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, halted, log, top, holder, faults>>

WriteLaneFile(a) == \* state_files.LaneFiles.commit
  /\ task[a].ours /\ task[a].pc = IF LaneFileFirst THEN "done" ELSE "marked"
  /\ files' = [k \in DOMAIN files \union {task[a].batch} |-> IF k = task[a].batch
       THEN [task[a].before EXCEPT !.seq = Max({@, task[a].last}), !.at = task[a].reach]
       ELSE files[k]]
  /\ Set(a, IF LaneFileFirst THEN [pc |-> "written"] ELSE Ended)
  /\ UNCHANGED <<begin, plan, marked, cursor, live, kept, halted, log, top, holder, faults>>

Mark(a) == \* Spark's commit log, after foreachBatch has returned
  /\ task[a].ours /\ task[a].pc = IF LaneFileFirst THEN "written" ELSE "done"
  /\ marked' = marked + 1
  /\ Set(a, IF LaneFileFirst THEN Ended ELSE [pc |-> "marked"])
  /\ UNCHANGED <<begin, plan, files, cursor, live, kept, halted, log, top, holder, faults>>

KillDriver == \* its tasks may live on
  /\ Fault("kill", Kills)
  /\ task' = [a \in DOMAIN task |-> (IF Live(a) THEN [ours |-> FALSE] ELSE Ended) @@ task[a]]
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, holder>>

LoseCheckpoint == \* while no task runs; lanes.starting_lane, state_files.LaneFiles.forget
  /\ Fault("loss", Losses) /\ holder = 0 /\ \A a \in DOMAIN task : ~Live(a) /\ task[a].wire = <<>>
  /\ begin' = cursor /\ plan' = <<>> /\ marked' = 0 /\ live' = Nothing /\ kept' = Nothing
  /\ task' = [a \in DOMAIN task |-> Ended @@ task[a]]
  /\ files' = [k \in {0} |-> [seq |-> 0, at |-> IF top = 0 THEN Len(log) ELSE 0, claimed |-> top, reached |-> 0]]
  /\ UNCHANGED <<cursor, halted, log, top, holder>>

------------------------------------------------------------------------------
(* A task: LaneWriter and Lane.                                               *)

Unread(a) == \* where a task may begin: the source may have trimmed what is acknowledged
  {task[a].from, Max({task[a].from, cursor})}

Stop(a, error) == \* an error of a zombie reaches no driver
  /\ Set(a, Ended)
  /\ halted' = IF task[a].ours THEN error ELSE halted

Open(a) == \* the name is exclusive; decide_opening, Lane.settle_past, Lane.settle, RangeCopies._account
  /\ task[a].pc = "waiting" /\ holder = 0
  /\ \E from \in Unread(a) : from < Entries /\
     LET t == task[a]  b == t.before  first == from + 1
         last == Max({first, plan[t.batch].upto} \union IF Accounts THEN {top} ELSE {})
         isNew == b.seq = 0 /\ top = 0
         readsBack == top < b.seq \/ first <= Max({top, b.claimed}) \/ (isNew /\ ReadsBackNew)
         stored == IF ReadsBack THEN Ids(b.at) ELSE 1..top
         settled == IF readsBack THEN Max({b.seq, top} \union stored) ELSE 0
         holes == {id \in first..last : id <= settled /\ id > b.seq /\ id \notin stored}
         send == Range(Max({from, settled}), last)
         reached == {b.at} \union {Place(id) : id \in {i \in stored \intersect Ids(0) : readsBack /\ i <= last}}
     IN /\ from < plan[t.batch].upto \/ RunsAhead
        /\ holder' = a
        /\ IF ~readsBack /\ top # b.seq /\ top > b.claimed THEN Stop(a, "in use")
           ELSE IF holes # {} THEN Stop(a, "holes")
           ELSE /\ Set(a, [pc |-> "sending", heard |-> TRUE, unacked |-> send, wire |-> send, last |-> last,
                           settled |-> settled, reach |-> Max(reached), seen |-> top])
                /\ UNCHANGED halted
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, log, top, faults>>

Pass(a) == \* there is nothing to read, so that the lane is not opened
  /\ task[a].pc = "waiting" /\ Max(Unread(a)) >= plan[task[a].batch].upto
  /\ Set(a, IF task[a].ours THEN [pc |-> "done", reach |-> task[a].before.at] ELSE Ended)
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, holder, faults>>

RunAhead(a) == \* the next entry behind the range: RangeCopies._follow, or _account up to the broker's last id
  /\ task[a].pc = "sending" /\ task[a].last < Entries
  /\ RunsAhead \/ task[a].last < task[a].seen
  /\ LET t == task[a]  id == t.last + 1
     IN IF id > t.settled
        THEN /\ Set(a, [last |-> id, unacked |-> Append(t.unacked, id),
                        wire |-> IF t.heard THEN Append(t.wire, id) ELSE t.wire])
             /\ UNCHANGED halted
        ELSE IF id > t.before.seq /\ id \notin Ids(t.before.at) THEN Stop(a, "holes")
        ELSE /\ Set(a, [last |-> id, reach |-> Max({t.reach} \union {Place(i) : i \in {id} \intersect Ids(0)})])
             /\ UNCHANGED halted
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, log, top, holder, faults>>

Report(a) == \* LaneWriter.copied, write_live; the driver acknowledges it at once (live_positions): later harms less
  /\ task[a].pc = "sending" /\ task[a].refused = {} /\ RunsAhead /\ (task[a].ours \/ ~FencesReports)
  /\ LET t == task[a]
         upto == IF t.unacked = <<>> \/ ~AwaitsReceipts THEN t.last ELSE Max({t.from, Head(t.unacked) - 1})
     IN /\ upto > t.from
        /\ live' = [batch |-> t.batch, upto |-> upto]
        /\ cursor' = IF t.batch > Newest THEN Max({cursor, upto}) ELSE cursor
  /\ UNCHANGED <<begin, plan, marked, files, kept, halted, log, top, holder, task, faults>>

Account(a) == \* RangeCopies._account is through, and nothing more is read
  /\ task[a].pc = "sending" /\ (Accounts => task[a].last >= task[a].seen)
  /\ Set(a, [pc |-> "closing"])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, holder, faults>>

Finish(a) == \* Lane.finish: all receipts are there; refused ids are looked up on the target
  /\ task[a].pc = "closing" /\ task[a].unacked = <<>>
  /\ LET t == task[a]
         found == t.refused \intersect Ids(t.before.at)
         isOverrun == t.seen > Max({t.last, t.before.claimed, t.before.seq})
     IN IF isOverrun /\ Accounts /\ AccountsAgain THEN Set(a, [pc |-> "sending"]) /\ UNCHANGED halted
        ELSE IF VerifiesRefused /\ found # t.refused THEN Stop(a, "holes")
        ELSE IF isOverrun THEN Stop(a, "in use")
        ELSE /\ Set(a, IF ~t.ours THEN Ended ELSE
                  [pc |-> "done", heard |-> FALSE, reach |-> Max({t.reach} \union {Place(id) : id \in found}),
                   settled |-> 0, seen |-> 0, refused |-> {}])
             /\ UNCHANGED halted
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, log, top, holder, faults>>

Reconnect(a) == \* SendQueue.register: everything unconfirmed is sent again, in order
  /\ task[a].pc \in {"sending", "closing"} /\ ~task[a].heard /\ holder = 0 /\ holder' = a
  /\ Set(a, [heard |-> TRUE, wire |-> task[a].unacked, seen |-> Max({task[a].seen, top})])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, faults>>

KillTask(a) == \* it ends, or Spark only believes so
  /\ Live(a) /\ Fault("kill", Kills)
  /\ Set(a, Ended) \/ Set(a, [ours |-> FALSE])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, holder>>

Cut(a) == \* receipts are lost from here on; the broker may still store what it has received
  /\ task[a].heard /\ Fault("cut", Cuts) /\ Set(a, [heard |-> FALSE])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, holder>>

------------------------------------------------------------------------------
(* The target broker.                                                         *)

Store(a) == \* the next entry of a connection: stored, or dropped as a repeat
  /\ holder = a /\ task[a].wire # <<>>
  /\ LET id == Head(task[a].wire)  repeat == Deduplicates /\ id <= top
     IN /\ log' = IF repeat THEN log ELSE Append(log, id)
        /\ top' = IF repeat THEN top ELSE id
        /\ Set(a, [wire |-> Tail(task[a].wire)] @@ IF ~task[a].heard THEN task[a] ELSE
             [unacked |-> Tail(task[a].unacked),
              refused |-> task[a].refused \union (IF repeat THEN {id} ELSE {}),
              reach |-> IF repeat THEN task[a].reach ELSE Len(log')] @@ task[a])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, holder, faults>>

FailToStore(a) == \* one entry fails; later ones on the wire may be stored: such a hole is never filled silently
  /\ holder = a /\ task[a].wire # <<>> /\ Head(task[a].wire) > top /\ Fault("fail", Fails)
  /\ Set(a, [wire |-> Tail(task[a].wire)] @@ IF task[a].heard THEN Ended @@ task[a] ELSE task[a])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, holder>>

Release(a) == \* the connection of the holder ends, with what was still on the wire
  /\ holder = a /\ ~task[a].heard /\ holder' = 0 /\ Set(a, [wire |-> <<>>])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, top, faults>>

Forget == \* of a name that was not used for hours, so no zombie is left
  /\ holder = 0 /\ ~\E a \in DOMAIN task : Live(a) /\ ~task[a].ours
  /\ \A a \in DOMAIN task : task[a].pc \notin {"sending", "closing"}
  /\ Fault("forget", Forgets) /\ top' = 0
  /\ UNCHANGED <<begin, plan, marked, files, cursor, live, kept, halted, log, holder, task>>

Next ==
  \/ Plan \/ Start \/ KillDriver \/ LoseCheckpoint \/ Forget
  \/ \E a \in DOMAIN task :
       \/ Open(a) \/ Pass(a) \/ RunAhead(a) \/ Report(a) \/ Account(a) \/ Finish(a)
       \/ WriteLaneFile(a) \/ Mark(a) \/ Reconnect(a)
       \/ KillTask(a) \/ Cut(a) \/ Store(a) \/ FailToStore(a) \/ Release(a)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------------------------
NothingDoubledOrReordered == \A i \in 2..Len(log) : log[i - 1] < log[i]
NothingMissing == \A id \in 1..Max({EndOf(marked), Copied}) : id \in Ids(0)
CursorBehindTarget == \A id \in 1..cursor : id \in Ids(0)
NoFalseAlarm == halted # "in use" /\ (halted = "holes" => faults.fail > 0)
=============================================================================
