--------------------------- MODULE lane_settlement ---------------------------
(* One lane of a replication job: entries 1..Entries of a source topic are     *)
(* written to a target that de-duplicates by producer name. Every process may *)
(* stop between any two steps, connections break, and attempts of tasks live  *)
(* on as zombies. An entry stands for its sequence id; 0 stands for "none".   *)
(*                                                                            *)
(* Code: spark/lanes.py (decide_opening, is_overrun, starting_lane),          *)
(* spark/writing/lane.py (Lane), spark/state_files.py (LaneFiles),            *)
(* spark/copying/copy_reader.py (ReportCommit), client/producing/send_queue.py *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Entries, BatchMax, Attempts, Kills, Cuts, Fails, Forgets, Losses,
          Deduplicates, ReadsBack, VerifiesRefused, LaneFileFirst, ReadsBackNew
(* The counts bound the faults. The last five are TRUE in the code; each is    *)
(* FALSE in one planted bug.                                                  *)

VARIABLES
  begin, plan, marked, files, cursor,  \* on disk: checkpoint, lane files; on the source: the cursor
  run, halted,                         \* the driver: its incarnation, and the error that it stopped with
  log, top, holder,                    \* the target: entries, highest id of the name, holder of the name
  task,                                \* attempts, by number
  faults                               \* faults so far
vars == <<begin, plan, marked, files, cursor, run, halted, log, top, holder, task, faults>>

Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Ids(from) == {log[i] : i \in {j \in 1..Len(log) : j > from}}
Place(id) == Max({i \in 1..Len(log) : log[i] = id})
Range(a, b) == [i \in 1..(b - a) |-> a + i]
EndOf(k) == IF k = 0 THEN begin ELSE plan[k]
Below(k) == files[Max({j \in DOMAIN files : j < k})]
Fault(kind, most) == faults[kind] < most /\ faults' = [faults EXCEPT ![kind] = @ + 1]
Live(a) == task[a].pc \in {"waiting", "sending"}

Init ==
  /\ begin = 0 /\ plan = <<>> /\ marked = 0 /\ cursor = 0
  /\ files = [k \in {0} |-> [seq |-> 0, at |-> 0, claimed |-> 0]]  \* the anchor: route_topics._anchor
  /\ run = 1 /\ halted = "no" /\ log = <<>> /\ top = 0 /\ holder = 0 /\ task = <<>>
  /\ faults = [kill |-> 0, cut |-> 0, fail |-> 0, forget |-> 0, loss |-> 0]

------------------------------------------------------------------------------
(* The driver: Spark's micro-batch, and ReportCommit between its two marks.    *)

Plan == \* Spark stores the offset, then the cursor follows what is committed (planner.acknowledge)
  /\ halted = "no" /\ marked = Len(plan)
  /\ \E n \in 1..BatchMax : EndOf(marked) + n <= Entries /\ plan' = Append(plan, EndOf(marked) + n)
  /\ cursor' = EndOf(marked)
  /\ UNCHANGED <<begin, marked, files, run, halted, log, top, holder, task, faults>>

Start == \* a task starts from the newest lane file below its batch (LaneStates.below)
  /\ halted = "no" /\ marked < Len(plan) /\ Len(task) < Attempts
  /\ ~\E a \in DOMAIN task : task[a].run = run /\ task[a].pc \in {"waiting", "sending", "done"}
  /\ task' = Append(task,
       [run |-> run, pc |-> "waiting", batch |-> marked + 1, before |-> Below(marked + 1),
        unacked |-> <<>>, wire |-> <<>>, heard |-> FALSE, refused |-> {}, reach |-> 0, seen |-> 0])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, log, top, holder, faults>>

WriteLaneFile(a) == \* state_files.LaneFiles.commit
  /\ task[a].pc = "done" /\ task[a].run = run /\ task[a].batch \notin DOMAIN files
  /\ LaneFileFirst \/ marked = task[a].batch
  /\ files' = [k \in DOMAIN files \union {task[a].batch} |-> IF k = task[a].batch
       THEN [seq |-> Max({task[a].before.seq, plan[k]}), at |-> task[a].reach, claimed |-> task[a].before.claimed]
       ELSE files[k]]
  /\ UNCHANGED <<begin, plan, marked, cursor, run, halted, log, top, holder, task, faults>>

Mark(a) == \* Spark's commit log, after foreachBatch has returned
  /\ task[a].pc = "done" /\ task[a].run = run /\ task[a].batch = marked + 1
  /\ LaneFileFirst => task[a].batch \in DOMAIN files
  /\ marked' = marked + 1
  /\ UNCHANGED <<begin, plan, files, cursor, run, halted, log, top, holder, task, faults>>

KillDriver == \* its tasks may live on
  /\ Fault("kill", Kills) /\ run' = run + 1
  /\ UNCHANGED <<begin, plan, marked, files, cursor, halted, log, top, holder, task>>

LoseCheckpoint == \* while no task runs; lanes.starting_lane, state_files.LaneFiles.forget
  /\ Fault("loss", Losses) /\ holder = 0 /\ \A a \in DOMAIN task : ~Live(a) /\ task[a].wire = <<>>
  /\ begin' = cursor /\ plan' = <<>> /\ marked' = 0 /\ run' = run + 1
  /\ files' = [k \in {0} |-> [seq |-> 0, at |-> IF top = 0 THEN Len(log) ELSE 0, claimed |-> top]]
  /\ UNCHANGED <<cursor, halted, log, top, holder, task>>

------------------------------------------------------------------------------
(* A task: LaneWriter and Lane.                                               *)

fields @@ rest == [x \in DOMAIN rest |-> IF x \in DOMAIN fields THEN fields[x] ELSE rest[x]]
Set(a, fields) == task' = [task EXCEPT ![a] = fields @@ @]

Ended == [pc |-> "ended", heard |-> FALSE, unacked |-> <<>>, refused |-> {}, reach |-> 0, seen |-> 0]

Stop(a, error) == \* an error of a zombie reaches no driver
  /\ Set(a, Ended)
  /\ halted' = IF task[a].run = run THEN error ELSE halted

Open(a) == \* the name is exclusive; decide_opening, Lane.settle_past, Lane.settle
  /\ task[a].pc = "waiting" /\ holder = 0 /\ holder' = a
  /\ LET t == task[a]  b == t.before  first == EndOf(t.batch - 1) + 1  last == plan[t.batch]
         isNew == b.seq = 0 /\ top = 0
         readsBack == top < b.seq \/ first <= Max({top, b.claimed}) \/ (isNew /\ ReadsBackNew)
         stored == IF ReadsBack THEN Ids(b.at) ELSE 1..top
         settled == IF readsBack THEN Max({b.seq, top} \union stored) ELSE 0
         holes == {id \in first..last : id <= settled /\ id > b.seq /\ id \notin stored}
         rest == Range(Max({first - 1, settled}), Max({last, settled}))
         send == SelectSeq(rest, LAMBDA id : id <= last)
         reached == {b.at} \union {Place(id) : id \in {i \in stored \intersect Ids(0) : readsBack /\ i <= last}}
     IN IF ~readsBack /\ top # b.seq /\ top > b.claimed THEN Stop(a, "in use")
        ELSE IF holes # {} THEN Stop(a, "holes")
        ELSE /\ Set(a, [pc |-> "sending", heard |-> TRUE, unacked |-> send, wire |-> send,
                        reach |-> Max(reached), seen |-> top])
             /\ UNCHANGED halted
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, log, top, faults>>

Finish(a) == \* Lane.finish: all receipts are there; refused ids are looked up on the target
  /\ task[a].pc = "sending" /\ task[a].unacked = <<>>
  /\ LET t == task[a]
         found == t.refused \intersect Ids(t.before.at)
     IN IF VerifiesRefused /\ found # t.refused THEN Stop(a, "holes")
        ELSE IF t.seen > Max({plan[t.batch], t.before.claimed, t.before.seq}) THEN Stop(a, "in use")
        ELSE /\ Set(a, [pc |-> "done", heard |-> FALSE, reach |-> Max({t.reach} \union {Place(id) : id \in found})])
             /\ UNCHANGED halted
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, log, top, holder, faults>>

Reconnect(a) == \* SendQueue.register: everything unconfirmed is sent again, in order
  /\ task[a].pc = "sending" /\ ~task[a].heard /\ holder = 0 /\ holder' = a
  /\ Set(a, [heard |-> TRUE, wire |-> task[a].unacked, seen |-> Max({task[a].seen, top})])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, log, top, faults>>

KillTask(a) == \* it ends, or Spark only believes so
  /\ Live(a) /\ Fault("kill", Kills)
  /\ Set(a, Ended) \/ Set(a, [run |-> 0])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, log, top, holder>>

Cut(a) == \* receipts are lost from here on; the broker may still store what it has received
  /\ task[a].heard /\ Fault("cut", Cuts) /\ Set(a, [heard |-> FALSE])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, log, top, holder>>

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
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, holder, faults>>

FailToStore(a) == \* one entry fails; later ones on the wire may be stored: such a hole is never filled silently
  /\ holder = a /\ task[a].wire # <<>> /\ Head(task[a].wire) > top /\ Fault("fail", Fails)
  /\ Set(a, [wire |-> Tail(task[a].wire)] @@ IF task[a].heard THEN Ended @@ task[a] ELSE task[a])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, log, top, holder>>

Release(a) == \* the connection of the holder ends, with what was still on the wire
  /\ holder = a /\ ~task[a].heard /\ holder' = 0 /\ Set(a, [wire |-> <<>>])
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, log, top, faults>>

Forget == \* of a name that was not used for hours, so no zombie is left
  /\ holder = 0 /\ ~\E a \in DOMAIN task : Live(a) /\ task[a].run # run
  /\ \A a \in DOMAIN task : task[a].pc # "sending"
  /\ Fault("forget", Forgets) /\ top' = 0
  /\ UNCHANGED <<begin, plan, marked, files, cursor, run, halted, log, holder, task>>

Next ==
  \/ Plan \/ Start \/ KillDriver \/ LoseCheckpoint \/ Forget
  \/ \E a \in DOMAIN task :
       \/ Open(a) \/ Finish(a) \/ WriteLaneFile(a) \/ Mark(a) \/ Reconnect(a)
       \/ KillTask(a) \/ Cut(a) \/ Store(a) \/ FailToStore(a) \/ Release(a)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------------------------
NothingDoubledOrReordered == \A i \in 2..Len(log) : log[i - 1] < log[i]
NothingMissing == \A id \in 1..EndOf(marked) : id \in Ids(0)
CursorBehindTarget == \A id \in 1..cursor : id \in Ids(0)
NoFalseAlarm == halted # "in use" /\ (halted = "holes" => faults.fail > 0)
=============================================================================
