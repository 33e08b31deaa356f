import type { CommitOutcome, ReadOutcome, ReadSet, RecordedId, Versioned } from '../engine/contract.js'
import { ConflictError, LostError, UnavailableError } from '../base/errors.js'
import { claimSet } from '../core/claims.js'
import { checkKey } from '../base/options.js'
import type { LocalGrant } from '../core/grant.js'
import type { AcquireTerms } from '../core/lock-options.js'
import { LocalQueue } from '../core/local-queue.js'
import type { Session } from '../core/session.js'
import type { Member } from './member.js'
import { fullKey, Overlay, OverlayTransaction } from './transaction.js'
import { decode } from './value.js'
import type { HeldCommit, HeldValues, Values } from './values.js'

interface Named {
  readonly member: Member
  readonly keys: readonly string[]
  /** The store key of each key. */
  readonly full: ReadonlyMap<string, string>
  readonly ids: readonly RecordedId[]
  /** The versions that the naming function has read, by store key. */
  readonly basis: ReadonlyMap<string, number>
}

/** A batch whose keys are known, before it requests the locks. */
export interface Prepared {
  readonly named: readonly Named[]
  /** The store keys of all members, and the IDs to look up. */
  readonly read: ReadSet
  readonly queue: LocalQueue
}

/** The keys of a member, as found under the locks. */
interface Confirmed {
  readonly keys: readonly string[]
  /** The store key of each key. */
  readonly full: ReadonlyMap<string, string>
  /** The store keys that the naming function has read. */
  readonly basis: readonly string[]
}

/** A member whose task has succeeded, and waits for the commit. */
interface Done extends Confirmed {
  readonly member: Member
  readonly result: unknown
  /** Its IDs that were not committed before. */
  readonly record: readonly RecordedId[]
}

interface Worked {
  readonly done: readonly Done[]
  readonly again: readonly Member[]
}

/** Keys that are read by one operation at the end of the tick. */
interface Reading {
  /** The keys, each with its index in the answer. */
  readonly places: Map<string, number>
  readonly answer: Promise<ReadOutcome>
}

export interface Progress {
  /** The locks are held, and the tasks are about to be called. */
  granted?(): void
  /** Whether a later batch has begun, so that members that this batch leaves would come after it. */
  overtaken?(): boolean
  /**
   * All tasks were called, except those of these members, because their keys have changed or the time is over. They
   * must come before all later members.
   */
  left(again: readonly Member[]): void
  /** The commit was sent. Operations that are submitted in the same tick are sent with it. */
  sent(): void
}

/**
 * Runs transactions together: acquires the keys of all by one claim set, calls the tasks one after another, so that
 * each sees the writes of those before it, and commits those that succeed at once. A single transaction is a batch of
 * one.
 */
export class Batch {
  readonly #session: Session
  readonly #values: Values
  readonly #prefix: string
  readonly #maxTime: number
  #reading: Reading | undefined

  /**
   * @param prefix the store's prefix of each key.
   * @param maxTime time after which the batch commits, and leaves the remaining tasks to the next one, in milliseconds.
   */
  constructor(session: Session, values: Values, prefix: string, maxTime: number) {
    this.#session = session
    this.#values = values
    this.#prefix = prefix
    this.#maxTime = maxTime
  }

  /** Finds the keys of all members. Rejects those whose naming fails; undefined if none remains. */
  async prepare(members: readonly Member[]): Promise<Prepared | undefined> {
    const all = await Promise.all(members.map(member => this.#name(member)))
    const named = all.filter(one => one !== undefined)
    if (named.length === 0) return undefined
    const claimed = new Set(named.flatMap(one => [...one.full.values()]))
    const keys = [...new Set([...claimed, ...named.flatMap(one => [...one.basis.keys()])])].sort()
    const ids = named.flatMap(one => one.ids)
    const locked = this.#values.checksOnlyLocked ? keys : [...claimed]
    try {
      const set = claimSet(locked.map(key => ({ key, mode: 'exclusive' })))
      return { named, read: { keys, ids }, queue: new LocalQueue(this.#session, set, 'transaction') }
    } catch (error) {
      for (const { member } of named) member.reject(error)
      return undefined
    }
  }

  /** Returns the members of a batch that will not run as it was prepared. */
  unprepare({ named }: Prepared): readonly Member[] {
    for (const { member } of named) member.attempts--
    return named.map(({ member }) => member)
  }

  /**
   * Acquires the locks, calls the tasks and commits. Sends the request for the locks after `before`.
   * @returns the members to retry one by one, because the batch was refused, so that only the member at fault fails
   */
  async run(
    { named, read, queue }: Prepared,
    progress: Progress,
    before?: Promise<void>,
  ): Promise<readonly Member[]> {
    let held: HeldValues
    try {
      held = await this.#hold(queue, named, read, before)
    } catch (error) {
      return rejected(named, read.keys, error)
    }
    progress.granted?.()
    const { grant } = held
    const overlay = new Overlay(read.keys, held.read)
    const locked = new Set(queue.set.claims.map(({ key }) => key))
    const work = (): Promise<Worked> => this.#work(held, overlay, locked, named, progress)
    const { deadlocks } = this.#session
    // Only the tasks of the members count as holders of these locks; the commit belongs to no task.
    const { done, again } = await (deadlocks ? deadlocks.run(queue.set, grant, work) : work())
    progress.left(again)
    if (done.length > 0) return this.#commit(queue, held, overlay, done, progress)
    await this.#release(grant)
    return []
  }

  async #name(member: Member): Promise<Named | undefined> {
    if (member.settled) return undefined
    member.attempts++
    try {
      const basis = new Map<string, number>()
      const keys = (member.keys = await member.name(key => this.#readNow(key, basis)))
      const full = this.#fullKeys(keys)
      const ids = member.parts.map(({ id, key = keys[0]! }) => ({ id, key: fullKey(full, key) }))
      return { member, keys, full, ids, basis }
    } catch (error) {
      member.reject(error)
      return undefined
    }
  }

  /** Reads a key by one operation for all reads of the same tick. */
  async #readNow<T>(key: string, basis?: Map<string, number>): Promise<T | undefined> {
    const full = this.#prefix + key
    checkKey('key with its store', full)
    const reading = (this.#reading ??= this.#startReading())
    const { places } = reading
    const place = places.get(full) ?? places.size
    places.set(full, place)
    const { value, version } = (await reading.answer).values[place]!
    // If a key that is read twice changes in between, the first version reveals that.
    if (!basis?.has(full)) basis?.set(full, version)
    return decode(full, value, version) as T | undefined
  }

  #startReading(): Reading {
    const places = new Map<string, number>()
    const answer = Promise.resolve().then(() => {
      this.#reading = undefined
      return this.#values.read({ keys: [...places.keys()], ids: [] })
    })
    return { places, answer }
  }

  #fullKeys(keys: readonly string[]): ReadonlyMap<string, string> {
    return new Map(keys.map(key => [key, this.#prefix + key]))
  }

  #hold(
    queue: LocalQueue,
    named: readonly Named[],
    read: ReadSet,
    before?: Promise<void>,
  ): Promise<HeldValues> {
    const [first] = named
    // The local queue limits the wait of a single transaction; members of a group have limits of their own.
    const { stopWaiting, settled, request: own } = first!.member
    const request = named.length === 1 && !stopWaiting && !settled ? own : this.#commonRequest(named)
    return this.#values.hold(queue, { ...request, before }, read)
  }

  /** A request for all members, which aborts when the last of them has given up. */
  #commonRequest(named: readonly Named[]): AcquireTerms {
    const controller = new AbortController()
    const waiting = new Set(named.map(({ member }) => member).filter(member => !member.settled))
    if (waiting.size === 0) controller.abort()
    for (const member of waiting) {
      member.onSettled = () => {
        waiting.delete(member)
        if (waiting.size === 0) controller.abort()
      }
    }
    const lease = Math.max(...named.map(({ member }) => member.request.lease))
    const label = named[0]!.member.request.label
    return { wait: Infinity, lease, renew: true, label, signal: controller.signal }
  }

  /** Calls the tasks one after another, until the time of the batch is over. */
  async #work(
    { grant, read }: HeldValues,
    overlay: Overlay,
    locked: ReadonlySet<string>,
    named: readonly Named[],
    progress: Progress,
  ): Promise<Worked> {
    /** The IDs that this batch is about to commit, by the store key with which they are recorded. */
    const underWay = new Map<string, Set<string>>()
    let place = 0
    const again: Member[] = []
    const done: Done[] = []
    const until = this.#session.clock.now() + this.#maxTime
    for (const [index, one] of named.entries()) {
      const { member, ids } = one
      const seen = read.seen.slice(place, (place += ids.length))
      member.onSettled = undefined
      if (member.settled) continue
      const late = index > 0 && this.#session.clock.now() >= until && !progress.overtaken?.()
      // Only the commit shows whether an earlier member of this batch with the same ID is committed.
      if (late || ids.some(({ key, id }) => underWay.get(key)?.has(id))) {
        again.push(member)
        continue
      }
      if (ids.length > 0 && seen.every(Boolean)) {
        member.resolve({ applied: false })
        continue
      }
      // mutant: abort-after-begin
      member.stopWaiting?.()
      const committed = new Set(ids.filter((_, index) => seen[index]).map(({ id }) => id))
      const outcome = await this.#runOne(one, overlay, locked, grant, committed)
      if (outcome === 'changed') again.push(member)
      else if (outcome) {
        done.push(outcome)
        // mutant: twin-does-not-wait
        for (const { key, id } of ids) underWay.set(key, (underWay.get(key) ?? new Set()).add(id))
      }
    }
    return { done, again }
  }

  /** Calls the task of a member. Settles the member unless the task succeeds, or its keys have changed. */
  async #runOne(
    one: Named,
    overlay: Overlay,
    locked: ReadonlySet<string>,
    grant: LocalGrant,
    committed: ReadonlySet<string>,
  ): Promise<Done | 'changed' | undefined> {
    const { member } = one
    try {
      const { keys, full, basis } = await this.#confirm(one, overlay)
      if (keys !== one.keys) {
        const isLocked = [...full.values()].every(key => locked.has(key))
        // Keys that follow from values that were not read under the locks may be wrong.
        const isKnown = basis.every(key => overlay.has(key))
        const stores = new Set(full.values())
        const hasIds = keys[0] === one.keys[0] && one.ids.every(({ key }) => stores.has(key))
        if (!isLocked || !isKnown || !hasIds) return this.#mayRetry(member, keys) ? 'changed' : undefined
      }
      const transaction = new OverlayTransaction(overlay, grant, full, committed)
      member.began = true
      let result
      try {
        result = await member.task(transaction)
      } catch (error) {
        member.threw(error)
        return undefined
      }
      overlay.apply(transaction.writes)
      const record = committed.size === 0 ? one.ids : one.ids.filter(({ id }) => !committed.has(id))
      return { member, keys, full, basis, result, record }
    } catch (error) {
      member.reject(error)
      return undefined
    }
  }

  /** Returns the keys of a member. Names them again if others have written the values that they follow from. */
  async #confirm({ member, keys, full, basis }: Named, overlay: Overlay): Promise<Confirmed> {
    if (overlay.hasVersions(basis)) return { keys, full, basis: [...basis.keys()] }
    const read = new Set<string>()
    const named = await member.name(async <T>(key: string) => {
      const full = this.#prefix + key
      read.add(full)
      return overlay.has(full) ? (decode(full, overlay.value(full)) as T) : this.#readNow<T>(key)
    })
    return { keys: named, full: this.#fullKeys(named), basis: [...read] }
  }

  /** Whether to retry a member whose keys have changed; otherwise rejects it. */
  #mayRetry(member: Member, keys: readonly string[]): boolean {
    if (member.attempts < member.maxAttempts) return true
    const key = keys.join(', ')
    member.reject(
      new ConflictError(`the keys of the transaction changed ${member.attempts} times, last to ${key}`, {
        key,
        engine: this.#session.engine.name,
      }),
    )
    return false
  }

  async #release(grant: LocalGrant): Promise<void> {
    // Nothing was written, so the loss of the locks does no harm.
    await grant.release().catch(() => undefined)
  }

  /** Commits the members whose tasks have succeeded. Returns those to retry one by one. */
  async #commit(
    queue: LocalQueue,
    held: HeldValues,
    overlay: Overlay,
    done: readonly Done[],
    progress: Progress,
  ): Promise<readonly Member[]> {
    const { grant } = held
    const expected = [...new Set(done.flatMap(({ full, basis }) => [...full.values(), ...basis]))]
    const commit: HeldCommit = {
      expect: expected.map(key => ({ key, version: overlay.read(key).version })),
      writes: overlay.writes(),
      record: done.flatMap(one => one.record),
      retention: Math.max(...done.map(({ member }) => member.retention)),
    }
    let outcome
    try {
      grant.assertHeld()
      const committing = held.commit(commit, done[0]!.member.within)
      progress.sent()
      outcome = await committing
    } catch (error) {
      const alone = rejected(done, expected, error)
      await this.#release(grant)
      return alone
    }
    if (outcome.state === 'committed') {
      for (const { member, result } of done) {
        member.resolve({ applied: true, result, token: grant.token, attempts: member.attempts })
      }
      return []
    }
    await this.#release(grant)
    if (done.length > 1 && outcome.state !== 'lost') return done.map(({ member }) => member)
    if (outcome.state === 'conflict') {
      // The naming function has read an old value of the key, whether it named that key or not.
      const changed = done.filter(({ basis }) => basis.includes(outcome.key))
      if (changed.length > 0)
        return changed.filter(({ member, keys }) => this.#mayRetry(member, keys)).map(({ member }) => member)
    }
    for (const { member } of done) this.#refused(member, outcome, queue, overlay)
    return []
  }

  #refused(member: Member, outcome: CommitOutcome, queue: LocalQueue, overlay: Overlay): void {
    const engine = this.#session.engine.name
    // With several parts, another process may have committed only some of them.
    if (outcome.state === 'repeated' && member.parts.length === 1) return member.resolve({ applied: false })
    if (outcome.state !== 'conflict') {
      const key = queue.set.title
      return member.reject(
        new LostError(`the transaction lost its locks before its commit: ${key}`, { key, engine }),
      )
    }
    const key = outcome.key.slice(this.#prefix.length)
    const read = overlay.read(outcome.key)
    const expected = { value: decode(outcome.key, read.value), version: read.version }
    const found = { value: decode(outcome.key, outcome.found.value), version: outcome.found.version }
    const versions = `expected ${shownVersion(read)}, found ${shownVersion(outcome.found)}`
    const message = `${key} was written without holding its lock: ${versions}`
    member.reject(new ConflictError(message, { key, engine, expected, found }))
  }
}

function shownVersion({ value, version }: Versioned): string {
  return `${value ?? 'nothing'} (version ${version})`
}

/**
 * Rejects the members of a batch that failed before anything was written. If the error is about one key, instead
 * returns the members to retry one by one, because it need not concern all of them.
 */
function rejected(
  batch: readonly { readonly member: Member }[],
  keys: readonly string[],
  error: unknown,
): readonly Member[] {
  const members = batch.map(({ member }) => member)
  const isOfOne = error instanceof UnavailableError && error.key !== undefined && keys.includes(error.key)
  if (isOfOne && members.length > 1) return members
  for (const member of members) member.reject(error)
  return []
}
