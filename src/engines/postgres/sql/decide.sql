-- Carries out operations one after the other, and answers with a JSON text: the answer of each, what sessions have to
-- be notified of, and the times up to which was swept.
--
-- Kinds are those of decide_lock, and 11 read, 12 commit, 13 watch, 14 unwatch. A kind is negative where the operation
-- has `more`. Without claims there, it is about one exclusive claim on the row `name`.
-- Operations are in an order in which rows can be locked, or `locked` has the names of all rows, which are locked first.
--
-- @param session, host, pid, label of the box
-- @param durable whether a value is written, which is waited for until it is on the disk. Then the box notifies others.
-- @param within whether the caller's transaction goes on: then nothing of it is changed, its settings neither
-- @param patience how long it is waited for a row that another transaction holds: milliseconds
-- @param waits whether values that a transaction elsewhere holds are waited for
-- @param labels of requests; an empty one is that of the box, and none where that is empty as well
-- @param mores a JSON array with what else operations have
-- @param swept the times up to which the box has swept
-- @param is_batch whether each operation is about another lock, and one exclusive claim. The answer is "again" to those
-- whose row another transaction has locked meanwhile.
create or replace function signalbox.decide(
  session text, host text, pid int, label text, durable boolean, within boolean, patience int, waits boolean,
  locked text[], kinds int[], names text[], ids text[], numbers bigint[], leases float8[], lives float8[],
  hears float8[], labels text[], mores jsonb, swept float8[], is_batch boolean
) returns text
language plpgsql set search_path = pg_catalog, pg_temp set extra_float_digits = 1
-- One plan for all, by the indexes, whatever the tables had when it was made.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_variable
declare
  now float8;
  micros bigint;
  more jsonb;
  kind int;
  is_simple boolean;
  answers text := '';
  told text := '';
  answer text;
  one_told text;
  decided record;
  released text;
  made int := 0;
  worn bigint[] := '{}'::bigint[];
  claims signalbox.claim[];
  guard text;
  done_places bigint[];
  done_answers bigint[];
  done bigint[] := '{}'::bigint[];
  changes int;
  row_id bigint;
  written text[];
  written_here text[];
  wanted text[];
  expected text[];
  versions bigint[];
  contents text[];
  deleted text[];
  marks uuid[];
begin
  label := nullif(label, '');
  now := signalbox.clock();
  micros := floor(now * 1000)::bigint;
  if not within then
    answer := set_config('lock_timeout', patience::text, true);
    if not durable then answer := set_config('synchronous_commit', 'off', true); end if;
  end if;
  if cardinality(locked) > 0 then
    perform from signalbox.numbers(locked) k,
      lateral (select from signalbox.data s where s.id = k.id for no key update) d;
  end if;
  if is_batch then
    -- Those that find a key free, or are the only request for it, are one statement.
    with o as materialized (
      select o.place, o.kind, o.id, o.number, o.lease, coalesce(nullif(o.label, ''), label) as label, k.id as row_id
        from unnest(kinds, names, ids, numbers, leases, labels) with ordinality
            o(kind, name, id, number, lease, label, place),
          lateral (select k.id from signalbox.keys k where k.name = o.name order by k.id desc limit 1) k
    ), w as (
      update signalbox.data d set
          version = greatest(d.version, micros) + 1, changes = d.changes + 1,
          queue = case when o.kind = 1 then array[row(
            o.id, null, session, host, pid, o.label, 2, now + o.lease, o.lease, greatest(d.version, micros) + 1, now,
            null)::signalbox.request] end
        from o
        where d.id = o.row_id and case o.kind
          when 1 then d.queue is null and d.xmax = 0
          when 2 then cardinality(d.queue) = 1 and (d.queue[1]).id = o.id and (d.queue[1]).number = o.number
            and (d.queue[1]).phase = 2 and (d.queue[1]).expires > now
        end
        returning o.place, o.kind, d.version, d.changes, d.id
    )
    select array_agg(w.place), array_agg(case w.kind when 1 then w.version else 1 end),
        coalesce(array_agg(w.id) filter (where w.changes >= 200), '{}')
      into done_places, done_answers, worn from w;
    for i in 1 .. coalesce(cardinality(done_places), 0) loop
      done[done_places[i]] := done_answers[i];
    end loop;
  end if;
  for i in 1 .. cardinality(kinds) loop
    if is_batch then
      if done[i] is not null then
        answers := answers || done[i] || ',';
        continue;
      end if;
      if done <> '{}' then
        -- Rows are locked by now that may come behind this one. So it is not waited for.
        perform from signalbox.data d
          where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
          for no key update skip locked;
        if not found and exists (select from signalbox.numbers(names[i:i])) then
          answers := answers || '"again",';
          continue;
        end if;
      end if;
    end if;
    kind := kinds[i];
    more := null;
    answer := null;
    is_simple := kind > 0 and kind <= 5;
    if kind < 0 then
      kind := - kind;
      more := mores -> (i - 1);
      is_simple := kind <= 5 and not more ? 'claims';
    end if;
    if is_simple then
      -- One exclusive claim: what comes up most is one statement. It does nothing unless all is as it has to be, and
      -- then the lock table decides. A row is bound to a transaction only if another one has locked it.
      case kind
        when 1 then
          -- The key is free.
          update signalbox.data d set
              version = greatest(d.version, micros) + 1, changes = d.changes + 1,
              queue = array[row(
                ids[i], null, session, host, pid, coalesce(nullif(labels[i], ''), label), 2, now + leases[i],
                leases[i], greatest(d.version, micros) + 1, now, null)::signalbox.request]
            where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
              and d.queue is null and d.xmax = 0
            returning d.version::text, d.changes, d.id into answer, changes, row_id;
          if answer is null and lives[i] > 0 then
            -- Its holder lives, and so does the next.
            update signalbox.data d set
                version = greatest(d.version, micros), changes = d.changes + 1,
                queue = d.queue || row(
                  ids[i], null, session, host, pid, coalesce(nullif(labels[i], ''), label), 0, now + lives[i],
                  leases[i], 0, now, null)::signalbox.request
              where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
                and (d.queue[1]).phase = 2 and (d.queue[1]).expires > now and (d.queue[1]).claims is null
                and coalesce((d.queue[2]).expires > now, true) and d.xmax = 0
                and not exists (select from unnest(d.queue) q where q.id = ids[i])
              returning d.changes, d.id, format('["queued",%s,%s,%s,%s,%s,%s,%s]', cardinality(d.queue) - 1,
                least((d.queue[1]).expires - now + (cardinality(d.queue) - 1) * 50, hears[i])::bigint,
                to_json((d.queue[1]).session), to_json((d.queue[1]).host), (d.queue[1]).pid,
                coalesce(to_json((d.queue[1]).label)::text, 'null'), (now - (d.queue[1]).since)::bigint)
              into changes, row_id, answer;
          elsif answer is null then
            select '"busy"' into answer from signalbox.data d
              where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
                and (d.queue[1]).phase = 2 and (d.queue[1]).expires > now and (d.queue[1]).claims is null
                and coalesce((d.queue[2]).expires > now, true)
                and not exists (select from unnest(d.queue) q where q.id = ids[i]);
          end if;
        when 2 then
          -- It holds the key, and no other waits, or one that lives.
          update signalbox.data d set
              version = greatest(d.version, micros), changes = d.changes + 1,
              queue = case when cardinality(d.queue) > 1 then row(
                  (d.queue[2]).id, null, (d.queue[2]).session, (d.queue[2]).host, (d.queue[2]).pid, (d.queue[2]).label,
                  1, now + 1000, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request
                || d.queue[3:] end
            where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
              and (d.queue[1]).id = ids[i] and (d.queue[1]).number = numbers[i]
              and (d.queue[1]).phase = 2 and (d.queue[1]).expires > now
              and (cardinality(d.queue) = 1 or d.xmax = 0
                and (d.queue[2]).phase = 0 and (d.queue[2]).expires > now and (d.queue[2]).claims is null
                and (d.queue[2]).session is not null and coalesce((d.queue[3]).expires > now, cardinality(d.queue) = 2))
            returning d.changes, d.id, '1', format('["wake",%s,%s,%s],',
              to_json((d.queue[1]).session), to_json((d.queue[1]).id), to_json(d.name))
            into changes, row_id, answer, one_told;
          if answer is not null and one_told not like '["wake",,%' then told := told || one_told; end if;
        when 3 then
          update signalbox.data d set
              version = greatest(d.version, micros), changes = d.changes + 1,
              queue[1].expires = now + leases[i], queue[1].lease = leases[i]
            where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
              and (d.queue[1]).id = ids[i] and (d.queue[1]).number = numbers[i]
              and (d.queue[1]).phase = 2 and (d.queue[1]).expires > now
            returning '1', d.changes, d.id into answer, changes, row_id;
        when 5 then
          -- The key is reserved for it.
          update signalbox.data d set
              version = greatest(d.version, micros) + 1, changes = d.changes + 1,
              queue[1].phase = 2, queue[1].expires = now + leases[i], queue[1].lease = leases[i],
              queue[1].number = greatest(d.version, micros) + 1
            where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
              and (d.queue[1]).id = ids[i] and (d.queue[1]).phase = 1 and d.xmax = 0
            returning d.version::text, d.changes, d.id into answer, changes, row_id;
        when 4 then
          -- It holds the key, and no other waits.
          update signalbox.data d set
              version = greatest(d.version, micros) + 1, changes = d.changes + 1,
              queue[1].expires = now + leases[i], queue[1].lease = leases[i],
              queue[1].number = greatest(d.version, micros) + 1
            where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
              and cardinality(d.queue) = 1 and (d.queue[1]).id = ids[i] and (d.queue[1]).number = numbers[i]
              and (d.queue[1]).phase = 2 and (d.queue[1]).expires > now and d.xmax = 0
            returning format('["kept",%s]', d.version), d.changes, d.id into answer, changes, row_id;
          if answer is null then
            -- The next one lives: the key is reserved for it, and the following request enters the queue.
            update signalbox.data d set
                version = greatest(d.version, micros), changes = d.changes + 1,
                queue = row(
                    (d.queue[2]).id, null, (d.queue[2]).session, (d.queue[2]).host, (d.queue[2]).pid, (d.queue[2]).label,
                    1, now + 1000, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request
                  || d.queue[3:] || row(
                    more ->> 'next', null, session, host, pid, coalesce(nullif(labels[i], ''), label), 0, now + lives[i],
                    leases[i], 0, now, null)::signalbox.request
              where d.id = (select k.id from signalbox.keys k where k.name = names[i] order by k.id desc limit 1)
                and (d.queue[1]).id = ids[i] and (d.queue[1]).number = numbers[i]
                and (d.queue[1]).phase = 2 and (d.queue[1]).expires > now and d.xmax = 0
                and (d.queue[2]).phase = 0 and (d.queue[2]).expires > now and (d.queue[2]).claims is null
                and (d.queue[2]).session is not null and coalesce((d.queue[3]).expires > now, cardinality(d.queue) = 2)
                and not exists (select from unnest(d.queue) q where q.id = more ->> 'next')
              returning d.changes, d.id,
                format('["queued",%s,%s]', cardinality(d.queue) - 1,
                  least(1000 + (cardinality(d.queue) - 1) * 50, hears[i])::bigint),
                format('["wake",%s,%s,%s],',
                  to_json((d.queue[1]).session), to_json((d.queue[1]).id), to_json(d.name))
              into changes, row_id, answer, one_told;
            if answer is not null then told := told || one_told; end if;
          end if;
      end case;
      if answer is not null then
        if changes >= 200 then worn := worn || row_id; end if;
        if more is null then
          answers := answers || answer || ',';
          continue;
        end if;
      end if;
    end if;
    claims := null;
    if answer is null and more ? 'claims' then
      claims := array(
        select row(c.name, c.mode, c.permits, c.most, c.key)::signalbox.claim
          from jsonb_array_elements(more -> 'claims') with ordinality j(claim, place),
            jsonb_to_record(j.claim) c(name text, mode int, permits int, most int, key text)
          order by j.place);
    elsif answer is null and names[i] <> '' then
      claims := array[row(names[i], 1, null, null, null)::signalbox.claim];
    end if;
    if kind = 8 and cardinality(claims) = 1 then
      -- Most often the key is free, or its holder and the next one live: there is nothing to serve.
      select '0' into answer where not exists (
        select from signalbox.data d
          where d.id = (select k.id from signalbox.keys k where k.name = (claims[1]).name order by k.id desc limit 1)
            and cardinality(d.queue) > 0
            and not ((d.queue[1]).phase > 0 and (d.queue[1]).expires > now and (d.queue[1]).claims is null
              and (d.queue[1]).session is not null and coalesce((d.queue[2]).expires > now, cardinality(d.queue) = 1)));
    end if;
    if answer is null and kind in (1, 2, 5) and cardinality(claims) > 1 then
      decided := signalbox.decide_wide(kind, session, host, pid, coalesce(nullif(labels[i], ''), label), ids[i],
        numbers[i], leases[i], now, claims);
      answer := decided.answer;
      if answer is not null then worn := worn || decided.worn; end if;
    end if;
    if answer is null and kind <= 10 then
      decided := signalbox.decide_lock(kind, session, host, pid, coalesce(nullif(labels[i], ''), label), ids[i],
        more ->> 'next', numbers[i], leases[i], lives[i], hears[i], claims);
      answer := decided.answer;
      told := told || decided.told;
      made := made + decided.made;
      worn := worn || decided.worn;
    end if;
    if kind <= 10 then
      if more ? 'read' and answer ~ '^\d+$' then
        answer := format('["held",%s,%s]', answer, signalbox.read_all(
          array(select jsonb_array_elements_text(more -> 'read' -> 'names')),
          array(select jsonb_array_elements_text(more -> 'read' -> 'marks')::uuid)));
      end if;
    elsif kind = 11 then
      answer := signalbox.read_all(
        array(select jsonb_array_elements_text(more -> 'read' -> 'names')),
        array(select jsonb_array_elements_text(more -> 'read' -> 'marks')::uuid));
    elsif kind = 12 then
      guard := case when ids[i] <> '' then names[i] end;
      select
          array(select jsonb_array_elements_text(more -> 'wanted')),
          array(select jsonb_array_elements_text(more -> 'expected')),
          array(select jsonb_array_elements_text(more -> 'versions')::bigint),
          array(select jsonb_array_elements_text(more -> 'written')),
          array(select jsonb_array_elements_text(more -> 'contents')),
          array(select jsonb_array_elements_text(more -> 'deleted')),
          array(select jsonb_array_elements_text(more -> 'marks')::uuid)
        into wanted, expected, versions, written_here, contents, deleted, marks;
      decided := signalbox.commit_values(guard, ids[i], numbers[i], wanted, expected, versions, written_here, contents,
        deleted, marks, leases[i], waits, now);
      answer := decided.answer;
      made := made + decided.made;
      worn := worn || decided.worn;
      if answer like '["committed"%' then
        written := written || written_here || deleted;
        if guard is not null and (more -> 'release')::boolean then
          released := null;
          if cardinality(claims) > 1 then
            decided := signalbox.decide_wide(2, session, host, pid, label, ids[i], numbers[i], 0, now, claims);
            released := decided.answer;
          else
            update signalbox.data d set
                version = greatest(d.version, micros), changes = d.changes + 1, queue = null
              where d.id = (select k.id from signalbox.keys k where k.name = guard order by k.id desc limit 1)
                and cardinality(d.queue) = 1 and (d.queue[1]).id = ids[i] and (d.queue[1]).number = numbers[i]
              returning '1' into released;
          end if;
          if released is null then
            decided := signalbox.decide_lock(2, session, host, pid, label, ids[i], null, numbers[i], 0, 0, 0, claims);
            told := told || decided.told;
          end if;
        end if;
      end if;
    elsif kind = 13 then
      insert into signalbox.watchers as w (name, session, until)
        values (names[i], ids[i], to_timestamp((now + leases[i]) / 1000))
        on conflict on constraint watchers_pkey do update set until = excluded.until;
      made := made + 1;
      answer := 0;
    elsif kind = 14 then
      delete from signalbox.watchers w where w.name = names[i] and w.session = ids[i];
      answer := 0;
    end if;
    answers := answers || answer || ',';
  end loop;
  if written is not null then
    select told || coalesce(string_agg(format('["changed",%s,%s],', to_json(w.session), to_json(w.name)), ''), '')
      into told from signalbox.watchers w where w.name = any(written) and w.until > to_timestamp(now / 1000);
  end if;
  if told <> '' and not durable and not within and pg_notification_queue_usage() < 0.9 then
    -- Transactions that notify commit one by one, so none does that waits for the disk.
    perform pg_notify('signalbox ' || (e.value ->> 1), (e.value ->> 0) || ' ' || (e.value ->> 2))
      from json_array_elements(('[' || rtrim(told, ',') || ']')::json) e where e.value ->> 1 <> session;
  end if;
  if worn <> '{}' and not within then perform signalbox.move_rows(worn); end if;
  if made > 0 and not within then swept := signalbox.sweep(2 * made + 1, swept); end if;
  return format('[[%s],[%s],[%s]]', rtrim(answers, ','), rtrim(told, ','), array_to_string(swept, ','));
end $$;
