----------------------------- MODULE LockHistory -----------------------------
(* Histories of real runs as behaviours of Lock: each event is a step of the lock table, of a client or of the
   resource, with the same outcome. TLC prints each history that it accepts to its end. *)
EXTENDS Lock, Histories

VARIABLES history, at

Events == Histories[history]

HistoryInit ==
    /\ Init
    /\ history \in DOMAIN Histories
    /\ at = 1

Agrees(e, reply) ==
    /\ reply.state = e.reply
    /\ e.reply \in {"held", "queued"} => reply.req = e.answers
    /\ e.reply = "held" => reply.number = e.number

Becomes(q, ages) ==
    /\ queue' = q
    /\ signs' = ages
    /\ \A i \in DOMAIN q :
        q[i].phase = "held" /\ (\A j \in DOMAIN queue : queue[j].number # q[i].number) => q[i].number > last
    /\ last' = LET numbers == {last} \cup {q[i].number : i \in DOMAIN q}
               IN CHOOSE n \in numbers : \A m \in numbers : m <= n

Waits(q, req) == Has(q, req) /\ q[Find(q, req)].phase = "waiting"

Table(e, q, ages) ==
    CASE e.op = "enqueue" ->
            LET r == Enqueued(q, ages, e.req, e.lease, e.ttl, e.waits, e.number)
            IN Agrees(e, r.reply) /\ Becomes(r.queue, ages)
      [] e.op = "checkIn" ->
            LET r == CheckedIn(q, ages, e.req, e.lease, e.ttl, e.number)
            IN Agrees(e, r.reply) /\ Becomes(r.queue, ages)
      [] e.op = "extendOrYield" ->
            LET r == Extended(q, ages, e.req, e.held, e.next, e.lease, e.ttl, e.waits, e.number)
            IN Agrees(e, r.reply) /\ Becomes(r.queue, ages)
      [] e.op = "alive" ->
            LET heard == [ages EXCEPT ![e.by] = 0]
                after == IF e.named = {} THEN q ELSE Serve(Named(q, e.named), heard)
            IN e.due = {req \in e.named : ~Waits(after, req)} /\ Becomes(after, heard)
      [] e.op = "renew" ->
            LET r == Renewed(q, ages, e.req, e.number, e.lease) IN r.reply = e.reply /\ Becomes(r.queue, ages)
      [] e.op = "release" ->
            LET r == Released(q, ages, e.req, e.number) IN r.reply = e.reply /\ Becomes(r.queue, ages)
      [] e.op = "cancel" -> Becomes(Cancelled(q, ages, e.req), ages)
      [] e.op = "sweepExpired" -> Becomes(Serve(q, ages), ages)
      [] e.op = "forceRelease" -> Becomes(Taken(q, ages, e.number), ages)
      [] e.op = "revoke" -> Becomes(Revoked(q, ages, e.by), ages)

InTable == {"enqueue", "checkIn", "extendOrYield", "alive", "renew", "release", "cancel", "sweepExpired",
            "forceRelease", "revoke"}

(* A client passes `assertHeld`: the table has its grant, for at least as long. *)
MayHold(e, q) ==
    /\ e.rest > 0
    /\ \E i \in DOMAIN q :
        /\ q[i].phase = "held" /\ q[i].req.client = e.by /\ q[i].number = e.number
        /\ q[i].expires >= e.rest

Later(clients, time) == [c \in DOMAIN clients |-> [clients[c] EXCEPT !.rest = Max(@ - time, 0)]]

Step(e) ==
    LET q == Older(queue, e.after)
        ages == OlderSigns(signs, e.after)
        clients == Later(client, e.after)
    IN /\ IF e.op \in InTable THEN Table(e, q, ages) ELSE Becomes(q, ages)
       /\ client' =
            CASE e.op = "holds" -> [clients EXCEPT ![e.by].state = "held", ![e.by].rest = e.rest]
              [] e.op \in {"ends", "revoke"} -> [clients EXCEPT ![e.by] = Idle]
              [] OTHER -> clients
       /\ e.op = "holds" => MayHold(e, q)
       /\ IF e.op = "write"
          THEN e.accepted = Accepted(e.number) /\ fence' = Max(fence, e.number)
          ELSE UNCHANGED fence
       /\ OneHolder'
       /\ UNCHANGED <<net, left, wrote>>

HistoryNext ==
    \/ /\ at <= Len(Events)
       /\ Step(Events[at])
       /\ at' = at + 1
       /\ at = Len(Events) => PrintT(<<"accepted", history>>)
       /\ UNCHANGED history
    \/ UNCHANGED <<vars, history, at>>

HistorySpec == HistoryInit /\ [][HistoryNext]_<<vars, history, at>>
==============================================================================
