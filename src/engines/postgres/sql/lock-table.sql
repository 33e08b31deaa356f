-- The lock table: decides one operation on locks as LockTable of lock-table.ts does, where its rules are described.
-- Locks the rows that it needs, decides on variables, and writes the rows that have changed.
--
-- `claims` are those of the request; operations on keys pass a claim for each key. `following` is the ID of the next
-- request of an extendOrYield. `ttl` is how long a waiter blocks others without a heartbeat or a sign, 0 for a request that
-- does not wait, and `heartbeat` the maximum time until its next check-in.
--
-- Fails with SB001 if it needs further rows and another transaction has locked one. Then all rows have to be locked in
-- the order of their names; the detail lists the names.
create or replace function signalbox.decide_lock(
  kind int, session text, host text, pid int, label text, id text, following text, number bigint, lease float8,
  ttl float8, heartbeat float8, claims signalbox.claim[],
  out answer text, out notices text, out made int, out to_move bigint[]
) language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  now float8;
  -- The greatest number granted so far.
  counter bigint;
  -- The locked rows. `w_unbound` is null until it is needed: whether no transaction is bound to the row.
  w_name text[] := '{}'::text[];
  w_id bigint[] := '{}'::bigint[];
  w_version bigint[] := '{}'::bigint[];
  w_unbound boolean[];
  w_dirty boolean[];
  -- The entries of their queues in these rows.
  head signalbox.request[] := '{}'::signalbox.request[];
  head_from int[] := '{1}'::int[];
  -- These, and those in tails that are needed: all if `whole`, else only those of the operation's own requests. `w_rest`
  -- is whether a tail has others. If they matter, everything starts again.
  whole boolean := kind in ({kind.forceRelease}, {kind.revoke});
  wider boolean;
  raw signalbox.request[];
  raw_row int[];
  raw_place bigint[];
  raw_from int[];
  w_rest boolean[];
  -- The requests. `raw_req` is null for an entry whose request is in the row of another key.
  raw_req int[];
  q signalbox.request[];
  q_id text[];
  q_phase int[];
  q_expires float8[];
  q_lease float8[];
  q_number bigint[];
  q_gone boolean[];
  q_dirty boolean[];
  -- The places of requests in queues. Those of a row are adjacent, in order of arrival, and the last one is empty, for
  -- a new request. Those from `w_tail` on are in the tail. Those of a request are linked by `e_next`.
  w_from int[];
  w_tail int[];
  w_to int[];
  q_first int[];
  e_next int[];
  e_row int[];
  e_place bigint[];
  e_req int[];
  e_mode int[];
  e_permits int[];
  e_max int[];
  need text[] := '{}'::text[];
  missing text[];
  -- The rows whose queues to serve, and those of the request.
  todo int[];
  mine int[];
  -- What follows after the queues are served: 0 nothing, 1 an enqueue checks its claim `at`, 2 the request has its
  -- place, 3 an enqueue after a yielded grant, 4 a checkIn.
  stage int;
  at int;
  subject text := id;
  appended int;
  f int;
  found_row record;
  row_id bigint;
  row_ids bigint[] := '{}'::bigint[];
  row_version bigint;
  one signalbox.request;
  c signalbox.claim;
  queue signalbox.request[];
  r int;
  s int;
  w int;
  over int;
  dropped int[];
  first_mode int;
  permits int;
  inner_first int;
  inner_permits int;
  runs boolean;
  awaited boolean;
  is_first boolean := true;
  place int;
  next_check float8;
  key_check float8;
  holder int;
  -- The transaction that keeps a row that no grant holds.
  binder text;
  changes int;
begin
  made := 0;
  to_move := '{}';
  for i in 1 .. cardinality(claims) loop
    c := claims[i];
    if c.name <> all (need) then need := need || c.name; end if;
  end loop;

  <<again>>
  loop
    loop
      if not is_first then
        -- Another transaction may do the same, and waiting for each other would be a deadlock.
        perform from signalbox.numbers(need) k join signalbox.data d on d.id = k.id for no key update of d skip locked;
        get diagnostics place = row_count;
        if place < (select count(*) from signalbox.numbers(need)) then
          raise exception 'further rows have to be locked' using errcode = 'SB001',
            detail = array_to_json(w_name || need)::text;
        end if;
      end if;
      if cardinality(need) = 1 then
        select d.id, d.version, d.queue into row_id, row_version, queue from signalbox.data d
          where d.id = (select k.id from signalbox.keys k where k.name = need[1] order by k.id desc limit 1)
          for no key update;
        if found then
          w_name := w_name || need[1]; w_id := w_id || row_id; w_version := w_version || row_version;
          head := head || queue; head_from := head_from || cardinality(head) + 1;
          need := '{}';
        end if;
      else
        for found_row in
          select d.id, d.name, d.version, d.queue
            from signalbox.numbers(need) k,
              lateral (select s.* from signalbox.data s where s.id = k.id for no key update) d
        loop
          w_name := w_name || found_row.name; w_id := w_id || found_row.id; w_version := w_version || found_row.version;
          head := head || found_row.queue; head_from := head_from || cardinality(head) + 1;
          need := array_remove(need, found_row.name);
        end loop;
      end if;
      exit when need = '{}';
      if exists (select from signalbox.numbers(need)) then
        -- A row got another number, or was inserted, after its name was looked up.
        continue when w_name = '{}';
        raise exception 'further rows have to be locked' using errcode = 'SB001',
          detail = array_to_json(w_name || need)::text;
      end if;
      -- For other operations, a missing row is an empty queue.
      exit when kind not in ({kind.enqueue}, {kind.extendOrYield});
      if signalbox.make_rows(need, signalbox.clock() + {time.kept}) then made := made + cardinality(need); end if;
    end loop;
    if need <> '{}' and not is_first then
      raise exception 'a queue names %, which has no row', need[1] using errcode = 'data_corrupted';
    end if;
    is_first := false;

    now := signalbox.clock();
    counter := floor(now * 1000)::bigint;
    for i in 1 .. cardinality(w_version) loop counter := greatest(counter, w_version[i]); end loop;
    w_unbound := array_fill(null::boolean, array[cardinality(w_name)]);
    w_dirty := array_fill(false, array[cardinality(w_name)]);
    q := '{}'; q_id := '{}'; q_phase := '{}'; q_expires := '{}'; q_lease := '{}'; q_number := '{}';
    q_gone := '{}'; q_dirty := '{}'; q_first := '{}'; w_from := '{}'; w_tail := '{}'; w_to := '{}'; e_next := '{}';
    e_row := '{}'; e_place := '{}'; e_req := '{}'; e_mode := '{}'; e_permits := '{}'; e_max := '{}';
    raw_req := '{}'; need := '{}'; missing := '{}'; notices := ''; answer := null; todo := '{}'; stage := 0;
    appended := null; wider := false;

    raw := '{}'; raw_row := '{}'; raw_place := '{}'; raw_from := '{}'; w_rest := '{}';
    for w in 1 .. cardinality(w_name) loop
      raw_from := raw_from || cardinality(raw) + 1;
      queue := head[head_from[w] : head_from[w + 1] - 1];
      raw := raw || queue;
      raw_row := raw_row || array_fill(w, array[cardinality(queue)]);
      raw_place := raw_place || array_fill(0::bigint, array[cardinality(queue)]);
      w_rest := w_rest || false;
      continue when not signalbox.is_full(queue);
      for found_row in
        select t.place, t.request from signalbox.tails t
          where whole and t.name = w_name[w] and t.place > signalbox.tail_after(queue)
        union all
        select t.place, t.request from signalbox.tails t
          where not whole and t.id = any(array[id, following]) and t.name = w_name[w]
        order by 1
      loop
        raw := raw || found_row.request; raw_row := raw_row || w; raw_place := raw_place || found_row.place;
      end loop;
      w_rest[w] := not whole and exists (
        select from signalbox.tails t
          where t.name = w_name[w] and t.place > signalbox.tail_after(queue) and t.id <> all (array[id, following]));
    end loop;
    for i in 1 .. cardinality(raw) loop
      one := raw[i];
      if one.session is not null then
        one.first := w_name[raw_row[i]];
        -- A sign that covers a waiter counts like its own time.
        if one.phase = {phase.waiting} and one.number = {number.covered} and one.expires <= now then
          one.expires := signalbox.blocks_until(one.session, one.number, one.expires, one.lease);
        end if;
        q := q || one; q_id := q_id || one.id; q_phase := q_phase || one.phase;
        q_expires := q_expires || one.expires; q_lease := q_lease || one.lease; q_number := q_number || one.number;
        q_gone := q_gone || false; q_dirty := q_dirty || false; q_first := q_first || 0;
        raw_req := raw_req || cardinality(q);
      else
        if one.first <> all (w_name) then need := need || one.first; end if;
        raw_req := raw_req || null::int;
      end if;
    end loop;
    continue again when need <> '{}';
    for w in 1 .. cardinality(w_name) loop
      w_from := w_from || cardinality(e_req) + 1;
      for i in raw_from[w] .. coalesce(raw_from[w + 1] - 1, cardinality(raw)) loop
        one := raw[i];
        r := coalesce(raw_req[i], array_position(q_id, one.id));
        if r is null and true = any(w_rest) then
          whole := true;
          continue again;
        end if;
        if r is null then
          raise exception 'the queue of % names a request that % does not have', w_name[w], one.first
            using errcode = 'data_corrupted';
        end if;
        c := null;
        one := q[r];
        if one.claims is not null then
          foreach c in array one.claims loop
            exit when c.name = w_name[w];
          end loop;
        end if;
        if raw_place[i] > 0 then w_tail[w] := coalesce(w_tail[w], cardinality(e_req) + 1); end if;
        e_row := e_row || w; e_place := e_place || raw_place[i]; e_req := e_req || r; e_next := e_next || q_first[r];
        e_mode := e_mode || coalesce(c.mode, {mode.exclusive}); e_permits := e_permits || coalesce(c.permits, 0);
        e_max := e_max || coalesce(c.max_permits, 0);
        q_first[r] := cardinality(e_req);
      end loop;
      e_row := e_row || w; e_place := e_place || 0::bigint; e_req := e_req || 0; e_next := e_next || 0;
      e_mode := e_mode || {mode.exclusive}; e_permits := e_permits || 0; e_max := e_max || 0;
      w_to := w_to || cardinality(e_req);
      w_tail[w] := coalesce(w_tail[w], w_to[w]);
    end loop;
    if true = any(w_rest) then
      -- A request on several keys may have its place on one of them in the part that is not read.
      for r in 1 .. cardinality(q_id) loop
        one := q[r];
        continue when one.claims is null;
        place := 0; f := q_first[r];
        while f > 0 loop place := place + 1; f := e_next[f]; end loop;
        whole := whole or place < (select count(distinct l.name) from unnest(one.claims) l where l.name = any(w_name));
      end loop;
      continue again when whole;
    end if;

    mine := '{}';
    for i in 1 .. cardinality(claims) loop
      c := claims[i];
      w := array_position(w_name, c.name);
      if w is not null then mine := mine || w; end if;
    end loop;
    r := array_position(q_id, subject);
    case
      when kind = {kind.enqueue} then
        stage := case when r is null then 1 else 2 end;
        at := 1; todo := case when r is null then mine[1:1] else '{}' end;
      when kind = {kind.release} then
        answer := 0;
        if q_phase[r] = {phase.held} and q_number[r] = number then
          answer := case when now < q_expires[r] then 1 else 0 end;
          q_gone[r] := true; todo := mine;
          foreach w in array mine loop w_dirty[w] := true; end loop;
        end if;
      when kind in ({kind.renew}, {kind.extendOrYield}, {kind.downgrade}) then
        if r is null or q_phase[r] <> {phase.held} or q_number[r] <> number or now >= q_expires[r] then
          answer := case when kind = {kind.extendOrYield} then '"gone"' else '0' end;
          if kind = {kind.extendOrYield} and following = any(q_id) then subject := following; stage := 2; end if;
        elsif kind = {kind.renew} then
          q_lease[r] := lease; q_expires[r] := now + lease; q_dirty[r] := true; answer := 1;
        elsif kind = {kind.downgrade} then
          one := q[r];
          one.claims := array(
            select row(l.name, {mode.shared}, null, null, l.key)::signalbox.claim
              from unnest(claims) with ordinality l order by l.ordinality);
          q[r] := one; q_dirty[r] := true; todo := mine; answer := 1;
          f := q_first[r];
          while f > 0 loop
            e_mode[f] := {mode.shared}; f := e_next[f];
          end loop;
        else
          awaited := false;
          foreach w in array mine loop
            for e in w_from[w] .. w_to[w] - 1 loop
              s := e_req[e];
              awaited := awaited or (q_phase[s] = {phase.waiting} and now < q_expires[s]);
            end loop;
            wider := wider or w_rest[w];
          end loop;
          if not awaited and wider then
            whole := true;
            continue again;
          end if;
          wider := false;
          if not awaited then
            foreach w in array mine loop
              w_unbound[w] := (
                select count(*) > 0 from (
                  select from signalbox.data d where d.id = w_id[w] for update skip locked) d);
              awaited := awaited or not w_unbound[w];
            end loop;
          end if;
          foreach w in array mine loop w_dirty[w] := true; end loop;
          if awaited then
            q_gone[r] := true; todo := mine; stage := 3;
          else
            counter := counter + 1;
            q_lease[r] := lease; q_expires[r] := now + lease; q_number[r] := counter; q_dirty[r] := true;
            answer := format('["kept",%s]', counter);
          end if;
        end if;
      when kind = {kind.checkIn} then
        if r is null then
          answer := '"gone"';
        elsif q_phase[r] = {phase.held} and now >= q_expires[r] then
          -- Its holder counts it as lost by now, so a late renewal must not revive it.
          answer := '"gone"';
          notices := format('["lost",%s,%s,%s],', to_json(q[r].session), to_json(q_id[r]), to_json(q[r].first));
          q_gone[r] := true; todo := mine;
          foreach w in array mine loop w_dirty[w] := true; end loop;
        else
          q_lease[r] := lease; q_dirty[r] := true;
          q_expires[r] := now + case when q_phase[r] = {phase.held} then lease else ttl end;
          if q_phase[r] = {phase.waiting} then todo := mine; end if;
          stage := 4;
        end if;
      when kind = {kind.cancel} then
        answer := 0;
        if r is not null then
          q_gone[r] := true; todo := mine;
          foreach w in array mine loop w_dirty[w] := true; end loop;
        end if;
      when kind = {kind.sweepExpired} then
        answer := 0; todo := mine;
      else
        -- Remove them all before any waiter is served, or one of them could be granted another's keys.
        answer := 0;
        for i in 1 .. cardinality(q_id) loop
          one := q[i];
          continue when case kind when {kind.forceRelease} then q_phase[i] <> {phase.held} or q_number[i] <> number else one.session <> id end;
          answer := answer::int + 1;
          q_gone[i] := true;
          notices := notices || format('["lost",%s,%s,%s],', to_json(one.session), to_json(one.id), to_json(one.first));
          if one.claims is null then
            w := array_position(w_name, one.first);
            todo := todo || w; w_dirty[w] := true;
          else
            foreach c in array one.claims loop
              w := array_position(w_name, c.name);
              if w is null then missing := missing || c.name;
              else todo := todo || w; w_dirty[w] := true;
              end if;
            end loop;
          end if;
          exit when kind = {kind.forceRelease};
        end loop;
    end case;

    loop
      -- Serve queues from the front: drop expired requests, and reserve the keys for all waiters that can run.
      while todo <> '{}' loop
        w := todo[cardinality(todo)];
        dropped := '{}'; first_mode := 0; permits := 0;
        for e in w_from[w] .. w_to[w] loop
          wider := w_rest[w] and e >= w_tail[w];
          exit when wider;
          r := e_req[e];
          continue when r = 0 or q_gone[r];
          if now >= q_expires[r] + (case when q_phase[r] = {phase.waiting} then greatest(q_lease[r] - {time.waiterTtl}, 0) else 0 end) then
            q_gone[r] := true; dropped := dropped || r;
            continue;
          end if;
          continue when q_phase[r] = {phase.waiting} and now >= q_expires[r];
          -- A request that is blocked here blocks all behind it.
          exit when not (first_mode = 0 or (first_mode = {mode.shared} and e_mode[e] = {mode.shared})
            or (first_mode = {mode.permits} and e_mode[e] = {mode.permits} and permits + e_permits[e] <= e_max[e]));
          if q_phase[r] = {phase.waiting} then
            -- It can run if nothing ahead of it blocks any of its claims.
            runs := true;
            one := q[r];
            if one.claims is not null then
              foreach c in array one.claims loop
                if c.name <> all (w_name) then missing := missing || c.name; runs := false; end if;
              end loop;
            end if;
            f := q_first[r];
            while runs and f > 0 loop
              inner_first := 0; inner_permits := 0;
              for g in w_from[e_row[f]] .. f - 1 loop
                s := e_req[g];
                continue when q_gone[s] or (q_phase[s] = {phase.waiting} and now >= q_expires[s]);
                inner_first := case when inner_first in (0, e_mode[g]) then e_mode[g] else {mode.exclusive} end;
                if e_mode[g] = {mode.permits} then inner_permits := inner_permits + e_permits[g]; end if;
                runs := inner_first <> {mode.exclusive} and inner_first = e_mode[f]
                  and (inner_first = {mode.shared} or inner_permits + e_permits[f] <= e_max[f]);
                exit when not runs;
              end loop;
              if runs and w_unbound[e_row[f]] is null then
                -- A fence locks the row for key share until its transaction ends.
                w_unbound[e_row[f]] := (
                  select count(*) > 0 from (
                    select from signalbox.data d where d.id = w_id[e_row[f]] for update skip locked) d);
              end if;
              runs := runs and w_unbound[e_row[f]];
              f := e_next[f];
            end loop;
            if runs then
              -- Drop the silent waiters ahead of it: one that came back would not see this grant.
              f := q_first[r];
              while f > 0 loop
                for g in w_from[e_row[f]] .. f - 1 loop
                  s := e_req[g];
                  if not q_gone[s] and q_phase[s] = {phase.waiting} and now >= q_expires[s] then
                    q_gone[s] := true; dropped := dropped || s;
                  end if;
                end loop;
                f := e_next[f];
              end loop;
              q_phase[r] := {phase.reserved}; q_expires[r] := now + {time.claimWindow}; q_number[r] := 0; q_dirty[r] := true;
              if r is distinct from appended then
                notices := notices || format('["wake",%s,%s,%s],', to_json(one.session), to_json(one.id), to_json(one.first));
              end if;
            end if;
          end if;
          first_mode := case when first_mode in (0, e_mode[e]) then e_mode[e] else {mode.exclusive} end;
          if e_mode[e] = {mode.permits} then permits := permits + e_permits[e]; end if;
        end loop;
        exit when wider;
        todo := todo[1:cardinality(todo) - 1];
        foreach r in array dropped loop
          one := q[r];
          notices := notices || format('["lost",%s,%s,%s],', to_json(one.session), to_json(one.id), to_json(one.first));
          f := q_first[r];
          while f > 0 loop
            w_dirty[e_row[f]] := true;
            if e_row[f] <> w then todo := todo || e_row[f]; end if;
            f := e_next[f];
          end loop;
          if one.claims is not null then
            missing := missing || array(select l.name from unnest(one.claims) l where l.name <> all (w_name));
          end if;
        end loop;
      end loop;
      exit when missing <> '{}' or wider or stage = 0;

      if stage = 3 then
        subject := following;
        stage := case when subject = any(q_id) then 2 else 1 end;
        at := 1; todo := mine[1:1];
      elsif stage = 1 then
        c := claims[at];
        if c.mode = {mode.permits} then
          -- All permits in a queue have the same maximum.
          wider := w_rest[mine[at]];
          for e in w_from[mine[at]] .. w_to[mine[at]] - 1 loop
            continue when e_mode[e] <> {mode.permits} or q_gone[e_req[e]];
            wider := false;
            if e_max[e] <> c.max_permits then
              answer := format('["mismatch",%s,%s]', at, e_max[e]);
              stage := 0;
            end if;
            exit;
          end loop;
          exit when wider or stage = 0;
        end if;
        if at < cardinality(claims) then
          at := at + 1; todo := mine[at:at];
        else
          -- Add the request to all its queues. It can run if it is served there.
          one := row(subject, c.name, session, host, pid, label, {phase.waiting}, 0, lease, 0, now, null)::signalbox.request;
          one.first := w_name[mine[1]];
          if cardinality(claims) > 1 or c.mode <> {mode.exclusive} or c.key is not null then one.claims := claims; end if;
          appended := cardinality(q_id) + 1;
          q := q || one; q_id := q_id || subject; q_phase := q_phase || {phase.waiting};
          -- A request that does not wait is checked once.
          q_expires := q_expires || now + greatest(ttl, 1); q_lease := q_lease || lease; q_number := q_number || 0::bigint;
          q_gone := q_gone || false; q_dirty := q_dirty || false; q_first := q_first || 0;
          for i in 1 .. cardinality(claims) loop
            c := claims[i];
            f := w_to[mine[i]];
            e_req[f] := appended; e_mode[f] := c.mode; e_permits[f] := coalesce(c.permits, 0);
            e_max[f] := coalesce(c.max_permits, 0); e_next[f] := q_first[appended]; q_first[appended] := f;
          end loop;
          todo := mine; stage := 2;
        end if;
      else
        r := array_position(q_id, subject);
        if stage = 4 and q_phase[r] = {phase.reserved} then
          runs := true;
          foreach w in array mine loop
            if w_unbound[w] is null then
              w_unbound[w] := (
                select count(*) > 0 from (
                  select from signalbox.data d where d.id = w_id[w] for update skip locked) d);
            end if;
            runs := runs and w_unbound[w];
          end loop;
        else
          runs := r = appended and q_phase[r] = {phase.reserved};
        end if;
        if runs then
          counter := counter + 1;
          q_phase[r] := {phase.held}; q_expires[r] := now + lease; q_number[r] := counter; q_dirty[r] := true;
          foreach w in array mine loop w_dirty[w] := true; end loop;
        elsif r = appended then
          if ttl = 0 then
            q_gone[r] := true; answer := '"busy"'; exit;
          end if;
          q_dirty[r] := true;
          foreach w in array mine loop w_dirty[w] := true; end loop;
        end if;
        if q_phase[r] = {phase.held} then
          answer := q_number[r];
          exit;
        end if;
        -- Its place, and when to check again.
        next_check := 'infinity'; holder := null; binder := null; place := 0;
        foreach w in array mine loop
          awaited := false; key_check := 'infinity';
          for g in w_from[w] .. w_to[w] loop
            s := e_req[g];
            if not awaited and w_rest[w] and g >= w_tail[w] then
              -- One that is not read may wait ahead of it.
              whole := true;
              continue again;
            end if;
            exit when s = r;
            continue when q_gone[s];
            if w = mine[1] then place := place + 1; end if;
            if q_phase[s] = {phase.held} and holder is null then holder := s; end if;
            continue when q_phase[s] = {phase.waiting} and now >= q_expires[s];
            -- Any number of requests may hold the key, and the end of any of them may make room for the first waiter.
            awaited := awaited or q_phase[s] = {phase.waiting};
            if q_phase[s] > {phase.waiting} then key_check := least(key_check, q_expires[s] - now); end if;
          end loop;
          if not awaited then next_check := least(next_check, key_check); end if;
        end loop;
        next_check := case when q_phase[r] = {phase.reserved} then 0 else least(next_check, heartbeat) end;
        -- Check often while a transaction is bound to an earlier grant: nothing notifies of its end.
        over := 0;
        foreach w in array mine loop over := over + 1; row_ids[over] := w_id[w]; end loop;
        if (select count(*) from (
          select from signalbox.data d where d.id = any(row_ids[1:over]) for update skip locked) d) < over
        then
          next_check := {time.boundCheck};
          for found_row in
            select b.* from unnest(row_ids[1:over]) i cross join lateral signalbox.binder(i) b where holder is null limit 1
          loop
            binder := format(',%s,%s,%s,%s,%s', to_json(found_row.session), to_json(found_row.host), found_row.pid,
              to_json(found_row.label), found_row.age);
          end loop;
        end if;
        answer := format('["queued",%s,%s%s', place, greatest(next_check, 0)::bigint, binder);
        if holder is not null then
          one := q[holder];
          answer := answer || format(',%s,%s,%s,%s,%s', to_json(one.session), to_json(one.host), one.pid,
            coalesce(to_json(one.label)::text, 'null'), (now - one.since)::bigint);
        end if;
        answer := answer || ']';
        exit;
      end if;
    end loop;
    exit again when missing = '{}' and not wider;
    whole := whole or wider;
    need := array(select distinct n from unnest(missing) n);
  end loop;

  -- Write the queues that have changed.
  for i in 1 .. cardinality(q_id) loop
    continue when q_gone[i] or not q_dirty[i];
    one := q[i];
    one.phase := q_phase[i]; one.expires := q_expires[i]; one.lease := q_lease[i]; one.number := q_number[i];
    q[i] := one;
    w_dirty[array_position(w_name, one.first)] := true;
  end loop;
  -- A new request comes behind all that are there, and has the same place in each tail.
  counter := counter + 1;
  for w in 1 .. cardinality(w_name) loop
    continue when not w_dirty[w];
    queue := null;
    for e in w_from[w] .. w_to[w] loop
      r := e_req[e];
      continue when r = 0;
      if q_gone[r] then
        if e_place[e] > 0 then delete from signalbox.tails t where t.name = w_name[w] and t.place = e_place[e]; end if;
        continue;
      end if;
      one := q[r];
      if e = w_to[w] and (w_rest[w] or e > w_tail[w] or signalbox.is_full(queue)) then
        one.since := counter / 1000.0::float8;
      end if;
      if one.first = w_name[w] then one.first := null;
      else
        one := row(one.id, one.first, null, null, null, null, null, null, null, null, one.since, null)::signalbox.request;
      end if;
      if e_place[e] > 0 then
        if q_dirty[r] then
          update signalbox.tails t set request = one where t.name = w_name[w] and t.place = e_place[e];
        end if;
      elsif e < w_to[w] or not (w_rest[w] or e > w_tail[w] or signalbox.is_full(queue)) then
        queue := queue || one;
      else
        insert into signalbox.tails (name, place, id, request) values (w_name[w], counter, one.id, one);
      end if;
    end loop;
    update signalbox.data d set queue = queue, version = greatest(d.version, counter), changes = d.changes + 1
      where d.id = w_id[w] returning d.changes into changes;
    if not signalbox.is_full(queue) and signalbox.is_full(head[head_from[w] : head_from[w + 1] - 1]) then
      perform signalbox.refill(w_id[w]);
    end if;
    if changes >= {changes.max} then to_move := to_move || w_id[w]; end if;
  end loop;
end $$;
