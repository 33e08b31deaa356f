import { CLAIM_WINDOW, WAITER_LIFE } from '../../engine/contract.js'
import { LOOK_STAGGER } from '../../engine/lock-table.js'
import { heldStrings } from './held-strings.js'
import { LAYOUT } from './names.js'

/**
 * The lock table and the store's commit as a Redis script: the port of `engine/lock-table.ts` and `engine/commit.ts`, held equal
 * to them by a differential test. One call carries out a list of operations at one moment of the server's clock.
 *
 * What differs from the original is where a grant is kept. The held key itself, a plain string with an expiry, is the
 * grant of an exclusive lock: that is what foreign `SET key value NX PX` clients see and respect, and what makes an
 * uncontended lock cheap. A request has a record beside it, and an entry in the sorted queue of each of its keys, only
 * from when it has to wait, is shared or takes permits, or when somebody has met its held key and waits behind it.
 * The held key stays the truth for such a record: where the string is gone or another's, the record is dropped.
 *
 * KEYS: the counter, the queues and the requests of this slot, then the keys that operations name, in their order, and last
 * those that are only read beside them. ARGV: the own session, then the words of the one operation; or of several one after
 * the other as one JSON array, because hundreds of arguments would cost client and server several times what it takes to
 * write and to read that one, and with it what own held keys tell about their holder that tell nothing else. A dot before the name of an operation says
 * that it is about a request of this session with one exclusive claim and nothing to read: then ids come without the
 * session, and the claim is no more than its held key.
 *
 * The answer is one item an operation, and last the hints for this session; or just the number that one operation answers.
 */
export function tableScript({ heldKeys, clock, light }: ScriptParts = STRINGS): string {
  const begin = [BEGIN, light, 'if not stamp then', clock, 'micros = tonumber(stamp)', 'end'].join('\n')
  const levels = [begin, `${COMMON}\n${heldKeys}`, RECORDS, DECISIONS, OPERATIONS]
  // A function that is made looks for each local that it uses through all those of the level that it is made in, and finds
  // those of outer levels at once: in one level most of a call's time would go into that.
  return levels.join('\nreturn (function()\n') + '\nend)()'.repeat(levels.length - 1)
}

/** What a script is made of beside the table itself. */
export interface ScriptParts {
  /** How held keys are read and written. */
  readonly heldKeys: string
  /** Sets `stamp`, the digits of the time in microseconds. */
  readonly clock: string
  /** Carries out what it can before the table is made; may be nothing. */
  readonly light: string
}

/** No number is greater, and no key expires later: up to here all whole numbers are exact. */
const NEVER = Number.MAX_SAFE_INTEGER
/** The place of all holders in a queue, before all waiters; as Lua has it. */
const FRONT = "'0000000000000000'"
/** How often the first waiter behind a foreign holder looks: milliseconds. */
const FOREIGN_LOOK = 20

const BEGIN = String.raw`
local call, try, format, find, sub = redis.call, redis.pcall, string.format, string.find, string.sub
local NUMBERS, QUEUES, REQUESTS = KEYS[1], KEYS[2], KEYS[3]
local SESSION, WORDS, position, MEMBER = ARGV[1], ARGV, 2, nil
if not ARGV[4] then WORDS, position, MEMBER = cjson.decode(ARGV[2]), 1, ARGV[3] end
local LAST = #WORDS
-- How many of the keys were named until now.
local named = 3
local answers = {}
-- What this session is told beside that.
local hints = {}
local CHANNELS, PUBLISH
-- The last number that was given, and the one that the counter has.
local number, written
-- How long what comes before a lock key is in the name of its held key; nil until somebody needs it.
local prefix
-- The time in microseconds: as text, and as a number.
local stamp, micros
local idle`

/** It is as long as what comes before the layout's names. */
const prefixKnown = `prefix = prefix or #NUMBERS:match('^(.*)${LAYOUT}{')`

/** The server's clock. */
export const serverClock = String.raw`
local time = call('TIME')
stamp = time[1] .. sub('00000' .. time[2], -6)`

/** Where sessions are told of what concerns them. The tag of a slot is empty where there is no Cluster. */
const channelsKnown = `
if not CHANNELS then
  CHANNELS = sub(NUMBERS, 1, -8) .. 'session:'
  PUBLISH = sub(NUMBERS, -10) == '{}:numbers' and 'PUBLISH' or 'SPUBLISH'
end`

/**
 * The short way: one-key exclusive locks as plain strings, which nobody waits for or which go from one of those who wait to
 * the next. Redis compiles a script once but makes the functions in it anew for every call, which costs more than such an
 * operation; so there are none up to here, and what this can't do, or what fails here, is left to the table, with nothing
 * done. What this does is what the table would do.
 */
const LIGHT = String.raw`
while position <= LAST do
  local from, least = position, nil
  local kind = WORDS[from]
  if kind == 'ballot' then
    least = tonumber(WORDS[from + 2])
    from = from + 3
    kind = WORDS[from]
  end
  if kind ~= '.enqueue' and kind ~= '.release' and (least or kind ~= '.renew' and kind ~= '.extendOrYield' and kind ~= '.poll') then break end
  local held, id, after = KEYS[named + 1], SESSION .. '.' .. WORDS[from + 1], nil
  if idle == nil then
    local size = try('ZLEXCOUNT', QUEUES, '-', '+')
    if type(size) == 'table' then break end
    idle = size == 0
  end
  -- The first entries of its queue, if there is one.
  local head, entries
  if not idle then
    ${prefixKnown}
    head = #held - prefix .. ':' .. sub(held, prefix + 1) .. ':'
    entries = call('ZRANGEBYLEX', QUEUES, '[' .. head, '(' .. sub(head, 1, -2) .. ';', 'LIMIT', 0, 3)
    if not entries[1] then entries = nil elseif least or kind == '.renew' then break end
  end
  if not entries and kind == '.poll' then break end
  local text
  if entries or kind ~= '.enqueue' then
    text = try('GET', held)
    if type(text) == 'table' then break end
    if kind == '.poll' then
      if text then break end
    elseif kind ~= '.enqueue' then
      local mark = 'signalbox/1 ' .. id .. ' ' .. WORDS[from + 2] .. ' '
      if not text or find(text, mark, 1, true) ~= 1 then break end
    end
  end
  if not stamp and (entries or kind ~= '.release' and kind ~= '.renew') then
${serverClock}
    micros = tonumber(stamp)
  end

  -- Who stands first and who comes after, with what is to be known of them before anything is changed.
  local now, first, second, life, hear
  local isBusy = false
  if entries then
    now = math.floor(micros / 1000)
    local records = {}
    for i, entry in ipairs(entries) do
      local done, record = pcall(cmsgpack.unpack, try('HGET', REQUESTS, sub(entry, #head + 17)))
      if not done or type(record) ~= 'table' or now >= record.expires then records = nil break end
      records[i] = record
    end
    if not records then break end
    first, second = records[1], records[2]
    if first.claims[2] or first.claims[1].mode ~= 'exclusive' then break end
    -- Until when something is kept that is going to be saved.
    local latest = now + ${CLAIM_WINDOW}
    if kind == '.poll' then
      if first.id ~= id or first.phase ~= 'reserved' then break end
      latest = now + tonumber(WORDS[from + 2])
    elseif kind == '.enqueue' then
      if call('HGET', REQUESTS, id) then break end
      if first.phase == 'held' then
        local mark = 'signalbox/1 ' .. first.id .. ' ' .. format('%.0f', first.number) .. ' '
        if not text or find(text, mark, 1, true) ~= 1 then break end
      elseif first.phase ~= 'reserved' or text then break end
    else
      if first.id ~= id or first.phase ~= 'held' or first.number ~= tonumber(WORDS[from + 2]) then break end
      if not second or second.phase ~= 'waiting' or second.claims[2] or second.claims[1].mode ~= 'exclusive' then break end
    end
    if kind == '.enqueue' or kind == '.extendOrYield' then
      life, hear = WORDS[from + (kind == '.extendOrYield' and 5 or 3)]:match('^(%d+) (%d+)$')
      life, hear = tonumber(life), tonumber(hear)
      isBusy = life == 0
      if isBusy and kind == '.extendOrYield' then break end
      local asked = tonumber(WORDS[from + (kind == '.extendOrYield' and 4 or 2)])
      latest = math.max(latest, now + life + math.max(asked - ${WAITER_LIFE}, 0))
    end
    if not isBusy and now + call('PTTL', REQUESTS) < latest then break end
  end

  if kind == '.renew' then
    call('PEXPIRE', held, WORDS[from + 3])
    answers[#answers + 1] = 1
    after = from + 4
  elseif kind == '.release' and not entries then
    call('DEL', held)
    answers[#answers + 1] = 1
    after = from + 3
  elseif isBusy then
    answers[#answers + 1] = { 'busy' }
    after = from + 5
  else
    local digits
    if kind ~= '.release' then
      if number then number = math.max(number + 1, least or micros)
      else
        local text = try('SET', NUMBERS, least and format('%.0f', least) or stamp, 'GET')
        if type(text) == 'table' then break end
        local counted = tonumber(text or 0)
        if not counted or not (counted >= 0 and counted < ${NEVER}) then
          call('SET', NUMBERS, text)
          break
        end
        written = least or micros
        number = math.max(written, counted + 1)
      end
      digits = number == micros and stamp or format('%.0f', number)
    end
    local lease = WORDS[from + (kind == '.extendOrYield' and 4 or 2)]
    if kind == '.poll' then
      after = from + 4
      local text = 'signalbox/1 ' .. id .. ' ' .. digits .. ' ' .. format('%.0f', first.since) .. ' ' .. first.details
      if try('SET', held, text, 'PX', lease).err then break end
      first.lease = tonumber(lease)
      first.phase, first.number, first.expires = 'held', number, now + first.lease
      if type(try('HSET', REQUESTS, id, cmsgpack.pack(first))) == 'table' then
        call('DEL', held)
        break
      end
      answers[#answers + 1] = number
    else
      after = from + (kind == '.release' and 3 or kind == '.extendOrYield' and 7 or 5)
      local details = WORDS[after - 1]
      if details == '' then details = MEMBER end
      if not entries then
        local kept = kind == '.extendOrYield'
        -- In whole milliseconds since when.
        local text = 'signalbox/1 ' .. id .. ' ' .. digits .. ' ' .. sub(stamp, 1, -4) .. ' ' .. details
        local done = try('SET', held, text, kept and 'XX' or 'NX', 'PX', lease)
        if not done or done.err then break end
        answers[#answers + 1] = kept and { 'kept', number, 1 } or number
      else
        local lock = sub(held, prefix + 1)
        local waiter, entry
        if kind ~= '.release' then
          waiter = {
            id = kind == '.extendOrYield' and SESSION .. '.' .. WORDS[from + 3] or id, lease = tonumber(lease), details = details,
            claims = { { held = held, key = lock, mode = 'exclusive' } }, since = now, phase = 'waiting', number = 0,
            sequence = format('%016.0f', number), expires = now + life,
          }
          entry = head .. waiter.sequence .. waiter.id
          if type(try('ZADD', QUEUES, 0, entry)) == 'table' then break end
        end
        local done
        if kind == '.enqueue' then done = try('HSET', REQUESTS, waiter.id, cmsgpack.pack(waiter))
        else
          second.phase, second.expires = 'reserved', now + ${CLAIM_WINDOW}
          if waiter then
            done = try('HSET', REQUESTS, second.id, cmsgpack.pack(second), waiter.id, cmsgpack.pack(waiter))
          else done = try('HSET', REQUESTS, second.id, cmsgpack.pack(second)) end
        end
        if type(done) == 'table' then
          if waiter then call('ZREM', QUEUES, entry) end
          break
        end
        if kind ~= '.enqueue' then
          call('HDEL', REQUESTS, id)
          call('ZREM', QUEUES, entries[1])
          call('DEL', held)
          local session, wake = second.id:match('^(.*)%.'), 'wake ' .. second.id
          if session == SESSION then hints[#hints + 1] = wake
          else
${channelsKnown}
            try(PUBLISH, CHANNELS .. session, wake)
            hints[#hints + 1] = 'reserved ' .. lock
          end
        end
        if waiter then
          local before = call('ZLEXCOUNT', QUEUES, '[' .. head, '(' .. entry)
          local nearest = (kind == '.extendOrYield' and second or first).expires - now
          local again = math.max(0, math.min(nearest + before * ${LOOK_STAGGER}, hear))
          answers[#answers + 1] = { 'queued', before, math.ceil(again) }
        else answers[#answers + 1] = 1 end
      end
    end
  end
  position, named = after, named + 1
end
if position > LAST then
  if number ~= written then call('SET', NUMBERS, format('%.0f', number)) end
  if not answers[2] and not hints[1] and type(answers[1]) == 'number' then return answers[1] end
  answers[#answers + 1] = hints
  return answers
end`

/** Locks as plain strings, by the server's clock. */
const STRINGS: ScriptParts = { heldKeys: heldStrings, clock: serverClock, light: LIGHT }

const COMMON = String.raw`
${channelsKnown}
-- Stands for a holder that is not ours.
local FOREIGN = '?'
-- What a held key says when several may hold it; by the name of their queues it is known to be ours.
local SHARED = 'signalbox/1 shared ' .. QUEUES

local now = math.floor(micros / 1000)
-- Refuses an operation, if another program keeps something else in the place of the queues: then only values can be read.
local refuse
-- Without any queue there is nothing to look for beside the held keys.
if idle == nil then
  local size = try('ZLEXCOUNT', QUEUES, '-', '+')
  if type(size) == 'table' then refuse = function() error({ unreadable = QUEUES }, 0) end end
  idle = size == 0
end
${prefixKnown}

-- tostring keeps 14 digits only.
local function digits(value) return format('%.0f', value) end

-- Set while an operation is a vote, one of those of several servers: its place in the queues, which is the same on all
-- of them, and the least number of its grant.
local ballot

local function unreadable(name) error({ unreadable = name }, 0) end

local function raise(least)
  if not number then
    local text = try('GET', NUMBERS)
    local counted = type(text) ~= 'table' and tonumber(text or 0)
    if not counted or not (counted >= 0 and counted < ${NEVER}) then unreadable(NUMBERS) end
    number = counted
  end
  number = math.max(number, least)
end

-- The clock keeps numbers rising when the counter was lost, the counter when the clock was set back.
local function nextNumber()
  raise(0)
  number = math.max(number + 1, ballot and ballot.least or micros)
  return number
end

local function place(order) return format('%016.0f', order) end

-- Raises what another client's mistake or a full memory did, to fail this operation alone; and with its name a key of ours
-- in whose place somebody else has put one of another type.
local function must(answer, name)
  if type(answer) == 'table' and answer.err then
    if name and sub(answer.err, 1, 9) == 'WRONGTYPE' then unreadable(name) end
    error({ refused = answer.err }, 0)
  end
  return answer
end

-- The length keeps the queues of keys apart that begin alike.
local function head(key) return #key .. ':' .. key .. ':' end
local function afterLast(front) return '(' .. front:sub(1, -2) .. ';' end

-- What begins the text of a key held by this grant.
local function mark(id, granted) return 'signalbox/1 ' .. id .. ' ' .. (granted and digits(granted) .. ' ' or '') end

local function begins(text, start) return text and text:sub(1, #start) == start end

-- What such a text tells: id, number, since when, details. Nothing for that of a foreign client.
local function told(text) return text:match('^signalbox/1 (%S+) (%d+) (%d+) (.*)$') end`

/** What is kept of requests. */
const RECORDS = String.raw`
local function tell(kind, id)
  local session = id:sub(1, 1) ~= FOREIGN and id:match('^(.*)%.')
  if session == SESSION then hints[#hints + 1] = kind .. ' ' .. id
  elseif session then
    -- Whoever may not publish has done all the same what it tells of, and who is not told looks again by itself.
    try(PUBLISH, CHANNELS .. session, kind .. ' ' .. id)
  end
end

-- Records and queues ------------------------------------------------------------------------------------------------

local loaded = {}
-- The first entries of queues, until they change: a decision looks at them several times.
local fronts = {}

local function load(id)
  if idle then return nil end
  local request = loaded[id]
  if request == nil then
    local text = must(try('HGET', REQUESTS, id), REQUESTS)
    if text then
      local done
      done, request = pcall(cmsgpack.unpack, text)
      if not done or type(request) ~= 'table' then unreadable(REQUESTS) end
    end
    request = request or false
    loaded[id] = request
  end
  return request or nil
end

-- Whether a waiter was not heard of for as long as its entry lives. It blocks no other request, and keeps its place
-- until one goes past it.
local function silent(request) return request.phase == 'waiting' and now >= request.expires end

-- When a request has to be dropped as soon as it is met. In an outage no waiter can be heard: those that try again for
-- as long as this keep their order.
local function overAt(request)
  return request.expires + (request.phase == 'waiting' and math.max(request.lease - ${WAITER_LIFE}, 0) or 0)
end

-- When the last of the requests that were saved is over. What is kept of a holder that is not ours is known by its held
-- key, too, and may never expire.
local latest = 0

local function save(request)
  must(try('HSET', REQUESTS, request.id, cmsgpack.pack(request)), REQUESTS)
  loaded[request.id] = request
  if overAt(request) > latest and not begins(request.id, FOREIGN) then latest = overAt(request) end
end

local function entry(key, request) return head(key) .. request.sequence .. request.id end

-- The requests of a queue from its front: read a few at a time, because most decisions need no more.
local function queue(key)
  local front = head(key)
  local low, high = '[' .. front, afterLast(front)
  local chunk, at, from, size, last = {}, 0, 0, 4, idle
  return function()
    while true do
      at = at + 1
      if at > #chunk then
        if last then return nil end
        chunk = size == 4 and fronts[key] or call('ZRANGEBYLEX', QUEUES, low, high, 'LIMIT', from, size)
        if size == 4 then fronts[key] = chunk end
        last = #chunk < size
        if #chunk == 0 then return nil end
        from, at, size = from + size, 1, 32
      end
      local id = chunk[at]:sub(#front + 17)
      local request = load(id)
      if request then
        for _, claim in ipairs(request.claims) do
          if claim.key == key then return request, claim end
        end
      end
      -- A record that was lost by other hands than ours leaves an entry that nobody could take out.
      call('ZREM', QUEUES, chunk[at])
      fronts[key] = nil
      from = from - 1
    end
  end
end

local function append(request)
  save(request)
  for _, claim in ipairs(request.claims) do
    fronts[claim.key] = nil
    must(try('ZADD', QUEUES, 0, entry(claim.key, request)))
  end
  idle = false
end

local function forget(request)
  call('HDEL', REQUESTS, request.id)
  for _, claim in ipairs(request.claims) do
    fronts[claim.key] = nil
    call('ZREM', QUEUES, entry(claim.key, request))
  end
  loaded[request.id] = false
end

-- Held keys ---------------------------------------------------------------------------------------------------------

local function take(claim, request)
  if claim.mode == 'exclusive' then
    local text = mark(request.id, request.number) .. digits(request.since) .. ' ' .. request.details
    return put(claim.held, text, request.lease)
  end
  put(claim.held, SHARED, math.max(left(claim.held), request.lease))
end

local function extend(claims, lease)
  for _, claim in ipairs(claims) do
    -- What several hold is there as long as any of them may hold it.
    expire(claim.held, claim.mode == 'exclusive' and lease or math.max(lease, left(claim.held)))
  end
end

-- Whether every held key still says that this grant has it.
local function intact(id, granted, claims)
  for _, claim in ipairs(claims) do
    local text = seen(claim.held)
    if claim.mode == 'exclusive' then
      if not begins(text, mark(id, granted)) then return false end
    elseif text ~= SHARED then return false end
  end
  return true
end

-- Puts a holder that is known by its held key only before all others in the queue, where those who wait find it.
local function meet(claim, text)
  local id, granted, since, details = told(text)
  local remaining = left(claim.held)
  local expires = remaining < 0 and ${NEVER} or now + remaining
  if not id then
    id, granted, since, details = FOREIGN .. claim.key, 0, now, ''
    -- A key with 0 ms left is there until this millisecond is over, and its client may still do something to it.
    if expires < ${NEVER} then expires = expires + 1 end
  end
  local request = load(id)
  local met = { key = claim.key, held = claim.held, mode = 'exclusive' }
  if request then
    request.expires = expires
    for _, known in ipairs(request.claims) do
      if known.key == claim.key then return save(request) end
    end
    request.claims[#request.claims + 1] = met
    save(request)
    fronts[claim.key] = nil
    must(try('ZADD', QUEUES, 0, entry(claim.key, request)))
    return
  end
  append({
    id = id, claims = { met }, phase = 'held', expires = expires, lease = math.max(remaining, 0), number = tonumber(granted),
    since = tonumber(since), sequence = ${FRONT}, details = details,
  })
  -- It may hand its grant on among its own callers as one that nobody else wants.
  if not ballot then tell('wanted', id) end
end

`

/** The lock table, and reading. */
const DECISIONS = String.raw`
local function admits(ahead, claim)
  local first = ahead.first
  if not first then return true end
  if claim.mode == 'permits' and first.mode == 'permits' then return ahead.permits + claim.permits <= claim.max end
  return claim.mode == 'shared' and first.mode == 'shared'
end

local function add(ahead, claim)
  if not ahead.first then ahead.first = claim
  elseif ahead.first.mode ~= claim.mode then ahead.first = { mode = 'exclusive' } end
  if claim.mode == 'permits' then ahead.permits = ahead.permits + claim.permits end
end

local function blocked(claim, request)
  local ahead = { permits = 0 }
  for other, its in queue(claim.key) do
    -- A vote is asked about before it is in the queue.
    if request and other.sequence .. other.id >= request.sequence .. request.id then return false end
    if not silent(other) then
      add(ahead, its)
      if not admits(ahead, claim) then return true end
    end
  end
  return false
end

-- The first silent waiter before a request, or before the end of the queues.
local function firstSilent(claims, request)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if request and other.sequence .. other.id >= request.sequence .. request.id then break end
      if silent(other) then return other end
    end
  end
  return nil
end

local serve

-- Clears the held keys of a grant that are still its own, and says whether there were any.
local function giveBack(grant, recorded)
  local freed = false
  for _, claim in ipairs(grant.claims) do
    local text = seen(claim.held)
    local its = text == SHARED and recorded
    if claim.mode == 'exclusive' then its = begins(text, mark(grant.id, grant.number))
    elseif its then
      for other, other_claim in queue(claim.key) do
        if other.phase == 'held' and other_claim.mode ~= 'exclusive' then its = false break end
      end
    end
    if its then
      clear(claim.held)
      freed = true
    end
  end
  return freed
end

-- Drops a request that has expired or was taken away; its held keys have expired with it, or are another's already.
local function drop(request)
  forget(request)
  tell('lost', request.id)
  for _, claim in ipairs(request.claims) do serve(claim.key) end
end

local function serveOne(key)
  local ahead = { permits = 0 }
  for request, claim in queue(key) do
    if now >= overAt(request) then return request end
    if not silent(request) then
      if not admits(ahead, claim) then return nil end
      if request.phase == 'waiting' then
        local free = true
        for _, other in ipairs(request.claims) do
          if blocked(other, request) then free = false break end
        end
        if free then
          local passed = firstSilent(request.claims, request)
          if passed then return passed end
          request.phase, request.expires = 'reserved', now + ${CLAIM_WINDOW}
          save(request)
          tell('wake', request.id)
          if not begins(request.id, SESSION .. '.') then hints[#hints + 1] = 'reserved ' .. key end
        end
      end
      add(ahead, claim)
    end
  end
  return nil
end

serve = function(key)
  if idle then return end
  local expired = serveOne(key)
  while expired do
    drop(expired)
    expired = serveOne(key)
  end
end

-- Drops the silent waiters before a request, or before the end of the queues: one that came back later would not see
-- what was granted behind it.
local function goPast(claims, request)
  if idle then return end
  local passed = firstSilent(claims, request)
  while passed do
    drop(passed)
    passed = firstSilent(claims, request)
  end
end

local function serveAll(claims)
  for _, claim in ipairs(claims) do serve(claim.key) end
end

-- Compares the holders that the queue knows with the held key, which others may have set, deleted or let expire.
-- Answers with the text of the key where it tells of a holder that the queue does not know.
local function look(claim)
  local text = seen(claim.held)
  if not idle then
    local stale = {}
    for request, its in queue(claim.key) do
      -- Who waits for it alone has no holder behind.
      if request.phase == 'waiting' and its.mode == 'exclusive' then break end
      if request.phase == 'held' then
        local same
        if its.mode ~= 'exclusive' then same = text == SHARED
        elseif request.id == FOREIGN .. claim.key then same = text and text ~= SHARED and not begins(text, 'signalbox/1 ')
        else same = begins(text, mark(request.id, request.number)) end
        if not same then stale[#stale + 1] = request end
      end
    end
    for _, request in ipairs(stale) do drop(request) end
  end
  if not text then return nil end
  for request, its in queue(claim.key) do
    if request.phase == 'waiting' and its.mode == 'exclusive' then break end
    if request.phase == 'held' then
      if begins(request.id, FOREIGN) then meet(claim, text) end
      return nil
    end
  end
  if text ~= SHARED then return text end
  -- The last of those who held it together is gone, who once had asked for a longer lease than at last.
  clear(claim.held)
  return nil
end

local function standing(request, patience)
  if request.phase == 'held' then return request.number end
  local nearest, foreign, first = math.huge, false, true
  for _, claim in ipairs(request.claims) do
    local ahead, queued = 0, false
    for other in queue(claim.key) do
      if other.id == request.id then break end
      if not silent(other) then
        if ahead > 0 and other.phase == 'waiting' then queued = true end
        ahead = ahead + 1
        if queued then first = false break end
        nearest = math.min(nearest, other.expires - now)
        if begins(other.id, FOREIGN) then foreign = true end
      end
    end
  end
  local one = request.claims[1]
  local before = call('ZLEXCOUNT', QUEUES, '[' .. head(one.key), '(' .. entry(one.key, request))
  local again = 0
  if request.phase ~= 'reserved' then
    again = math.max(0, math.min(nearest + before * ${LOOK_STAGGER}, patience.hear))
    -- A foreign holder tells none of us when it is done. Who stands first behind it looks often, and the others see to it
    -- that the key does not stay free when that one is dead.
    if foreign then again = math.min(again, first and ${FOREIGN_LOOK} or before * ${CLAIM_WINDOW}) end
    if foreign and first then hints[#hints + 1] = 'foreign ' .. request.id end
  end
  return { 'queued', before, math.ceil(again) }
end

-- Grants a request with these claims, of which a record may know but those that somebody met. One without a record
-- needs none unless others share its keys.
local function hold(request, claims, recorded)
  request.phase, request.expires, request.number = 'held', now + request.lease, nextNumber()
  local alone = true
  for _, claim in ipairs(claims) do
    take(claim, request)
    if claim.mode ~= 'exclusive' then alone = false end
  end
  if recorded and ballot and request.sequence ~= ${FRONT} then
    -- Votes that come later may have an earlier place, but not before one that was given.
    forget(request)
    request.sequence = ${FRONT}
    append(request)
  elseif recorded then save(request)
  elseif not alone then append(request) end
  return request.number
end

-- Reading and writing values ----------------------------------------------------------------------------------------

-- Stands for what another program has put in the place of a value.
local UNREADABLE = '?'

-- The texts of values, empty ones of those that are not there. Where all have to be readable, one that is not is raised.
local function texts(names, all)
  local found = must(try('MGET', unpack(names)))
  for i, name in ipairs(names) do
    local text = found[i]
    -- What is no text is passed over by MGET, and refused by GET.
    if not text then found[i] = try('GET', name) and UNREADABLE or ''
    else
      local digits = text:match('^([1-9]%d*) ')
      if not digits or tonumber(digits) > ${NEVER} then found[i] = UNREADABLE end
    end
    if all and found[i] == UNREADABLE then unreadable(name) end
  end
  return found
end

local function read(what)
  local values, found = {}, {}
  if #what.keys > 0 then values = texts(what.keys) end
  for i, recorded in ipairs(what.ids) do found[i] = must(try('ZSCORE', recorded.key, recorded.id), recorded.key) and 1 or 0 end
  return { values, found }
end

local function version(text) return text == '' and 0 or tonumber(text:match('^%d+')) end

-- The grant with this number, if it holds: as a record, or as a record made up from what the caller says of it.
local function holding(id, granted, claims)
  local request = load(id)
  if request then
    if request.phase ~= 'held' or request.number ~= granted or now >= request.expires then return nil end
    if not intact(id, granted, claims) then return nil end
    return request
  end
  for _, claim in ipairs(claims) do
    if claim.mode ~= 'exclusive' then return nil end
  end
  if not intact(id, granted, claims) then return nil end
  return { id = id, claims = claims, phase = 'held', number = granted }
end

-- Takes a request out, whatever it is; one without a record may be a grant that is known by its held keys only.
local function remove(id, granted, claims)
  local recorded, freed = load(id), false
  if recorded then forget(recorded) end
  if not recorded or recorded.phase == 'held' then
    freed = giveBack({ id = id, number = granted, claims = claims }, recorded)
  end
  if recorded or freed then serveAll(claims) end
end

-- Nobody has to know of a holder that is not ours when nobody waits behind it any more.
local function forgetForeign(claims)
  for _, claim in ipairs(claims) do
    local following = queue(claim.key)
    local first = following()
    if first and first.id == FOREIGN .. claim.key and not following() then forget(first) end
  end
end

-- Lets requests go that nobody comes back to: all of them with their keys, which outlast the last of them by a second, so that
-- this is seldom done; and while others keep the keys alive, some of those that are picked at random each time.
local function expireUnused()
  if latest == 0 then return end
  local remaining = left(REQUESTS)
  -- It has no key any more, or the key is there for long enough.
  if remaining == -2 or now + remaining >= latest then return end
  for _, name in ipairs({ REQUESTS, QUEUES }) do expire(name, latest - now + 1000) end
  local picked = try('HRANDFIELD', REQUESTS, 20, 'WITHVALUES')
  for i = 2, #picked, 2 do
    local done, request = pcall(cmsgpack.unpack, picked[i])
    if done and type(request) == 'table' and now >= request.expires then
      serveAll(request.claims)
      forgetForeign(request.claims)
    end
  end
end

-- What a grant is answered with: its number, and what was to be read with it.
local function held(outcome, what, id, claims)
  if not what or type(outcome) ~= 'number' then return outcome end
  local done, values = pcall(read, what)
  if done then return { 'held', outcome, values } end
  -- Who asked is told of that alone, and not of the grant.
  remove(id, outcome, claims)
  error(values, 0)
end

`

/** What callers ask for. */
const OPERATIONS = String.raw`
local function word()
  position = position + 1
  return WORDS[position - 1]
end
local function amount() return tonumber(word()) end
local function key()
  named = named + 1
  return KEYS[named]
end

-- Whether the operation that is read has a dot before its name.
local short = false

local function identity() return short and SESSION .. '.' .. word() or word() end

local function readClaims()
  if short then
    local held = key()
    return { { held = held, key = sub(held, prefix + 1), mode = 'exclusive' } }
  end
  local claims = {}
  for i = 1, amount() do
    local claim = { held = key(), key = word(), mode = word() }
    if claim.mode == 'permits' then claim.permits, claim.max = amount(), amount() end
    claims[i] = claim
  end
  return claims
end

local function readSet()
  if short then return nil end
  local count = amount()
  if count < 0 then return nil end
  local what = { keys = {}, ids = {} }
  for i = 1, count do what.keys[i] = key() end
  for i = 1, amount() do what.ids[i] = { key = key(), id = word() } end
  return what
end

local function details()
  local text = word()
  return text == '' and MEMBER or text
end

-- A grant that is known by its held keys only: its number, since when, details.
local function lightGrant(id, claims)
  local text = seen(claims[1].held)
  if claims[1].mode ~= 'exclusive' or not begins(text, mark(id)) then return nil end
  local _, granted, since, details = told(text)
  granted = tonumber(granted)
  if not intact(id, granted, claims) then return nil end
  return granted, tonumber(since), details
end

-- How long an entry in the queue lives, and within what time it has to be heard of again; a life of 0 does not wait.
local function readPatience()
  local life, hear = word():match('^(%d+) (%d+)$')
  return { life = tonumber(life), hear = tonumber(hear) }
end

-- Asks those who hold what a vote waits for, and may have a later place, to yield; only they know whether they can.
local function askToYield(claims)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if other.phase ~= 'held' then break end
      if other.number > ballot.order then tell('wanted', other.id) end
    end
  end
end

-- Whether somebody waits with an earlier place than this vote.
local function preceded(id, claims)
  for _, claim in ipairs(claims) do
    for other in queue(claim.key) do
      if other.phase ~= 'held' and not silent(other) then
        if other.sequence .. other.id < place(ballot.order) .. id then return true end
        break
      end
    end
  end
  return false
end

-- Takes a vote back that was given too early: from now on it stands in the queue, at its place.
local function yield(request, claims, patience)
  forget(request)
  giveBack({ id = request.id, number = request.number, claims = claims }, true)
  request.claims, request.phase, request.number = claims, 'waiting', 0
  request.sequence, request.expires = place(ballot.order), now + patience.life
  append(request)
  serveAll(claims)
end

local function enqueue(request, patience)
  local id, claims = request.id, request.claims
  local known = load(id)
  if known then return standing(known, patience) end
  if ballot then request.sequence = place(ballot.order) end
  local out, kept = false, {}
  for i, claim in ipairs(claims) do
    serve(claim.key)
    local text = look(claim)
    if text then
      out, kept[i] = true, text
      if begins(text, mark(id)) then return lightGrant(id, claims) or { 'gone' } end
    end
    if claim.mode == 'permits' and not idle then
      for _, other in queue(claim.key) do
        if other.mode == 'permits' and other.max ~= claim.max then return { 'mismatch', claim.key, other.max } end
      end
    end
  end
  if not out and not idle then
    for _, claim in ipairs(claims) do
      if blocked(claim, ballot and request) then out = true break end
    end
  end
  if out and patience.life == 0 then return { 'busy' } end
  -- Read before anything is written, because it may be refused.
  raise(0)
  request.since = now
  if not out then
    goPast(claims, ballot and request)
    request.sequence = ballot and ${FRONT} or place(nextNumber())
    return hold(request, claims, false)
  end
  for i, text in pairs(kept) do meet(claims[i], text) end
  if ballot then raise(ballot.order) else request.sequence = place(nextNumber()) end
  request.phase, request.number = 'waiting', 0
  request.expires = now + patience.life
  append(request)
  if ballot then askToYield(claims) end
  return standing(request, patience)
end

local operations = {}

local function begin()
  local kind = word()
  short = sub(kind, 1, 1) == '.'
  local task = operations[short and sub(kind, 2) or kind]()
  return refuse and kind ~= 'read' and refuse or task
end

function operations.enqueue()
  local request = { id = identity(), lease = amount() }
  local patience = readPatience()
  request.details = details()
  request.claims = readClaims()
  local what = readSet()
  return function() return held(enqueue(request, patience), what, request.id, request.claims) end
end

function operations.poll()
  local id, lease, patience = identity(), amount(), readPatience()
  local claims, what = readClaims(), readSet()
  return function()
    local request = load(id)
    if not request then
      local granted, since, details = lightGrant(id, claims)
      if not granted then return { 'gone' } end
      if ballot then
        return held(hold({ id = id, lease = lease, since = since, details = details }, claims, false), what, id, claims)
      end
      extend(claims, lease)
      return held(granted, what, id, claims)
    end
    if request.phase == 'held' then
      if now >= request.expires or not intact(id, request.number, claims) then
        drop(request)
        return { 'gone' }
      end
      if ballot then
        request.lease = lease
        if not preceded(id, claims) then return held(hold(request, claims, true), what, id, claims) end
        yield(request, claims, patience)
        return standing(request, patience)
      end
      extend(claims, lease)
    end
    request.lease, request.expires = lease, now + (request.phase == 'held' and lease or patience.life)
    -- What is reserved is saved with what becomes of it.
    if request.phase ~= 'reserved' then save(request) end
    if request.phase == 'held' then return held(request.number, what, id, claims) end
    -- Served before the keys are looked at: who is dropped as expired may hold its key for a moment yet.
    if request.phase == 'waiting' then serveAll(claims) end
    local out = false
    for _, claim in ipairs(claims) do
      local text = look(claim)
      if text then
        out = true
        meet(claim, text)
      end
    end
    -- Somebody else may have met a holder who came in from outside since it was reserved.
    if not out and request.phase == 'reserved' then
      for _, claim in ipairs(claims) do
        if blocked(claim, request) then out = true break end
      end
    end
    if out then
      request.phase = 'waiting'
      save(request)
    end
    if request.phase == 'reserved' then return held(hold(request, claims, true), what, id, claims) end
    return standing(request, patience)
  end
end

function operations.cancel()
  local id, claims = identity(), readClaims()
  return function()
    remove(id, nil, claims)
    forgetForeign(claims)
    return 0
  end
end

-- Raises the number of a vote to the one that its grant has got from the others.
local function renumber(request, claims)
  raise(ballot.least)
  request.number = ballot.least
  for _, claim in ipairs(claims) do
    if claim.mode == 'exclusive' then
      local _, _, since, text = told(seen(claim.held))
      put(claim.held, mark(request.id, request.number) .. since .. ' ' .. text, math.max(left(claim.held), 1))
    end
  end
end

function operations.renew()
  local id, granted, lease, claims = identity(), amount(), amount(), readClaims()
  return function()
    local request = holding(id, granted, claims)
    if not request then
      -- Nobody waits for what has lost a held key to other hands.
      local known = load(id)
      if known and known.phase == 'held' and known.number == granted and now < known.expires then drop(known) end
      return 0
    end
    if ballot then renumber(request, claims) end
    extend(claims, lease)
    if request.sequence then
      request.lease, request.expires = lease, now + lease
      save(request)
    end
    return 1
  end
end

function operations.release()
  local id, granted, claims = identity(), amount(), readClaims()
  return function()
    local request = load(id)
    if request and (request.phase ~= 'held' or request.number ~= granted) then return 0 end
    local whole = holding(id, granted, claims)
    remove(id, granted, claims)
    return whole and 1 or 0
  end
end

-- Takes a request away from whoever has it. A number other than 0 is the one that its grant must have.
function operations.take()
  local id, granted, claims = word(), amount(), readClaims()
  return function()
    if granted > 0 and not holding(id, granted, claims) then return 0 end
    remove(id, granted > 0 and granted or nil, claims)
    tell('lost', id)
    return 1
  end
end

function operations.extendOrYield()
  local id, granted, following, lease, patience = identity(), amount(), identity(), amount(), readPatience()
  local text, claims = details(), readClaims()
  return function()
    local request = holding(id, granted, claims)
    if not request then
      local known = load(following)
      if known then return standing(known, patience) end
      return lightGrant(following, claims) or { 'gone' }
    end
    local awaited, alone = false, not ballot
    for _, claim in ipairs(claims) do
      if claim.mode ~= 'exclusive' then alone = false end
      for other in queue(claim.key) do
        if other.id ~= id then alone = false end
        if other.phase == 'waiting' and now < other.expires then awaited = true break end
      end
    end
    if not awaited then
      request.lease, request.details, request.since = lease, text, request.since or now
      if alone and request.sequence then
        -- Those who met it are gone. From now on its held keys tell all of it again.
        forget(request)
        request.sequence = nil
      end
      return { 'kept', hold(request, claims, request.sequence ~= nil), alone and 1 or 0 }
    end
    raise(0)
    remove(id, granted, claims)
    return enqueue({ id = following, lease = lease, details = text, claims = claims }, patience)
  end
end

function operations.downgrade()
  local id, granted, text, claims = identity(), amount(), details(), readClaims()
  return function()
    local request = holding(id, granted, claims)
    if not request then return 0 end
    if request.sequence then forget(request)
    else
      local remaining = ${NEVER}
      for _, claim in ipairs(claims) do remaining = math.min(remaining, math.max(left(claim.held), 1)) end
      request.lease, request.expires, request.since, request.details = remaining, now + remaining, now, text
    end
    -- Before all who wait, as it was.
    request.sequence, request.claims = ${FRONT}, claims
    for _, claim in ipairs(claims) do
      claim.mode = 'shared'
      put(claim.held, SHARED, math.max(request.expires - now, left(claim.held)))
    end
    append(request)
    serveAll(claims)
    return 1
  end
end

function operations.expire()
  local claims = {}
  for i = 1, amount() do claims[i] = { held = key(), key = word(), mode = 'exclusive' } end
  return function()
    for _, claim in ipairs(claims) do
      look(claim)
      serve(claim.key)
    end
    return 0
  end
end

function operations.inspect()
  return function()
    local reports = {}
    local all = must(try('HGETALL', REQUESTS), REQUESTS)
    for i = 2, #all, 2 do
      local request = cmsgpack.unpack(all[i])
      if now < request.expires then
        for _, claim in ipairs(request.claims) do
          reports[#reports + 1] = {
            claim.key, request.id, request.details, claim.mode, claim.permits or 0, claim.max or 0, request.phase,
            digits(request.number), now - request.since, digits(request.expires - now), request.sequence,
          }
        end
      end
    end
    return { 'reports', reports }
  end
end

function operations.read()
  local what = readSet()
  return function() return { 'read', read(what) } end
end

function operations.commit()
  local guarded, id, granted, claims = word() == '1', nil, nil, nil
  if guarded then id, granted, claims = word(), amount(), readClaims() end
  local release, retention = word() == '1', amount()
  local expect, names, writes, ids = {}, {}, {}, {}
  for i = 1, amount() do
    names[i] = key()
    expect[i] = amount()
  end
  for i = 1, amount() do writes[i] = { key = key(), deletes = word() == '1', value = word() } end
  for i = 1, amount() do ids[i] = { key = key(), id = word() } end
  return function()
    local request = guarded and holding(id, granted, claims)
    if not request then
      for i, recorded in ipairs(ids) do
        if must(try('ZSCORE', recorded.key, recorded.id), recorded.key) then return { 'repeated', i } end
      end
    end
    if guarded and not request then return { 'lost' } end
    if #names > 0 then
      for i, text in ipairs(texts(names, true)) do
        if version(text) ~= expect[i] then return { 'conflict', i, text } end
      end
    end
    local versions = {}
    -- What may be refused comes first, so that nothing is done by halves. Nobody reads a message before the script is over.
    if #writes > 0 then raise(0) end
    for _, write in ipairs(writes) do must(try(PUBLISH, write.key, '')) end
    for i, recorded in ipairs(ids) do
      local added = try('ZADD', recorded.key, now + retention, recorded.id)
      if type(added) == 'table' then
        for j = 1, i - 1 do call('ZREM', ids[j].key, ids[j].id) end
        must(added, recorded.key)
      end
      call('ZREMRANGEBYSCORE', recorded.key, '-inf', now)
      call('PEXPIRE', recorded.key, math.max(retention, call('PTTL', recorded.key)))
    end
    for i, write in ipairs(writes) do
      local fresh = nextNumber()
      if write.deletes then
        call('DEL', write.key)
        versions[i] = 0
      else
        must(try('SET', write.key, digits(fresh) .. ' ' .. write.value))
        versions[i] = fresh
      end
    end
    if guarded and release then
      remove(id, granted, claims)
    end
    return { 'committed', versions }
  end
end

-- Says of the operation after it that it is a vote.
function operations.ballot()
  local its = { order = amount(), least = amount() }
  local task = begin()
  return function()
    ballot = its
    local done, answer = pcall(task)
    ballot = nil
    if not done then error(answer, 0) end
    return answer
  end
end

-- Makes all numbers from now on greater than one that this server had no vote in.
function operations.raise()
  local least = amount()
  return function()
    raise(least)
    return 0
  end
end

-- All is read before anything is written.
local tasks = {}
while position <= LAST do tasks[#tasks + 1] = begin() end
for _, task in ipairs(tasks) do
  local done, answer = pcall(task)
  if not done and type(answer) == 'table' and answer.unreadable then
    answer = { 'unreadable', answer.unreadable }
  elseif not done then
    local why = type(answer) == 'table' and (answer.refused or answer.err) or tostring(answer)
    -- Told of the whole call, this makes the client look for the server that can be written to.
    if begins(why, 'READONLY') then return { err = why } end
    answer = { 'error', why }
  end
  answers[#answers + 1] = answer
end
expireUnused()
-- Refused only where nothing was written before, so that no number is in use that it should tell of.
if number ~= written then try('SET', NUMBERS, digits(number)) end
answers[#answers + 1] = hints
return answers
`
