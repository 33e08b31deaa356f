------------------------------- MODULE Commit -------------------------------
(* Transactions on records in a store that has only compare-and-set on one record, as in src/store/records. No locks:
   the holders of all tokens run at once, as after locks were lost. A process may crash between any two steps, and a
   compare-and-set without a reply may take effect later. docs/internals/specification.md describes what is left out. *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Active,     \* which of the transactions below run
    Losses      \* how often a compare-and-set gets no reply

(* The guards of the design. Each configuration that takes one out breaks a promise. *)
CONSTANTS
    BeginFirst,             \* the first key has the transaction before another key points to it
    StampReads,             \* keys that are only read are stamped, too
    StampAll,               \* a transaction is decided only once all of its keys are stamped
    CompareVersions,        \* a key is stamped only if it has the version that was read
    CompareTokens,          \* a transaction is lost if a key has seen a larger token
    DecideByCompare,        \* the decision compares the first key with its stamped state
    SettleStamps,           \* a transaction reads and writes a key only once the stamp of another one is settled
    FinishAsDecided,        \* other processes apply what was committed, and remove only what was not
    ClearLast,              \* the first key keeps a committed transaction until the others have its changes
    AbortBeforeFailure,     \* a lost reply is reported as a failure only once the write can't take effect any more
    VerifyReads,            \* a transaction that writes nothing looks at its keys again
    OthersSettle            \* any process settles the transactions of others

VARIABLES
    record,     \* the records of the store
    flight,     \* compare-and-sets without a reply that may still take effect
    tx,         \* the transactions, as their processes know them
    losses,     \* how many replies may still be lost
    committed,  \* the transactions that have been decided so
    together    \* the transactions whose reads have existed at the same time

vars == <<record, flight, tx, losses, committed, together>>

(* A transaction has its number as its token, and what it writes is its number, too. Of its keys, x is the first. *)
Keys == {"x", "y"}
First == "x"
Reads == [t \in 1..5 |-> IF t = 4 THEN {} ELSE Keys]
Writes == [t \in 1..5 |-> CASE t = 1 -> {"x"} [] t = 2 -> {"y"} [] t = 3 -> Keys [] t = 4 -> {"y"} [] t = 5 -> {}]
(* 4 is a write without the lock and so without a token. *)
Lone == {4}
Token(t) == IF t \in Lone THEN 0 ELSE t

Max(a, b) == IF a > b THEN a ELSE b

None == [tx |-> 0, state |-> "none"]
Blank == [value |-> 0, token |-> 0, decided |-> {}, stamp |-> None]

Stamped(r, t, state) == [r EXCEPT !.stamp = [tx |-> t, state |-> state]]
Decided(r, t, outcome) == [r EXCEPT !.stamp = None, !.decided = @ \cup {<<t, outcome>>}]
Changed(r, key, t) ==
    [r EXCEPT !.value = IF key \in Writes[t] THEN t ELSE @, !.token = Max(@, Token(t))]

(* The transaction at its first key: "none" before it has begun there and after it was cleared. *)
AtFirst(t) == IF record[First].stamp.tx = t THEN record[First].stamp.state ELSE "none"

(* The value of a key for a reader. *)
Value(key) ==
    LET r == record[key]
    IN IF r.stamp.state = "pointer" /\ AtFirst(r.stamp.tx) = "committed" /\ key \in Writes[r.stamp.tx]
       THEN r.stamp.tx ELSE r.value

ReadsHold(t) == \A key \in Reads[t] : tx[t].values[key] = Value(key)

-----------------------------------------------------------------------------

Init ==
    /\ record = [key \in Keys |-> Blank]
    /\ flight = {}
    /\ tx = [t \in Active |->
            [at |-> "read", seen |-> <<>>, values |-> <<>>, stamped |-> {}, begun |-> Blank, checked |-> {}]]
    /\ losses = Losses
    /\ committed = {}
    /\ together = {}

Goes(t, at) == tx' = [tx EXCEPT ![t].at = at]

(* One compare-and-set: `written` and `refused` say what its process does after each reply. A lost reply leaves the
   process with `lost`; the write has taken effect, or may do so later, or never. *)
Swap(key, from, to, decides, written, refused, lost) ==
    \/ /\ record[key] = from
       /\ record' = [record EXCEPT ![key] = to]
       /\ committed' = committed \cup decides
       /\ written
       /\ UNCHANGED <<flight, losses, together>>
    \/ /\ record[key] # from
       /\ refused
       /\ UNCHANGED <<record, flight, losses, committed, together>>
    \/ /\ losses > 0
       /\ losses' = losses - 1
       /\ flight' = flight \cup {[key |-> key, from |-> from, to |-> to, decides |-> decides]}
       /\ lost
       /\ UNCHANGED <<record, committed, together>>

Lands(w) ==
    /\ flight' = flight \ {w}
    /\ IF record[w.key] = w.from
       THEN record' = [record EXCEPT ![w.key] = w.to] /\ committed' = committed \cup w.decides
       ELSE UNCHANGED <<record, committed>>
    /\ UNCHANGED <<tx, losses, together>>

Settled(key) == record[key].stamp.state = "none" \/ ~SettleStamps
Overtaken(key, t) == CompareTokens /\ t \notin Lone /\ Max(record[key].token, Token(record[key].stamp.tx)) > t

UNCHANGEDStore == UNCHANGED <<record, flight, losses, committed>>

With(f, key, value) == [k \in DOMAIN f \cup {key} |-> IF k = key THEN value ELSE f[k]]

Read(t, key) ==
    /\ tx[t].at = "read"
    /\ key \in (Reads[t] \cup Writes[t]) \ DOMAIN tx[t].seen
    /\ UNCHANGEDStore
    /\ \/ /\ Overtaken(key, t)
          /\ Goes(t, "failed")
          /\ UNCHANGED together
       \/ /\ ~Overtaken(key, t) /\ Settled(key)
          /\ LET seen == With(tx[t].seen, key, record[key])
                 values == With(tx[t].values, key, record[key].value)
                 all == DOMAIN seen = Reads[t] \cup Writes[t]
             IN /\ tx' = [tx EXCEPT ![t].seen = seen,
                                    ![t].values = values,
                                    ![t].at = CASE ~all -> "read"
                                                [] Writes[t] = {} -> IF VerifyReads THEN "verify" ELSE "committed"
                                                [] t \in Lone -> "write"
                                                [] OTHER -> "stamp"]
                /\ together' = IF all /\ \A k \in Reads[t] : values[k] = Value(k)
                               THEN together \cup {t} ELSE together

(* It looks again at a key that others have changed, to write over its present state. *)
Again(t, key) ==
    IF Overtaken(key, t) \/ (CompareVersions /\ Settled(key) /\ record[key].value # tx[t].values[key])
    THEN Goes(t, "abort")
    ELSE Settled(key) /\ tx' = [tx EXCEPT ![t].seen[key] = record[key]]

Stamp(t, key) ==
    LET seen == tx[t].seen[key]
        to == Stamped(seen, t, IF key = First THEN "pending" ELSE "pointer")
        own == tx' = [tx EXCEPT ![t].stamped = @ \cup {key}, ![t].begun = IF key = First THEN to ELSE @]
    IN /\ tx[t].at = "stamp"
       /\ key \notin tx[t].stamped
       /\ key = First \/ First \in tx[t].stamped \/ ~BeginFirst
       /\ Swap(key, seen, to, {}, own,
            IF record[key] = to THEN own
            ELSE IF <<t, "aborted">> \in record[key].decided THEN Goes(t, "abort") ELSE Again(t, key),
            UNCHANGED tx \/ Goes(t, "abort"))

NeedsStamp(t) == IF StampReads THEN Reads[t] ELSE Writes[t] \cup {First}

Decide(t) ==
    LET to == Stamped(Changed(tx[t].begun, First, t), t, "committed")
        from == IF DecideByCompare THEN tx[t].begun ELSE record[First]
    IN /\ tx[t].at = "stamp"
       /\ First \in tx[t].stamped
       /\ NeedsStamp(t) \subseteq tx[t].stamped \/ ~StampAll
       /\ Swap(First, from, to, {t}, Goes(t, "committed"), Goes(t, "unsure"), Goes(t, "unsure"))

(* A write of one key without its lock. *)
WriteAlone(t, key) ==
    LET seen == tx[t].seen[key]
    IN /\ tx[t].at = "write" /\ key \in Writes[t]
       /\ Swap(key, seen, Decided(Changed(seen, key, t), t, "committed"), {t},
            Goes(t, "committed"),
            IF <<t, "committed">> \in record[key].decided THEN Goes(t, "committed")
            ELSE tx' = [tx EXCEPT ![t].at = "read", ![t].seen = <<>>, ![t].values = <<>>],
            Goes(t, "unsure"))

(* The reply to the deciding write was lost. *)
Resolve(t) ==
    LET key == IF t \in Lone THEN CHOOSE k \in Writes[t] : TRUE ELSE First
        r == record[key]
        before == IF t \in Lone THEN tx[t].seen[key] ELSE tx[t].begun
        off == IF t \in Lone THEN Decided(r, t, "aborted") ELSE Stamped(r, t, "aborted")
    IN /\ tx[t].at = "unsure"
       /\ IF <<t, "committed">> \in r.decided \/ (r.stamp.tx = t /\ r.stamp.state = "committed")
          THEN Goes(t, "committed") /\ UNCHANGEDStore /\ UNCHANGED together
          ELSE IF r # before \/ ~AbortBeforeFailure
          THEN Goes(t, "failed") /\ UNCHANGEDStore /\ UNCHANGED together
          ELSE Swap(key, r, off, {}, Goes(t, "failed"), UNCHANGED tx, Goes(t, "unknown"))

Abort(t) ==
    /\ tx[t].at = "abort"
    /\ IF First \in tx[t].stamped
       THEN Swap(First, tx[t].begun, Stamped(tx[t].begun, t, "aborted"), {},
                Goes(t, "failed"), Goes(t, "failed"), Goes(t, "failed"))
       ELSE Goes(t, "failed") /\ UNCHANGEDStore /\ UNCHANGED together

Verify(t, key) ==
    /\ tx[t].at = "verify" /\ key \notin tx[t].checked
    /\ UNCHANGEDStore /\ UNCHANGED together
    /\ IF Overtaken(key, t) THEN Goes(t, "failed")
       ELSE /\ Settled(key)
            /\ IF record[key].value # tx[t].values[key] THEN Goes(t, "failed")
               ELSE LET checked == tx[t].checked \cup {key}
                    IN tx' = [tx EXCEPT ![t].checked = checked,
                                        ![t].at = IF checked = Reads[t] THEN "committed" ELSE @]

(* Any process that finds a stamp settles its transaction. It reads the first key before it writes another one, and a
   key that has changed since refuses the write, so each of these is one step. *)
Settle(key) ==
    LET r == record[key]
        t == r.stamp.tx
        state == AtFirst(t)
        others == \E k \in Keys \ {First} : record[k].stamp.tx = t
        to ==
            CASE key # First /\ state = "none" -> Decided(r, t, "aborted")
              [] key # First /\ state = "aborted" -> Decided(r, t, "aborted")
              [] key # First /\ state = "committed" ->
                    IF FinishAsDecided THEN [Changed(r, key, t) EXCEPT !.stamp = None] ELSE Decided(r, t, "aborted")
              [] state = "pending" -> Stamped(record[First], t, "aborted")
              [] OTHER -> Decided(r, t, state)
    IN /\ OthersSettle
       /\ r.stamp.state # "none"
       /\ key = First /\ state = "committed" /\ ClearLast => ~others
       /\ record' = IF state = "pending" THEN [record EXCEPT ![First] = to] ELSE [record EXCEPT ![key] = to]
       /\ UNCHANGED <<flight, tx, losses, committed, together>>

Next ==
    \/ \E t \in Active :
        \/ \E key \in Keys : Read(t, key) \/ Stamp(t, key) \/ WriteAlone(t, key) \/ Verify(t, key)
        \/ Decide(t) \/ Resolve(t) \/ Abort(t)
    \/ \E w \in flight : Lands(w)
    \/ \E key \in Keys : Settle(key)
    \/ UNCHANGED vars

Spec == Init /\ [][Next]_vars

FairSpec == Spec /\ \A key \in Keys : WF_vars(Settle(key))

-----------------------------------------------------------------------------
(* Promises *)

(* The values that readers see change only with a decision, and then all at once, for good. *)
AllOrNothing == [][LET new == committed' \ committed IN
    \A key \in Keys : Value(key)' =
        IF \E t \in new : key \in Writes[t] THEN CHOOSE t \in new : key \in Writes[t] ELSE Value(key)]_vars

(* A transaction is decided only while everything that it has read is still so. *)
Serializable == [][\A t \in committed' \ committed : t \notin Lone => ReadsHold(t)]_vars

(* After a commit with a larger token, one with a smaller token never commits with the same key. *)
LaterHolderWins == [][\A t \in (committed' \ committed) \ Lone, u \in committed \ Lone : u < t]_vars

ToldAsDecided == \A t \in Active :
    /\ tx[t].at = "committed" /\ Writes[t] # {} => t \in committed
    /\ tx[t].at = "failed" => t \notin committed

NeverAfterFailure == [][\A t \in committed' \ committed : tx[t].at # "failed"]_vars

ReadsTogether == \A t \in Active : tx[t].at = "committed" /\ Writes[t] = {} => t \in together

(* What a crashed process has left is finished or undone. *)
AllSettled == []<>(\A key \in Keys : record[key].stamp.state = "none")
=============================================================================
