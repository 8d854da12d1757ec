--------------------------- MODULE bundle_takeover ---------------------------
(* Brokers of a cluster share a bundle with one topic and one subscription.    *)
(* Sessions end, also of brokers that live on without knowing it, brokers     *)
(* crash, and the owner may release the bundle at any time.                   *)
(*                                                                            *)
(* Code: broker/ownership/bundle_locks.py (BundleLocks, HeldBundles),         *)
(* broker/ownership/lock_settlement.py, broker/ownership/shared_ownership.py, *)
(* storage/metadata/guarded.py, storage/logs/topic_log_store.py (open),       *)
(* storage/bookkeeper/recovery.py, storage/managed_ledger/cursor_ledgers.py.  *)
EXTENDS Integers, Sequences

CONSTANTS Brokers, EntriesMax, Acks, Losses, Crashes, Releases,
          Deadline, Fences, Guards, Rechecks, ClosesFirst, SameSession, Ephemeral
(* The counts bound the run. The last seven are TRUE in the code; each is      *)
(* FALSE in one planted bug.                                                  *)

VARIABLES
  sessions, lock,               \* metadata: live sessions; the ephemeral lock
  record, cursor,               \* metadata: ledgers of the topic; acknowledgements of the subscription
  ledger,                       \* bookies, by ledger id
  broker,                       \* memory of each broker
  released, stray,              \* history: acknowledgements at the last release; a write by a broker without the lock
  count, faults
vars == <<sessions, lock, record, cursor, ledger, broker, released, stray, count, faults>>

Free == [owner |-> 0, ver |-> 0, session |-> 0]
Idle == [pc |-> "idle", sure |-> FALSE, lock |-> 0, begun |-> 0, read |-> 0, ledger |-> 0, cursor |-> 0, acks |-> 0]
Newest == IF record = <<>> THEN 0 ELSE record[Len(record)]
Fault(kind, most) == faults[kind] < most /\ faults' = [faults EXCEPT ![kind] = @ + 1]
new @@ old == [x \in DOMAIN old |-> IF x \in DOMAIN new THEN new[x] ELSE old[x]]
Set(b, fields) == broker' = [broker EXCEPT ![b] = fields @@ @]
Connected(b) == broker[b].session \in sessions
Serves(b) == broker[b].pc = "open" /\ broker[b].holds /\ broker[b].sure
OwnsLock(b) == lock.owner = b /\ lock.ver = broker[b].lock
Commits(b) == Connected(b) /\ (Guards => broker[b].sure /\ OwnsLock(b))  \* GuardedMetadata.commit

Init ==
  /\ sessions = Brokers /\ lock = Free /\ record = <<>> /\ cursor = [mark |-> 0, ver |-> 0] /\ ledger = <<>>
  /\ broker = [b \in Brokers |-> [session |-> b, holds |-> TRUE, pc |-> "idle", sure |-> FALSE, lock |-> 0,
                                   begun |-> 0, read |-> 0, ledger |-> 0, cursor |-> 0, acks |-> 0]]
  /\ released = 0 /\ stray = FALSE /\ count = 2 /\ faults = [loss |-> 0, crash |-> 0, release |-> 0]

------------------------------------------------------------------------------
(* Sessions: storage/zookeeper/session.py, HeldBundles.holds.                 *)

Connect(b) == \* a new session, after a start or when the former one is found to be over
  /\ ~Connected(b) /\ count' = count + 1 /\ sessions' = sessions \union {count'}
  /\ Set(b, [session |-> count', holds |-> TRUE, sure |-> FALSE])
  /\ UNCHANGED <<lock, record, cursor, ledger, released, stray, faults>>

Doubt(b) == \* by the clock, before the servers may end the session
  /\ broker[b].holds /\ Fault("loss", Losses) /\ Set(b, [holds |-> FALSE])
  /\ UNCHANGED <<sessions, lock, record, cursor, ledger, released, stray, count>>

Resume(b) ==
  /\ Connected(b) /\ ~broker[b].holds /\ Set(b, [holds |-> TRUE])
  /\ UNCHANGED <<sessions, lock, record, cursor, ledger, released, stray, count, faults>>

Expire(s) == \* the servers end a session, and the lock with it
  /\ s \in sessions /\ Deadline => ~\E b \in Brokers : broker[b].session = s /\ broker[b].holds
  /\ sessions' = sessions \ {s} /\ lock' = IF Ephemeral /\ lock.session = s THEN Free ELSE lock
  /\ UNCHANGED <<record, cursor, ledger, broker, released, stray, count, faults>>

Crash(b) ==
  /\ broker[b].session # 0 /\ Fault("crash", Crashes)
  /\ broker' = [broker EXCEPT ![b] = Idle @@ [@ EXCEPT !.session = 0, !.holds = FALSE]]
  /\ UNCHANGED <<sessions, lock, record, cursor, ledger, released, stray, count>>

------------------------------------------------------------------------------
(* Taking the bundle and loading the topic.                                   *)

CanLock(b) == Connected(b) /\ (lock = Free \/ (lock.owner = b /\ lock.session # broker[b].session))
Lock(b) == count' = count + 1 /\ lock' = [owner |-> b, ver |-> count', session |-> broker[b].session]

Take(b) == \* SharedOwnership.take, BundleLocks.create
  /\ broker[b].pc = "idle" /\ broker[b].holds /\ CanLock(b) /\ Lock(b)
  /\ Set(b, [pc |-> "taken", lock |-> count', sure |-> TRUE])
  /\ UNCHANGED <<sessions, record, cursor, ledger, released, stray, faults>>

ReadRecord(b) == \* SharedOwnership.acquire
  /\ broker[b].pc = "taken" /\ broker[b].holds /\ broker[b].sure
  /\ Set(b, [pc |-> "fencing", read |-> Newest, begun |-> broker[b].session])
  /\ UNCHANGED <<sessions, lock, record, cursor, ledger, released, stray, count, faults>>

Fence(b) == \* recovery: enough bookies refuse further entries of the former writer
  /\ broker[b].pc = "fencing" /\ Set(b, [pc |-> "ending"])
  /\ ledger' = IF broker[b].read = 0 \/ ~Fences THEN ledger ELSE [ledger EXCEPT ![broker[b].read].fenced = TRUE]
  /\ UNCHANGED <<sessions, lock, record, cursor, released, stray, count, faults>>

End(b) == \* recovery: agree on one end; entries below the ack quorum may be kept or not
  /\ broker[b].pc = "ending" /\ Set(b, [pc |-> "beginning"])
  /\ IF broker[b].read = 0 \/ ledger[broker[b].read].end >= 0 THEN UNCHANGED ledger
     ELSE LET l == ledger[broker[b].read]
          IN \E end \in l.stored..l.sent : ledger' = [ledger EXCEPT ![broker[b].read].end = end]
  /\ UNCHANGED <<sessions, lock, record, cursor, released, stray, count, faults>>

Begin(b) == \* TopicLogStore._begin_ledger, check_newest
  /\ broker[b].pc = "beginning" /\ Commits(b) /\ UNCHANGED <<sessions, lock, cursor, released, stray, count, faults>>
  /\ IF Newest = broker[b].read
     THEN /\ ledger' = Append(ledger, [fenced |-> FALSE, sent |-> 0, stored |-> 0, end |-> -1, receipts |-> 0])
          /\ record' = Append(record, Len(ledger')) /\ Set(b, [pc |-> "claiming", ledger |-> Len(ledger')])
     ELSE Set(b, [pc |-> "taken"]) /\ UNCHANGED <<ledger, record>>

Claim(b) == \* every cursor is written once before a consumer is served
  /\ broker[b].pc = "claiming" /\ Commits(b) /\ cursor' = [cursor EXCEPT !.ver = @ + 1]
  /\ Set(b, [pc |-> "loaded", cursor |-> cursor'.ver, acks |-> cursor.mark])
  /\ UNCHANGED <<sessions, lock, record, ledger, released, stray, count, faults>>

Open(b) == \* SharedOwnership.opened: is the bundle still ours, and the session the one of the beginning?
  /\ broker[b].pc = "loaded"
  /\ LET t == broker[b]
         ours == t.holds /\ t.sure /\ (SameSession => t.begun = t.session)
     IN IF ours THEN Set(b, [pc |-> "open", begun |-> 0, read |-> 0])
        ELSE IF t.sure /\ OwnsLock(b) THEN Set(b, [pc |-> "taken"]) ELSE Set(b, Idle)
  /\ UNCHANGED <<sessions, lock, record, cursor, ledger, released, stray, count, faults>>

------------------------------------------------------------------------------
(* Serving. Publishing goes on in doubt: a receipt needs the bookies alone.   *)

Publish(b) ==
  /\ broker[b].pc = "open" /\ LET l == ledger[broker[b].ledger] IN
     /\ ~l.fenced /\ l.sent < EntriesMax /\ ledger' = [ledger EXCEPT ![broker[b].ledger].sent = @ + 1]
  /\ UNCHANGED <<sessions, lock, record, cursor, broker, released, stray, count, faults>>

Store(i) == \* an ack quorum of bookies has the next entry
  /\ ledger[i].stored < ledger[i].sent /\ ~ledger[i].fenced /\ ledger' = [ledger EXCEPT ![i].stored = @ + 1]
  /\ UNCHANGED <<sessions, lock, record, cursor, broker, released, stray, count, faults>>

Receipt(b) == \* maybe long after the entry was stored
  /\ broker[b].pc = "open" /\ LET l == ledger[broker[b].ledger] IN
     /\ l.receipts < l.stored /\ ledger' = [ledger EXCEPT ![broker[b].ledger].receipts = @ + 1]
  /\ UNCHANGED <<sessions, lock, record, cursor, broker, released, stray, count, faults>>

Acknowledge(b) == \* only while the broker serves
  /\ Serves(b) /\ broker[b].acks < Acks /\ Set(b, [acks |-> broker[b].acks + 1])
  /\ UNCHANGED <<sessions, lock, record, cursor, ledger, released, stray, count, faults>>

WriteCursor(b) == cursor.ver = broker[b].cursor /\ Commits(b) /\ cursor' = [mark |-> broker[b].acks, ver |-> cursor.ver + 1]
                  /\ stray' = (stray \/ lock.owner # b)

Flush(b) == \* a zombie tries it too
  /\ broker[b].pc = "open" /\ broker[b].acks # cursor.mark /\ WriteCursor(b) /\ Set(b, [cursor |-> cursor'.ver])
  /\ UNCHANGED <<sessions, lock, record, ledger, released, count, faults>>

------------------------------------------------------------------------------
(* Losing the bundle, and releasing it in order.                              *)

Settle(b) == \* LockSettlement._settle_one, after the session changed; not of a bundle that is being released
  /\ ~broker[b].sure /\ broker[b].pc \notin {"idle", "closing", "unlocking"} /\ broker[b].holds /\ Connected(b)
  /\ IF CanLock(b)
     THEN /\ Lock(b)
          /\ LET goesOn == broker[b].pc # "open" \/ ~Rechecks \/ Newest = broker[b].ledger
             IN Set(b, [lock |-> count', sure |-> TRUE, pc |-> IF goesOn THEN broker[b].pc ELSE "taken"])
     ELSE Set(b, Idle) /\ UNCHANGED <<lock, count>>
  /\ UNCHANGED <<sessions, record, cursor, ledger, released, stray, faults>>

Leave(b) == \* SharedOwnership.release: the lock is marked, so that lookups wait
  /\ Serves(b) /\ OwnsLock(b) /\ Fault("release", Releases) /\ count' = count + 1
  /\ lock' = [lock EXCEPT !.ver = count'] /\ Set(b, [pc |-> IF ClosesFirst THEN "closing" ELSE "unlocking", lock |-> count'])
  /\ UNCHANGED <<sessions, record, cursor, ledger, released, stray>>

Close(b) == \* everything has its receipt, the ledger ends, the cursor is in its record
  /\ broker[b].pc = "closing"
  /\ LET l == ledger[broker[b].ledger]
     IN IF ~l.fenced /\ l.end = -1 /\ l.stored = l.sent /\ cursor.ver = broker[b].cursor /\ Commits(b)
        THEN /\ WriteCursor(b) /\ ledger' = [ledger EXCEPT ![broker[b].ledger].end = l.sent, ![broker[b].ledger].receipts = l.sent]
             /\ Set(b, IF ClosesFirst THEN [pc |-> "unlocking"] ELSE Idle)
        ELSE /\ (l.fenced \/ l.end >= 0 \/ ~Connected(b) \/ ~OwnsLock(b)) /\ Set(b, Idle)
             /\ UNCHANGED <<ledger, cursor, stray>>
  /\ UNCHANGED <<sessions, lock, record, released, count, faults>>

Unlock(b) == \* only the lock of this version goes
  /\ broker[b].pc = "unlocking" /\ Set(b, IF ClosesFirst THEN Idle ELSE [pc |-> "closing"])
  /\ IF Connected(b) /\ OwnsLock(b) THEN lock' = Free /\ released' = broker[b].acks ELSE UNCHANGED <<lock, released>>
  /\ UNCHANGED <<sessions, record, cursor, ledger, stray, count, faults>>

Work(b) == Take(b) \/ ReadRecord(b) \/ Fence(b) \/ End(b) \/ Begin(b) \/ Claim(b) \/ Open(b)
           \/ Settle(b) \/ Close(b) \/ Unlock(b) \/ Connect(b) \/ Resume(b)
Next ==
  \/ \E b \in Brokers : Work(b) \/ Doubt(b) \/ Crash(b) \/ Leave(b) \/ Publish(b) \/ Receipt(b) \/ Acknowledge(b) \/ Flush(b)
  \/ \E s \in sessions : Expire(s)
  \/ \E i \in DOMAIN ledger : Store(i)

Spec == Init /\ [][Next]_vars

------------------------------------------------------------------------------
OneServes == \A a, b \in Brokers : Serves(a) /\ Serves(b) => a = b
ServesTheNewest == \A b \in Brokers : Serves(b) => broker[b].ledger = Newest /\ broker[b].cursor = cursor.ver
NothingLost == \A i \in DOMAIN ledger : ledger[i].end >= 0 => ledger[i].stored <= ledger[i].end
OnlyTheOwnerWrites == ~stray
AcknowledgementsKept == released <= cursor.mark

Fair == /\ \A b \in Brokers : WF_vars(Work(b))
        /\ WF_vars(\E s \in sessions : Expire(s))
        /\ WF_vars(\E i \in DOMAIN ledger : Store(i))
FairSpec == Spec /\ Fair
OwnedAgain == []<>(\E b \in Brokers : Serves(b))
=============================================================================
