/**
 * The grants within a window, the oldest first. Each entry has a time, and the total number of permits granted by then,
 * so a binary search finds it by either. Plain data, so that it can be stored anywhere.
 */
export interface GrantLog {
  /** Time and total of each entry, alternating, in a ring that grows as needed. */
  entries: number[]
  /** The place of the oldest entry. */
  head: number
  /** Number of entries. */
  length: number
  /** Number of permits granted since the log was empty. */
  total: number
  /** Number of permits granted before the oldest entry. */
  dropped: number
  /** When the last of these was granted. */
  droppedAt: number
  /** When the newest entry began, if entries stand for several grants. */
  begunAt: number
  /** The time of the newest grant, even if it was dropped. */
  lastAt: number
}

/** Initial entries: doubles, so that V8 stores them unboxed. */
const NO_ENTRIES: readonly number[] = [-Infinity, -Infinity, -Infinity, -Infinity]

export function emptyLog(): GrantLog {
  return {
    entries: NO_ENTRIES.slice(),
    head: 0,
    length: 0,
    total: 0,
    dropped: 0,
    droppedAt: -Infinity,
    begunAt: -Infinity,
    lastAt: -Infinity,
  }
}

/** When the permit of this number, counted like `total`, was granted; -Infinity if it was dropped. */
export function timeOfPermit(log: GrantLog, number: number): number {
  if (number <= log.dropped) return -Infinity
  const { entries, head } = log
  // It is almost always the oldest entry.
  if (entries[2 * head + 1]! >= number) return entries[2 * head]!
  const entry = firstOf(log, index => entries[index + 1]! >= number)
  return entries[place(log, entry)]!
}

/** The total number of permits granted at or before `time`. */
export function totalAt(log: GrantLog, time: number): number {
  return totalBefore(log, firstAfter(log, time))
}

/** The time of the first entry after `time`; undefined if there is none. */
export function timeAfter(log: GrantLog, time: number): number | undefined {
  const entry = firstAfter(log, time)
  return entry === log.length ? undefined : log.entries[place(log, entry)]!
}

/**
 * Adds a grant, and drops those older than `memory`. A grant at an earlier time than the newest shares an entry of the
 * same time, or of a later one that is less than a grain away. So entries are never closer than a grain.
 * @param grain grants within this many milliseconds share an entry, which then has the time of the newest of them.
 * @param now the time of the decision. Grants that are old only at `time` count again if this grant is refunded.
 */
export function addGrant(
  log: GrantLog,
  n: number,
  time: number,
  memory: number,
  grain: number,
  now: number,
): void {
  if (log.length > 0 && time < log.lastAt) return insertEarlier(log, n, time, grain)
  const total = (log.total += n)
  log.lastAt = time
  // A refund could not distinguish two entries of one time.
  if (time - log.begunAt <= grain || time === newestTime(log)) {
    amend(log, time)
    return
  }
  log.begunAt = time
  while (log.length > 0 && now - log.entries[2 * log.head]! > memory) dropOldest(log)
  if (2 * log.length === log.entries.length) grow(log)
  const newest = place(log, log.length++)
  log.entries[newest] = time
  log.entries[newest + 1] = total
}

function insertEarlier(log: GrantLog, n: number, time: number, grain: number): void {
  const rounded = grain > 0 ? Math.ceil(time / grain) * grain : time
  const { entries } = log
  let entry = firstOf(log, index => entries[index]! >= rounded)
  // A rounded time may be later than the newest, which is later than the grant itself.
  if (entry === log.length) entry--
  else if (log.entries[place(log, entry)] !== rounded) openEntry(log, entry, rounded)
  log.total += n
  for (; entry < log.length; entry++) log.entries[place(log, entry) + 1]! += n
}

/** Adds an empty entry. */
function openEntry(log: GrantLog, entry: number, time: number): void {
  if (2 * log.length === log.entries.length) grow(log)
  const total = totalBefore(log, entry)
  const { entries } = log
  for (let other = log.length++; other > entry; other--) {
    const to = place(log, other)
    const from = place(log, other - 1)
    entries[to] = entries[from]!
    entries[to + 1] = entries[from + 1]!
  }
  const at = place(log, entry)
  entries[at] = time
  entries[at + 1] = total
}

/** Removes permits that were granted at `time`, if they are in the log. */
export function removeGrant(log: GrantLog, n: number, time: number): void {
  const { entries } = log
  let entry = firstOf(log, index => entries[index]! >= time)
  if (entry === log.length || time <= log.droppedAt) return
  const left = entries[place(log, entry) + 1]! - n - totalBefore(log, entry)
  if (left < 0) return
  log.total -= n
  // An empty entry is removed, so there are never more entries than permits.
  const gap = left === 0 ? 1 : 0
  for (; entry + gap < log.length; entry++) {
    const from = place(log, entry + gap)
    const to = place(log, entry)
    entries[to] = entries[from]!
    entries[to + 1] = entries[from + 1]! - n
  }
  log.length -= gap
  // It is not known when the entry that is now the newest began, so the next grant gets an entry of its own.
  if (gap === 0) return
  log.begunAt = -Infinity
  log.lastAt = newestTime(log) ?? log.droppedAt
}

/** Replaces all entries by one at `time`. */
export function collapse(log: GrantLog, time: number): void {
  const { entries, total, dropped } = log
  log.head = 0
  log.length = total > dropped ? 1 : 0
  log.begunAt = log.length > 0 ? time : -Infinity
  log.lastAt = time
  log.droppedAt = -Infinity
  entries[0] = time
  entries[1] = total
}

/** The newest entry. @param forgotten the number of its permits if it was dropped. */
export function newestGrant(log: GrantLog, forgotten: number): { at: number; n: number } {
  const { length, total } = log
  if (length === 0) return { at: log.lastAt, n: forgotten }
  return { at: log.lastAt, n: total - totalBefore(log, length - 1) }
}

/** The time of the entry before the newest; that of the last dropped entry if there is none. */
export function timeBeforeNewest(log: GrantLog): number {
  return log.length < 2 ? log.droppedAt : log.entries[place(log, log.length - 2)]!
}

function newestTime(log: GrantLog): number | undefined {
  return log.length === 0 ? undefined : log.entries[place(log, log.length - 1)]
}

/** Adds the newest grant to the newest entry. */
function amend(log: GrantLog, time: number): void {
  const newest = place(log, log.length - 1)
  log.entries[newest] = time
  log.entries[newest + 1] = log.total
}

function dropOldest(log: GrantLog): void {
  log.droppedAt = log.entries[2 * log.head]!
  log.dropped = log.entries[2 * log.head + 1]!
  log.head = 2 * log.head + 2 === log.entries.length ? 0 : log.head + 1
  log.length--
}

function grow(log: GrantLog): void {
  const { entries, head } = log
  const inOrder = [...entries.slice(2 * head), ...entries.slice(0, 2 * head)]
  log.entries = inOrder.concat(inOrder)
  log.head = 0
}

/** The place of an entry in the array. @param entry 0 is the oldest. */
function place({ entries, head }: GrantLog, entry: number): number {
  const index = 2 * (head + entry)
  return index < entries.length ? index : index - entries.length
}

/** The total number of permits granted before an entry. */
function totalBefore(log: GrantLog, entry: number): number {
  return entry === 0 ? log.dropped : log.entries[place(log, entry - 1) + 1]!
}

function firstAfter(log: GrantLog, time: number): number {
  const { entries } = log
  return firstOf(log, index => entries[index]! > time)
}

/**
 * Returns the first entry, counted from the oldest, for whose place in the array a condition holds; `length` if none
 * does.
 */
function firstOf(log: GrantLog, holds: (index: number) => boolean): number {
  let low = 0
  let high = log.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(place(log, middle))) high = middle
    else low = middle + 1
  }
  return low
}
