-------------------------------- MODULE Lock --------------------------------
(* An exclusive lock on one key: the lock table, its clients, the network between them, and a resource that the lock
   protects. A client may be stopped for any time between two of its steps, and a message may be on its way for any
   time. docs/internals/specification.md describes what is left out. *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Clients,
    Requests,       \* how many requests all clients make together
    Turns,          \* how often each client asks to extend its grant
    Lease, ClaimWindow, WaiterTtl,    \* durations
    Paces,          \* how far a client's clock may go while the table's goes by 1
    Messages,       \* how many messages are on their way at once
    Losses, Repeats, Crashes,         \* how often each of these may happen
    Prompt          \* see below

(* For safety, a message may take any time, and a client may look at its request at any time, so there are no hints.
   For liveness (`Prompt`), each message arrives or is lost, and each live client acts, before the next tick. Clients
   look when a hint or a sign of life has told them, and holders neither renew nor give up. *)

(* The guards of the design. Each configuration that takes one out breaks a promise. *)
CONSTANTS
    FenceOnWrite,           \* the resource refuses numbers smaller than one it has seen
    NumbersOutliveGrants,   \* a number is greater than all earlier ones, not only those in the queue
    DeadlineFromSend,       \* a client measures its lease from before it asked
    StopAtDeadline,         \* a client compares its deadline with its clock before each use
    RenewNeedsGrant,        \* the table refuses to renew a grant that it does not have
    ReleaseNamesGrant,      \* a release ends only the grant that it names
    DropOvertaken,          \* a silent waiter is dropped when another request is granted past it
    JoinAtEnd,              \* a request enters the queue behind all others
    LeaseEnds,              \* a grant that is not renewed expires
    WindowEnds,             \* a reservation that is not claimed expires
    SignsServe              \* a sign of life serves the queue and finds reservations whose hint was lost

VARIABLES
    queue,      \* the requests in the table, in order of arrival
    last,       \* the number of the last grant
    signs,      \* for each client, how long ago the table received its last sign of life
    client,     \* the clients
    net,        \* the messages on their way
    left,       \* how many losses, repetitions and crashes may still happen
    fence,      \* the greatest number that the resource has seen
    wrote       \* the number of the last write that it accepted

table == <<queue, last, signs>>
vars == <<queue, last, signs, client, net, left, fence, wrote>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b

-----------------------------------------------------------------------------
(* The lock table: pure functions of its queue, as in src/engine/lock-table.ts. *)

CoverTtl(lease) == Min(lease, WaiterTtl)

Remaining(e, ages) ==
    IF e.phase = "waiting" /\ e.covered
    THEN Max(e.expires, CoverTtl(e.lease) - ages[e.req.client])
    ELSE e.expires

Silent(e, ages) == e.phase = "waiting" /\ Remaining(e, ages) <= 0

(* A silent waiter keeps its place for the rest of its lease. *)
Kept(e) == IF e.phase = "waiting" THEN Max(e.lease - WaiterTtl, 0) ELSE 0

Expired(e, ages) ==
    /\ Remaining(e, ages) + Kept(e) <= 0
    /\ e.phase = "held" => LeaseEnds
    /\ e.phase = "reserved" => WindowEnds

Least(places, q) == IF places = {} THEN Len(q) + 1 ELSE CHOOSE i \in places : \A j \in places : i <= j

Only(q, places) ==
    [k \in 1..Cardinality(places) |->
        q[CHOOSE i \in places : Cardinality({j \in places : j <= i}) = k]]

Find(q, req) == CHOOSE i \in DOMAIN q : q[i].req = req
Has(q, req) == \E i \in DOMAIN q : q[i].req = req
Without(q, req) == SelectSeq(q, LAMBDA e : e.req # req)
Holds(q, req, number) == Has(q, req) /\ LET e == q[Find(q, req)] IN e.phase = "held" /\ e.number = number

(* Drops expired requests at the front, and reserves the key for the first waiter if it is free. *)
Serve(q, ages) ==
    LET live == {i \in DOMAIN q : ~Silent(q[i], ages) /\ ~Expired(q[i], ages)}
        first == Least(live, q)
        second == Least(live \ {first}, q)
        serves == first \in DOMAIN q /\ q[first].phase = "waiting"
        dropped == {i \in DOMAIN q :
            \/ i < second /\ Expired(q[i], ages)
            \/ serves /\ DropOvertaken /\ i < first}
        served == IF serves THEN [q EXCEPT ![first].phase = "reserved", ![first].expires = ClaimWindow] ELSE q
    IN Only(served, DOMAIN q \ dropped)

Hold(q, req, number) ==
    LET i == Find(q, req)
    IN [q EXCEPT ![i].phase = "held", ![i].expires = q[i].lease, ![i].number = number]

Status(q, req) ==
    IF ~Has(q, req) THEN [state |-> "gone", req |-> req, number |-> 0]
    ELSE LET e == q[Find(q, req)]
         IN [state |-> IF e.phase = "held" THEN "held" ELSE "queued", req |-> req, number |-> e.number]

Answered(q, req) == [queue |-> q, reply |-> Status(q, req)]

Enqueued(q, ages, req, lease, ttl, waits, number) ==
    LET served == Serve(q, ages)
        new == [req |-> req, phase |-> "waiting", expires |-> ttl, covered |-> FALSE,
                lease |-> lease, number |-> 0]
        blocked == \E i \in DOMAIN served : ~Silent(served[i], ages)
        before == IF blocked \/ ~DropOvertaken THEN served ELSE <<>>
    IN IF Has(q, req) THEN Answered(q, req)
       ELSE IF blocked /\ ~waits THEN [queue |-> served, reply |-> [state |-> "busy", req |-> req, number |-> 0]]
       ELSE IF ~blocked THEN Answered(Hold(Append(before, new), req, number), req)
       ELSE IF JoinAtEnd THEN Answered(Append(before, new), req)
       ELSE Answered(<<Head(before), new>> \o Tail(before), req)

CheckedIn(q, ages, req, lease, ttl, number) ==
    IF ~Has(q, req) THEN Answered(q, req)
    ELSE LET i == Find(q, req)
             heard == [q EXCEPT ![i].lease = lease, ![i].expires = IF q[i].phase = "held" THEN lease ELSE ttl]
             served == IF q[i].phase = "waiting" THEN Serve(heard, ages) ELSE heard
         IN IF q[i].phase = "held" /\ Expired(q[i], ages) THEN Answered(Serve(Without(q, req), ages), req)
            ELSE IF served[Find(served, req)].phase = "reserved" THEN Answered(Hold(served, req, number), req)
            ELSE Answered(served, req)

Named(q, reqs) ==
    [i \in DOMAIN q |-> IF q[i].req \in reqs /\ q[i].phase = "waiting" THEN [q[i] EXCEPT !.covered = TRUE] ELSE q[i]]

Cancelled(q, ages, req) == IF Has(q, req) THEN Serve(Without(q, req), ages) ELSE q

Renewed(q, ages, req, number, lease) ==
    IF Holds(q, req, number) /\ ~Expired(q[Find(q, req)], ages)
    THEN [queue |-> [q EXCEPT ![Find(q, req)].lease = lease, ![Find(q, req)].expires = lease], reply |-> TRUE]
    ELSE [queue |-> q, reply |-> ~RenewNeedsGrant]

Released(q, ages, req, number) ==
    IF Holds(q, req, number)
    THEN [queue |-> Serve(Without(q, req), ages), reply |-> ~Expired(q[Find(q, req)], ages)]
    ELSE IF ~ReleaseNamesGrant /\ q # <<>> THEN [queue |-> Serve(Tail(q), ages), reply |-> TRUE]
    ELSE [queue |-> q, reply |-> FALSE]

Extended(q, ages, req, held, next, lease, ttl, waits, number) ==
    IF ~Holds(q, req, held) \/ Expired(q[Find(q, req)], ages) THEN Answered(q, next)
    ELSE IF \E i \in DOMAIN q : q[i].phase = "waiting" /\ ~Silent(q[i], ages)
    THEN Enqueued(Serve(Without(q, req), ages), ages, next, lease, ttl, waits, number)
    ELSE Answered(Hold([q EXCEPT ![Find(q, req)].lease = lease], req, number), req)

(* An operator takes a grant away, or everything that a client has. *)
Taken(q, ages, number) ==
    LET mine == {i \in DOMAIN q : q[i].phase = "held" /\ q[i].number = number}
    IN IF mine = {} THEN q ELSE Serve(Only(q, DOMAIN q \ mine), ages)
Revoked(q, ages, c) ==
    LET others == SelectSeq(q, LAMBDA e : e.req.client # c) IN IF others = q THEN q ELSE Serve(others, ages)

-----------------------------------------------------------------------------
(* The clients. `due` is the rest of the lease that would begin with the last operation sent. *)

Idle == [state |-> "idle", id |-> 0, number |-> 0, rest |-> 0, due |-> 0,
         asks |-> FALSE, queued |-> FALSE, woken |-> FALSE, turns |-> 0, waited |-> 0]

Init ==
    /\ queue = <<>>
    /\ last = 0
    /\ signs = [c \in Clients |-> Max(Lease, WaiterTtl)]
    /\ client = [c \in Clients |-> Idle]
    /\ net = {}
    /\ left = [requests |-> Requests, losses |-> Losses, repeats |-> Repeats, crashes |-> Crashes]
    /\ fence = 0
    /\ wrote = 0

Req(c) == [client |-> c, id |-> client[c].id]
Believes(c) == client[c].state = "held" /\ (client[c].rest > 0 \/ ~StopAtDeadline)

Message(type, req, number, current) == [type |-> type, req |-> req, number |-> number, current |-> current]

(* A client waits only for the reply to its last operation. *)
Forgotten(c) ==
    {IF m.type \in {"enqueue", "checkIn", "renew", "extend"} /\ m.req.client = c
     THEN [m EXCEPT !.current = FALSE] ELSE m
     : m \in {m \in net : m.type # "reply" \/ m.to # c}}

Operation(c, type, req, number) ==
    net' = Forgotten(c) \cup {Message(type, req, number, TRUE)}

Farewell(c, messages) == net' = Forgotten(c) \cup messages

(* It does not wait for a reply, or no longer. *)
Unanswered(c) == client[c].asks /\ (client[c].due = 0 \/ (Prompt /\ net = {}))
Free(c) == ~client[c].asks \/ Unanswered(c)

(* How long a request waits at most: for each one ahead of it a lease, and the window of a claim. *)
Patience == (Requests - 1) * (Lease + ClaimWindow)

Rested(c) == [client[c] EXCEPT !.state = "idle", !.number = 0, !.rest = 0, !.due = 0,
                               !.asks = FALSE, !.queued = FALSE, !.woken = FALSE, !.waited = 0]

Ask(c) ==
    /\ client[c].state = "idle" /\ left.requests > 0
    /\ LET req == [client |-> c, id |-> client[c].id + 1]
       IN Operation(c, "enqueue", req, 0)
    /\ client' = [client EXCEPT ![c].state = "waiting", ![c].id = @ + 1, ![c].asks = TRUE, ![c].due = Lease]
    /\ left' = [left EXCEPT !.requests = @ - 1]
    /\ UNCHANGED <<table, fence, wrote>>

Look(c) ==
    /\ client[c].state = "waiting" /\ client[c].queued /\ Free(c)
    /\ Prompt => client[c].woken \/ Unanswered(c)
    /\ Operation(c, "checkIn", Req(c), 0)
    /\ client' = [client EXCEPT ![c].asks = TRUE, ![c].due = Lease, ![c].woken = FALSE]
    /\ UNCHANGED <<table, left, fence, wrote>>

Sign(c) ==
    /\ client[c].state = "waiting" /\ client[c].queued /\ signs[c] > 0
    /\ net' = net \cup {Message("alive", Req(c), 0, FALSE)}
    /\ UNCHANGED <<table, client, left, fence, wrote>>

GiveUp(c) ==
    /\ client[c].state \in {"waiting", "extending"}
    /\ Prompt => Unanswered(c) /\ ~client[c].queued
    /\ Farewell(c, {Message("cancel", [client |-> c, id |-> id], 0, FALSE) :
            id \in {client[c].id} \cup (IF client[c].state = "extending" THEN {client[c].id + 1} ELSE {})})
    /\ client' = [client EXCEPT ![c] = [Rested(c) EXCEPT
            !.id = IF client[c].state = "extending" THEN @ + 1 ELSE @]]
    /\ UNCHANGED <<table, left, fence, wrote>>

Renew(c) ==
    /\ Believes(c) /\ client[c].rest < Lease /\ Free(c) /\ ~Prompt
    /\ Operation(c, "renew", Req(c), client[c].number)
    /\ client' = [client EXCEPT ![c].asks = TRUE, ![c].due = Lease]
    /\ UNCHANGED <<table, left, fence, wrote>>

Extend(c) ==
    /\ Believes(c) /\ client[c].turns < Turns
    /\ Operation(c, "extend", Req(c), client[c].number)
    /\ client' = [client EXCEPT ![c].state = "extending", ![c].asks = TRUE, ![c].due = Lease, ![c].turns = @ + 1]
    /\ UNCHANGED <<table, left, fence, wrote>>

Release(c) ==
    /\ Believes(c)
    /\ Farewell(c, {Message("release", Req(c), client[c].number, FALSE)})
    /\ client' = [client EXCEPT ![c] = Rested(c)]
    /\ UNCHANGED <<table, left, fence, wrote>>

Lapse(c) ==
    /\ client[c].state = "held" /\ ~Believes(c)
    /\ Farewell(c, {Message("cancel", Req(c), 0, FALSE)})
    /\ client' = [client EXCEPT ![c] = Rested(c)]
    /\ UNCHANGED <<table, left, fence, wrote>>

Crash(c) ==
    /\ left.crashes > 0 /\ client[c].state \in {"waiting", "held", "extending"}
    /\ client' = [client EXCEPT ![c] = [Rested(c) EXCEPT !.state = "dead"]]
    /\ Farewell(c, {})
    /\ left' = [left EXCEPT !.crashes = @ - 1]
    /\ UNCHANGED <<table, fence, wrote>>

(* It makes sure that it holds the lock, and then writes. *)
Write(c) ==
    /\ Believes(c) /\ wrote < client[c].number /\ ~Prompt
    /\ net' = net \cup {Message("write", Req(c), client[c].number, FALSE)}
    /\ UNCHANGED <<table, client, left, fence, wrote>>

Given(c, m, id) ==
    LET rest == IF DeadlineFromSend THEN client[c].due ELSE Lease
    IN [client[c] EXCEPT !.state = "held", !.id = id, !.number = m.number, !.asks = FALSE, !.rest = rest]

Answer(c, m) ==
    /\ m.type = "reply" /\ m.to = c
    /\ net' = net \ {m}
    /\ client' = [client EXCEPT ![c] =
        CASE m.state = "held" -> Given(c, m, m.req.id)
          [] m.state = "queued" ->
                [@ EXCEPT !.state = "waiting", !.id = m.req.id, !.queued = TRUE, !.asks = FALSE]
          [] m.state = "renewed" -> [@ EXCEPT !.asks = FALSE, !.rest = Max(@, client[c].due)]
          [] m.state \in {"gone", "refused"} -> [Rested(c) EXCEPT !.id = Max(@, m.req.id)]]
    /\ UNCHANGED <<table, left, fence, wrote>>

Wake(c, m) ==
    /\ m.type = "wake" /\ m.to = c
    /\ net' = net \ {m}
    /\ client' = IF client[c].state = "waiting" /\ m.req = Req(c) THEN [client EXCEPT ![c].woken = TRUE] ELSE client
    /\ UNCHANGED <<table, left, fence, wrote>>

-----------------------------------------------------------------------------
(* Messages reach the table and the resource. *)

NextNumber ==
    IF NumbersOutliveGrants THEN last + 1
    ELSE 1 + (CHOOSE n \in {0} \cup {queue[i].number : i \in DOMAIN queue} :
                \A i \in DOMAIN queue : queue[i].number <= n)

Reply(m, reply) ==
    IF m.current THEN {[type |-> "reply", to |-> m.req.client, req |-> reply.req, state |-> reply.state,
                        number |-> reply.number]}
    ELSE {}

Wakes(before, after) ==
    IF Prompt
    THEN {[type |-> "wake", to |-> after[i].req.client, req |-> after[i].req] :
            i \in {i \in DOMAIN after : after[i].phase = "reserved"
                /\ \A j \in DOMAIN before : before[j].req = after[i].req => before[j].phase # "reserved"}}
    ELSE {}

(* The rest of the net once a message has arrived: it may arrive again. *)
Arrives(m, repeats) ==
    /\ repeats => left.repeats > 0
    /\ left' = IF repeats THEN [left EXCEPT !.repeats = @ - 1] ELSE left

Rest(m, repeats) ==
    IF repeats THEN (net \ {m}) \cup {[m EXCEPT !.current = FALSE]} ELSE net \ {m}

Decided(m, repeats, result, reply) ==
    /\ queue' = result
    /\ last' = Max(last, IF result = <<>> THEN 0 ELSE
            CHOOSE n \in {result[i].number : i \in DOMAIN result} : \A i \in DOMAIN result : result[i].number <= n)
    /\ net' = Rest(m, repeats) \cup reply \cup Wakes(queue, result)
    /\ UNCHANGED <<client, fence, wrote>>

Handle(m, repeats) ==
    /\ m.type \in {"enqueue", "checkIn", "alive", "cancel", "renew", "release", "extend"}
    /\ Arrives(m, repeats)
    /\ signs' = IF m.type = "alive" THEN [signs EXCEPT ![m.req.client] = 0] ELSE signs
    /\ LET ttl == CoverTtl(Lease)
           next == [m.req EXCEPT !.id = @ + 1]
           simple(ok) == [state |-> IF ok THEN "renewed" ELSE "refused", req |-> m.req, number |-> m.number]
       IN CASE m.type = "enqueue" ->
                LET r == Enqueued(queue, signs, m.req, Lease, ttl, TRUE, NextNumber)
                IN Decided(m, repeats, r.queue, Reply(m, r.reply))
            [] m.type = "checkIn" ->
                LET r == CheckedIn(queue, signs, m.req, Lease, ttl, NextNumber)
                IN Decided(m, repeats, r.queue, Reply(m, r.reply))
            [] m.type = "extend" ->
                LET r == Extended(queue, signs, m.req, m.number, next, Lease, ttl, TRUE, NextNumber)
                IN Decided(m, repeats, r.queue, Reply(m, r.reply))
            [] m.type = "alive" ->
                LET named == Named(queue, {m.req})
                    after == IF SignsServe THEN Serve(named, signs') ELSE named
                    due == Prompt /\ SignsServe
                        /\ ~(Has(after, m.req) /\ after[Find(after, m.req)].phase = "waiting")
                IN Decided(m, repeats, after,
                    IF due THEN {[type |-> "wake", to |-> m.req.client, req |-> m.req]} ELSE {})
            [] m.type = "cancel" -> Decided(m, repeats, Cancelled(queue, signs, m.req), {})
            [] m.type = "renew" ->
                LET r == Renewed(queue, signs, m.req, m.number, Lease)
                IN Decided(m, repeats, r.queue, Reply(m, simple(r.reply)))
            [] m.type = "release" ->
                Decided(m, repeats, Released(queue, signs, m.req, m.number).queue, {})

Accepted(number) == number >= fence \/ ~FenceOnWrite

WriteArrives(m, repeats) ==
    /\ m.type = "write"
    /\ Arrives(m, repeats)
    /\ net' = Rest(m, repeats)
    /\ fence' = Max(fence, m.number)
    /\ wrote' = IF Accepted(m.number) THEN m.number ELSE wrote
    /\ UNCHANGED <<table, client>>

Lose(m) ==
    /\ left.losses > 0
    /\ net' = net \ {m}
    /\ left' = [left EXCEPT !.losses = @ - 1]
    /\ UNCHANGED <<table, client, fence, wrote>>

Older(q, time) == [i \in DOMAIN q |-> [q[i] EXCEPT !.expires = Max(@ - time, -Kept(q[i]))]]
OlderSigns(ages, time) == [c \in DOMAIN ages |-> Min(ages[c] + time, Max(Lease, WaiterTtl))]

Busy(c) ==
    \/ client[c].asks \/ client[c].woken
    \/ client[c].state = "held" /\ client[c].rest = 0
    \/ client[c].state = "waiting" /\ client[c].queued /\ signs[c] > 0

Tick ==
    /\ Prompt => net = {} /\ \A c \in Clients : ~Busy(c)
    /\ \E pace \in [Clients -> Paces] :
        /\ queue' = Older(queue, 1)
        /\ signs' = OlderSigns(signs, 1)
        /\ client' = [c \in Clients |->
                [client[c] EXCEPT !.rest = Max(@ - pace[c], 0), !.due = Max(@ - pace[c], 0),
                                  !.waited = IF Prompt /\ client[c].state = "waiting"
                                             THEN Min(@ + 1, Patience + 1) ELSE 0]]
        /\ UNCHANGED <<last, net, left, fence, wrote>>

Next ==
    \/ Tick
    \/ \E c \in Clients :
        \/ Ask(c) \/ Look(c) \/ Sign(c) \/ GiveUp(c) \/ Renew(c) \/ Extend(c) \/ Release(c) \/ Lapse(c)
        \/ Crash(c) \/ Write(c)
        \/ \E m \in net : Answer(c, m) \/ Wake(c, m)
    \/ \E m \in net :
        \/ \E repeats \in BOOLEAN : Handle(m, repeats) \/ WriteArrives(m, repeats)
        \/ Lose(m)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* How far TLC searches. *)

Same == Permutations(Clients)
Bounded == Cardinality(net) <= Messages

-----------------------------------------------------------------------------
(* Promises *)

OneHolder == \A c, d \in Clients : Believes(c) /\ Believes(d) => c = d

NumbersRise == [][\A i \in DOMAIN queue' :
    queue'[i].phase = "held"
        /\ (\A j \in DOMAIN queue : queue[j].req = queue'[i].req => queue[j].number # queue'[i].number)
    => queue'[i].number > last]_vars

WritesInOrder == [][wrote' >= wrote]_vars

(* No request enters the queue before an earlier one, or gets its turn while an earlier one waits and is not silent. *)
FirstComeFirstServed == [][\A j \in DOMAIN queue' :
    LET e == queue'[j]
        starts == e.phase # "waiting" /\ \A k \in DOMAIN queue : queue[k].req = e.req => queue[k].phase = "waiting"
    IN /\ Has(queue, e.req) => \A i \in 1..j - 1 :
            Has(queue, queue'[i].req) /\ Find(queue, queue'[i].req) < Find(queue, e.req)
       /\ starts => \A i \in 1..j - 1 : queue'[i].phase # "waiting" \/ Silent(queue'[i], signs')]_vars

(* A live client is served if holders release or die. TLC also finds it when nothing at all can happen any more. *)
ServedInTime == \A c \in Clients : client[c].waited <= Patience
=============================================================================
