import type { HistoryKind } from '../support/table-histories.js'
import type { Way } from '../support/postgres/table-port.js'
import type { WAYS } from '../support/redis/table-port.js'

/** A mistake in a port of the lock table. The comparison must find it. */
interface PortMutant<W> {
  readonly description: string
  /** A part that occurs once in the text of the port, and its replacement. */
  readonly right: string
  readonly wrong: string
  /** The way of running the port, and the source of the operations that find the mistake: histories or the search. */
  readonly way: W
  readonly kind: HistoryKind | 'search'
  /** Seed of the first history, for mistakes that few histories find. Default: 1 */
  readonly first?: number
}

const inTable = { way: 'function', kind: 'any' } as const

export const luaMutants: readonly PortMutant<keyof typeof WAYS>[] = [
  {
    description: 'a look at a key drops its expired holders',
    right: 'if now < request.expires then stale[#stale + 1] = request end',
    wrong: 'stale[#stale + 1] = request',
    way: 'function',
    kind: 'together',
    first: 1_000_552,
  },
  {
    description: 'the claim window is five times as long',
    right: 'setExpiry(request, now + 1000)',
    wrong: 'setExpiry(request, now + 5000)',
    ...inTable,
  },
  {
    description: 'a session does not learn that its request was dropped',
    right: "  forget(request) notify('lost', request.id)",
    wrong: '  forget(request)',
    ...inTable,
  },
  {
    description: 'a holder does not learn that others wait',
    right: "if not vote then notify('contended', id) end",
    wrong: '',
    ...inTable,
  },
  {
    description: 'silent waiters stay where others were granted',
    right: 'if idle then return end local passed',
    wrong: 'if true then return end local passed',
    ...inTable,
  },
  {
    description: 'a waiter loses its place as soon as it is silent',
    right: 'math.max(request.lease - 5000, 0) or 0',
    wrong: '0 or 0',
    ...inTable,
  },
  {
    description: 'a waiter checks in when it likes',
    right: 'again < math.huge and math.max(0, math.ceil(again)) or -1',
    wrong: '999999',
    ...inTable,
  },
  {
    description: 'the first waiter never checks in',
    right: 'if first then again = math.min(again, nearest) end',
    wrong: '',
    ...inTable,
  },
  {
    description: 'a reserved request is not woken',
    right: "          notify('wake', request.id)\n",
    wrong: '',
    ...inTable,
  },
  {
    description: 'a reservation is not looked after',
    right: "if not begins(request.id, SESSION .. '.') then hints[#hints + 1] = 'reserved ' .. key end",
    wrong: '',
    ...inTable,
  },
  {
    description: 'a sign covers nothing',
    right: 'if not request.alone then',
    wrong: 'if false then',
    ...inTable,
  },
  {
    description: 'a sign covers for the whole lease',
    right: 'lastSign(request.id) + math.min(request.lease, 5000)',
    wrong: 'lastSign(request.id) + request.lease',
    ...inTable,
  },
  { description: 'a sign serves nothing', right: 'not pcall(sweep, { claim })', wrong: 'false', ...inTable },
  {
    description: 'there is one permit too many',
    right: 'ahead.permits + claim.permits <= claim.max',
    wrong: 'ahead.permits + claim.permits <= claim.max + 1',
    ...inTable,
  },
  {
    description: 'a reader joins a writer',
    right: "return claim.mode == 'shared' and first.mode == 'shared'",
    wrong: "return claim.mode == 'shared'",
    ...inTable,
  },
  {
    description: 'permits have different maxima',
    right: "other.mode == 'permits' and other.max ~= claim.max",
    wrong: 'false',
    ...inTable,
  },
  {
    description: 'a release needs no number',
    right: "request.phase == 'held' and request.number == granted then remove(",
    wrong: "request.phase == 'held' then remove(",
    ...inTable,
  },
  {
    description: 'a renewal changes the held key only',
    right: 'request.lease, request.expires = lease, now + lease',
    wrong: 'request.lease = lease',
    ...inTable,
  },
  {
    description: 'a grant is yielded to silent waiters',
    right: "if other.phase == 'waiting' and not silent(other) then awaited",
    wrong: "if other.phase == 'waiting' then awaited",
    ...inTable,
  },
  {
    description: 'each extended grant is reported as uncontended',
    right: 'alone and 1 or 0',
    wrong: '1',
    ...inTable,
  },
  {
    description: 'a downgrade wakes no readers',
    right: 'append(request) serveAll(claims) return 1',
    wrong: 'append(request) return 1',
    way: 'function',
    kind: 'search',
  },
  {
    description: 'the other keys of a stolen grant stay free',
    right: 'for _, other in ipairs(taken) do serveAll(other.claims) end',
    wrong: '',
    way: 'function',
    kind: 'any',
  },
  {
    description: 'an expired grant that checks in stays',
    right: "        drop(request) return { 'gone' }",
    wrong: "        return { 'gone' }",
    ...inTable,
  },
  {
    description: 'the age of a holder begins again with each extension',
    right: 'number = granted, since = tonumber(since), details = details }',
    wrong: 'number = granted, since = now, details = details }',
    ...inTable,
  },
  {
    description: 'a lock is free although a request waits for it',
    right: 'if frontOf(claim.key)[1] or seen(claim.held) then return false end',
    wrong: 'if seen(claim.held) then return false end',
    ...inTable,
  },
  {
    description: 'a lock is free although its key is held',
    right: 'if frontOf(claim.key)[1] or seen(claim.held) then return false end',
    wrong: 'if frontOf(claim.key)[1] then return false end',
    ...inTable,
  },
  {
    description: 'the first entries of a queue lack one that was added',
    right: 'front[#front + 1] = text',
    wrong: '',
    ...inTable,
  },
  {
    description: 'a request before others counts as the last one of a queue',
    right: 'if not isLast then fronts[key] = nil',
    wrong: 'if false then fronts[key] = nil',
    ...inTable,
  },
  {
    description: 'a request of several keys is looked for in the queue of one',
    right: "if claims[1].mode == 'exclusive' and not claims[2] then local front",
    wrong: "if claims[1].mode == 'exclusive' then local front",
    ...inTable,
  },
  {
    description: 'a held key has the text that it had before it was freed',
    right: 'texts[key] = false',
    wrong: '',
    ...inTable,
  },
  {
    description: 'a function keeps the records of the call before',
    right: 'ungrouped, latest, forgotten = {}, {},',
    wrong: 'ungrouped, latest, forgotten = loaded or {}, fronts or {},',
    ...inTable,
  },
  {
    description: 'a function keeps the texts of held keys of the call before',
    right: 'vote, texts = {}, nil, nil, nil, {}',
    wrong: 'vote, texts = {}, nil, nil, nil, texts or {}',
    ...inTable,
  },
  {
    description: 'a function keeps the hints of the call before',
    right: 'vote, texts = {}, nil, nil, nil, {}',
    wrong: 'vote, texts = hints or {}, nil, nil, nil, {}',
    ...inTable,
  },
  {
    description: 'no waiter is served when a request is removed',
    right: 'if recorded or freed then serveAll(claims) end',
    wrong: '',
    ...inTable,
  },
  {
    description: 'a waiter blocks others for a millisecond more',
    right: '  request.expires = now + life',
    wrong: '  request.expires = now + life + 1',
    ...inTable,
  },
  {
    description: 'silent requests block',
    right: 'if not silent(other) then add(ahead, its)',
    wrong: 'if true then add(ahead, its)',
    ...inTable,
  },
]

const alone = { way: 'alone', kind: 'any' } as const
const crowded = { way: 'alone', kind: 'crowded' } as const
const together = { way: 'together', kind: 'any' } as const

export const sqlMutants: readonly PortMutant<Way>[] = [
  {
    description: 'the claim window is five times as long',
    right: 'q_expires[r] := now + 1000;',
    wrong: 'q_expires[r] := now + 5000;',
    ...alone,
  },
  {
    description: 'the claim window after a release is five times as long',
    right:
      '1, now + 1000, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request || d.queue[3:] where d.id',
    wrong:
      '1, now + 5000, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request || d.queue[3:] where d.id',
    ...crowded,
  },
  {
    description: 'the claim window after a yield is five times as long',
    right:
      '1, now + 1000, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request || d.queue[3:] ||',
    wrong:
      '1, now + 5000, (d.queue[2]).lease, 0, (d.queue[2]).since, null)::signalbox.request || d.queue[3:] ||',
    ...crowded,
  },
  {
    description: 'the check-in after a yield is 99 seconds late',
    right: 'then least(1000, heartbeat)',
    wrong: 'then least(100000, heartbeat)',
    ...crowded,
  },
  {
    description: 'the first waiter checks in late',
    right: 'when 2 then least((d.queue[1]).expires - now, heartbeat)',
    wrong: 'when 2 then least((d.queue[1]).expires - now + 500, heartbeat)',
    ...crowded,
  },
  {
    description: 'a waiter loses its place as soon as it is silent',
    right: 'greatest(q_lease[r] - 5000, 0)',
    wrong: '0',
    ...alone,
  },
  {
    description: 'a session does not learn that its request was dropped',
    right: `          one := q[r]; notices := notices || format('["lost",%s,%s,%s],', to_json(one.session), to_json(one.id), to_json(one.first)); f :=`,
    wrong: '          one := q[r]; f :=',
    ...alone,
  },
  {
    description: 'a reserved request is not woken',
    right: 'if r is distinct from appended then',
    wrong: 'if false then',
    ...alone,
  },
  {
    description: 'a release sends the wrong hint',
    right: `cardinality(d.queue), '1', format('["wake"`,
    wrong: `cardinality(d.queue), '1', format('["lost"`,
    ...crowded,
  },
  {
    description: 'the first waiter never checks in',
    right: 'case when q_phase[r] = 1 then 0 else least(next_check, heartbeat) end',
    wrong: 'case when q_phase[r] = 1 then 0 else heartbeat end',
    ...alone,
  },
  {
    description: 'a box does not learn that a grant expired before its check-in',
    right: `notices := format('["lost",%s,%s,%s],', to_json(q[r].session), to_json(q_id[r]), to_json(q[r].first));`,
    wrong: '',
    ...alone,
  },
  {
    description: 'a check-in keeps a waiter for its lease',
    right: 'case when q_phase[r] = 2 then lease else ttl end',
    wrong: 'lease',
    ...alone,
  },
  {
    description: 'a check-in serves nothing',
    right: 'if q_phase[r] = 0 then todo := mine; end if;',
    wrong: '',
    ...alone,
  },
  {
    description: 'a downgrade wakes no readers',
    right: 'q[r] := one; q_dirty[r] := true; todo := mine; answer := 1;',
    wrong: 'q[r] := one; q_dirty[r] := true; answer := 1;',
    way: 'alone',
    kind: 'search',
  },
  {
    description: 'permits have different maxima',
    right: 'if e_max[e] <> c.max_permits then',
    wrong: 'if false then',
    ...alone,
  },
  {
    description: 'a grant is yielded to silent waiters',
    right: 'awaited := awaited or (q_phase[s] = 0 and now < q_expires[s]);',
    wrong: 'awaited := awaited or q_phase[s] = 0;',
    ...alone,
  },
  {
    description: 'silent waiters stay where others were granted',
    right: 'if not q_gone[s] and q_phase[s] = 0 and now >= q_expires[s] then',
    wrong: 'if false then',
    ...alone,
  },
  {
    description: 'a sign covers for the whole lease',
    right: 'where s.session = session) + least(lease, 5000)',
    wrong: 'where s.session = session) + lease',
    ...alone,
  },
  {
    description: 'permits that are granted together are one too many',
    right: 'sum((e.claims[1]).permits) + claim.permits <= claim.max_permits',
    wrong: 'sum((e.claims[1]).permits) + claim.permits <= claim.max_permits + 1',
    way: 'alone',
    kind: 'together',
  },
  {
    description: 'a permit is released by any number',
    right: 'bool_or(e.id = id and e.number = number)',
    wrong: 'bool_or(e.id = id)',
    way: 'alone',
    kind: 'together',
  },
  {
    description: 'a request that waits is granted together with others',
    right: '((d.queue[1]).session is null or (d.queue[1]).phase = 1)',
    wrong: '((d.queue[1]).session is null or (d.queue[1]).phase < 2)',
    ...together,
  },
  {
    description: 'a grant that many are granted with has no lease',
    right: '2, now + y.lease, y.lease, y.number, now,',
    wrong: '2, now + y.lease, 0, y.number, now,',
    ...together,
  },
  {
    description: 'an expired grant is released',
    right: 'and (d.queue[1]).number = numbers[c.place] and (d.queue[1]).expires > now',
    wrong: 'and (d.queue[1]).number = numbers[c.place]',
    ...together,
  },
  {
    description: 'a sign does not wake a request that was passed over',
    right: 'f.until > now and f.is_free and f.is_own',
    wrong: 'f.until > now and f.place = 1 and f.is_own',
    ...crowded,
  },
  {
    description: 'a sign serves only the requests that it names',
    right: 'f.until > now and f.is_free and f.is_own',
    wrong: 'f.until > now and f.is_free and f.is_named',
    ...alone,
    first: 1_000_018,
  },
  {
    description: 'a check-in does not see waiters that are not in the row',
    right: 'if not awaited and w_rest[w] and g >= w_tail[w] then',
    wrong: 'if false then',
    ...crowded,
  },
  {
    description: 'a sign serves nothing that has expired',
    right: 'select f.name from found f where f.until <= now and (f.phase > 0 or',
    wrong: 'select f.name from found f where false and (f.phase > 0 or',
    ...alone,
  },
  {
    description: 'a sign comes at the end of the last holder',
    right: '(select ceil(min(f.held_until) - now)',
    wrong: '(select ceil(max(f.held_until) - now + 7)',
    ...crowded,
  },
  {
    description: 'a free key is granted without a lease',
    right: '2, now + lease, lease, greatest(d.version, floor',
    wrong: '2, now + lease, 0, greatest(d.version, floor',
    ...crowded,
  },
  {
    description: 'no waiter is served when the holder is cancelled',
    right: '(d.queue[1]).id <> id and (d.queue[2]).id <> id and',
    wrong: '',
    ...crowded,
  },
  {
    description: 'a repeated request queues twice',
    right: 'and not exists (select from unnest(d.queue) q where q.id = id)',
    wrong: '',
    ...crowded,
  },
  {
    description: 'a forced release needs no number',
    right: 'when 9 then q_phase[i] <> 2 or q_number[i] <> number else',
    wrong: 'when 9 then q_phase[i] <> 2 else',
    ...alone,
  },
]
