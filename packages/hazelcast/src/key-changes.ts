import { UnavailableError } from 'signalbox'
import { TickBatcher, type Clock, type SessionInfo } from 'signalbox/engine'
import { answered, MIN_CALL_TIME, pause } from './call.js'
import type { Distance } from './distance.js'
import type { EntryStore } from './entry-store.js'
import { decodeKeyEntry, encodeKeyEntry } from './entry-text.js'
import { DamagedEntryError, UnclearError } from './failures.js'
import type { Floor } from './floor.js'
import type { CoveredGrant, GrantSigns } from './grant-signs.js'
import { emptyEntry, wasApplied, type KeyEntry, type KeyRequest, type Mark } from './key-entry.js'
import type { MapLocks } from './map-locks.js'
import type { Signs } from './signs.js'
import type { EntryContext } from './open-entry.js'
import { Sightings } from './sightings.js'

/** Maximum time to try a change, in milliseconds. */
const TIMEOUT = 10_000
/** Maximum time to find out whether a change was applied whose reply is missing, in milliseconds. */
const REPLY_TIMEOUT = 5000
/**
 * After this many tries and this many milliseconds, the entry is locked for each further try. Otherwise boxes closer to
 * the members would always be faster than a distant one.
 */
const LOCK_AFTER = { tries: 2, time: 50 }
/** A change that can wait locks the entry later, because claims and releases must not wait for it, in milliseconds. */
const PATIENT_LOCK_AFTER = 2000
/**
 * If the reply to a lock came this much later than one to a read, others had locked the entry meanwhile, in
 * milliseconds.
 */
const LOCKED_LATER = 20
/** Maximum pause before the first retry of a change that can wait, and before any retry, in milliseconds. */
const BACK_OFF = { first: 4, most: 200 }
/** Maximum time for which a member waits for other boxes that have locked the entry, in milliseconds. */
const LOCK_WAIT = 3000
/** The lease of that lock, in milliseconds. `MapLocks` requests up to two seconds more. */
const LOCK_LEASE = 0

/**
 * If other boxes have changed an entry within the first time, the copy in this box is stale after the second, in
 * milliseconds. A change of a stale copy would probably fail, which costs more than reading the entry first.
 */
const SHARED = { for: 5000, fresh: 100 }

/** An entry as it was read. */
export interface Found {
  /** Undefined if there is none. */
  readonly text: string | undefined
  readonly entry: KeyEntry
}

/** An entry as a state that work may change. */
export interface OpenState {
  readonly isChanged: boolean
  /** The grants that it takes from other boxes although their signs renew them. Only for entries of keys. */
  readonly signsToEnd?: readonly CoveredGrant[]
  /** Returns the changed entry, with this mark. */
  close(mark: Mark): KeyEntry
}

/** Opens an entry for a batch of work. */
export type Opener<S> = new (key: string, entry: KeyEntry, context: EntryContext, clock: Clock) => S

/** Work on an entry. It has no other effects, because it may be done several times. */
export interface Work<S, T> {
  run(state: S): T
  /** Receives the outcome of each try before it is saved. */
  tried?(outcome: T): void
  /** Whether the work with this outcome can wait for the changes of other boxes. */
  canWait?(outcome: T): boolean
  /** The longest lease that it may grant, in milliseconds. */
  readonly lease?: number
  /** The processes of sessions, if it reports them. */
  readonly sessions?: ReadonlyMap<string, SessionInfo>
}

/** Parts that the entries of all keys share. */
export interface EntryParts {
  readonly store: EntryStore
  /** The locks of the map of entries. */
  readonly locks: Pick<MapLocks, 'tryLock' | 'unlockOnce'>
  readonly clock: Clock
  /** The floor of new entries. */
  readonly floor: Pick<Floor, 'get' | 'isValid'>
  /** Called with each entry that is found or saved. */
  readonly seen: (key: string, found: Found) => void
  /** Does work, and repeats it while connections are lost. Doing it twice must be harmless. */
  readonly repeat: <T>(work: () => Promise<T>, until?: number) => Promise<T>
  /** Makes the entries of the session outlive a lease. */
  readonly extendFor: (lease: number) => Promise<void>
  /** Whether the entries of the session already outlive a lease. */
  readonly outlives: (lease: number) => boolean
  readonly nextMark: () => Mark
  readonly nextVersion: (above: number) => number
  /** Returns the error for the callers of a change that failed. */
  readonly failure: (error: unknown) => Error
  /** Called when it is unknown whether a change was applied. */
  readonly unclear: () => void
  /**
   * The clock time by which a session had died, so that its requests that were seen have expired; -Infinity if it may
   * live.
   */
  readonly diedBefore: (session: string) => number
  readonly signs: Pick<Signs, 'isCovered' | 'seen'>
  readonly isAwaited: EntryContext['isAwaited']
  readonly grants: Pick<GrantSigns, 'renewedAt' | 'hasEnded' | 'end'>
  /**
   * Looks up the signs that matter for a decision about these requests, unless that was done just now. Never rejects.
   * @param overdue returns those that have neither been renewed nor checked in within their TTL
   */
  readonly look: (
    requests: readonly KeyRequest[],
    overdue: () => readonly KeyRequest[],
  ) => Promise<unknown> | undefined
  readonly distance: Distance
}

interface Job<S> {
  readonly work: Work<S, unknown>
  readonly since: number
  resolve(outcome: unknown): void
  reject(error: unknown): void
}

/** Changes the entry of one key by compare-and-set. The work of a tick shares one compare-and-set. */
export class KeyChanges<S extends OpenState> {
  readonly #key: string
  readonly #Opener: Opener<S>
  readonly #parts: EntryParts
  readonly #sightings = new Sightings()
  readonly #batch = new TickBatcher<Job<S>>(() => this.#run())
  #known: Found | undefined
  /** Whether this box has read or written the entry that it knows. Any client can send a hint. */
  #isCertain = false
  /** The clock time at which the entry was learned. */
  #knownAt = -Infinity
  /** The clock time at which another box was last found to have changed the entry. */
  #sharedAt = -Infinity
  /** Whether other boxes were faster with the last change. */
  #isContended = false
  #isLocked = false
  #isRunning = false
  /** Ends the pause of changes that can wait, if there is one. */
  #goOn: (() => void) | undefined

  constructor(key: string, opener: Opener<S>, parts: EntryParts) {
    this.#key = key
    this.#Opener = opener
    this.#parts = parts
  }

  /** The newest known entry; undefined if it is not known. */
  get known(): Found | undefined {
    return this.#known
  }

  /** The newest entry that this box has read or written; undefined if it knows only of a newer one. */
  get certain(): Found | undefined {
    return this.#isCertain ? this.#known : undefined
  }

  /** The requests that have neither been renewed nor checked in within their TTL. */
  get overdue(): readonly KeyRequest[] {
    const now = this.#parts.clock.now()
    const { requests } = this.#known?.entry.locks ?? { requests: [] }
    return requests.filter(each => this.#sightings.expiry(each) <= now)
  }

  get isIdle(): boolean {
    return !this.#isRunning && this.#batch.size === 0
  }

  /** Does work on the newest entry, perhaps several times, and saves the changes of its last run. */
  change<T>(work: Work<S, T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = resolve as (outcome: unknown) => void
      this.#batch.add({ work, since: this.#parts.clock.now(), resolve: answer, reject })
      if (!work.canWait) this.#goOn?.()
    })
  }

  /**
   * Handles a hint that another box has changed the entry. Any client can send it: a change of a false text fails, and
   * everything else is decided only after a read.
   * @param text the new entry, if it is known.
   */
  changed(text: string | undefined): void {
    const { clock } = this.#parts
    // A change that is under way learns the newer entry itself.
    if (this.#isRunning) return
    if (text === undefined) this.#known = undefined
    else
      try {
        const found = this.#decode(text)
        const { turn } = found.entry.locks
        if (this.#known?.text && turn <= this.#known.entry.locks.turn) return
        this.#sharedAt = clock.now()
        this.#adopt(found, clock.now(), false)
      } catch {
        // The next operation reads the entry.
      }
  }

  async #run(): Promise<void> {
    const jobs = this.#batch.take()
    this.#isRunning = true
    try {
      for (const answer of await this.#tryUntilDone(jobs)) answer()
    } catch (error) {
      const failure = this.#parts.failure(error)
      for (const job of jobs) job.reject(failure)
      if (error instanceof UnclearError) this.#parts.unclear()
    } finally {
      this.#unlock()
      this.#isRunning = false
    }
  }

  /** Tries until the jobs are done. If other boxes are faster, jobs that have arrived since join the next try. */
  async #tryUntilDone(jobs: Job<S>[]): Promise<(() => void)[]> {
    const { clock, distance } = this.#parts
    const began = clock.now()
    const until = jobs[0]!.since + TIMEOUT
    // Whether the entry was read after the last of the jobs arrived. Only then can jobs that change nothing be
    // answered.
    let isFresh = false
    let canWait = false
    // Number of times that another box was faster than a change of the known entry.
    let losses = 0
    for (let tries = 0; ; tries++) {
      if (tries > 0 && clock.now() >= until)
        throw new UnavailableError(`the locks of ${this.#key} were too busy; the operation was not applied`)
      const lockAfter = canWait ? PATIENT_LOCK_AFTER : LOCK_AFTER.time
      const isPatient = tries < LOCK_AFTER.tries || clock.now() - began < lockAfter
      // A box that was slower once because it is far would be slower again.
      if (!isPatient || (losses > 0 && distance.isFar)) await this.#lockAndRead(until)
      const lease = Math.max(...jobs.map(({ work }) => work.lease ?? 0))
      // Other boxes consider a session dead if it has requests and no entry.
      if (!this.#parts.outlives(lease)) await this.#parts.repeat(() => this.#parts.extendFor(lease), until)
      const known = this.#known
      // An entry that was read for this change is fresh enough, however long that took.
      const isUsable = known?.text !== undefined && (tries > 0 || !this.#isOld)
      const found = isUsable ? known : await this.#nothing(until)
      const looking = this.#parts.look(found.entry.locks.requests, () => this.overdue)
      if (looking) await looking
      // A change is decided on the entry that is known when it is sent.
      if (this.#known !== known) continue
      const state = this.#open(found, jobs)
      const outcomes = jobs.map(({ work }) => work.run(state))
      const answers = jobs.map((job, at) => () => job.resolve(outcomes[at]))
      for (const [at, { work }] of jobs.entries()) work.tried?.(outcomes[at])
      canWait = jobs.every(({ work }, at) => work.canWait?.(outcomes[at]))
      // mutant: take-without-end
      if (state.isChanged && state.signsToEnd?.length) {
        // Otherwise the boxes of these grants could still renew them. The current signs may change the decision.
        await this.#end(state.signsToEnd, until)
        continue
      }
      const isNear = !distance.isFar
      if (canWait && isNear && tries === 0 && isAboutToChange(found.entry)) await this.#backOff(tries, until)
      else if (state.isChanged) {
        const since = tries > 0 ? clock.now() : jobs[0]!.since
        if (await this.#save(found, state, since + REPLY_TIMEOUT)) return answers
        isFresh = true
        if (found.text !== undefined) losses++
        if (canWait && isNear && !this.#isLocked) await this.#backOff(tries, until)
      } else {
        if (isFresh) return answers
        isFresh = true
        if ((await this.#read(until)).text === found.text && this.#known?.text === found.text) return answers
      }
      // No job joins others whose time is running out.
      if (this.#batch.size === 0 || clock.now() >= until - TIMEOUT / 2) continue
      jobs.push(...this.#batch.take())
      isFresh = false
    }
  }

  async #end(signs: readonly CoveredGrant[], until: number): Promise<void> {
    const { grants, repeat } = this.#parts
    await repeat(() => Promise.all(signs.map(each => grants.end(each))), until)
  }

  /** Pauses until other boxes have probably made their changes, and reads the entry. */
  async #backOff(tries: number, until: number): Promise<void> {
    const most = Math.min(BACK_OFF.first * 2 ** tries, BACK_OFF.most)
    await new Promise<void>(resolve => {
      const timer = this.#parts.clock.after(1 + Math.random() * most, () => this.#goOn!(), true)
      this.#goOn = () => {
        timer.cancel()
        this.#goOn = undefined
        resolve()
      }
    })
    await this.#read(until)
  }

  get #isOld(): boolean {
    const now = this.#parts.clock.now()
    return now - this.#sharedAt < SHARED.for && now - this.#knownAt > SHARED.fresh
  }

  #open({ entry }: Found, jobs: readonly Job<S>[]): S {
    const { clock, diedBefore, grants, isAwaited, nextVersion, signs } = this.#parts
    for (const each of entry.locks.requests) this.#sightings.markDead(each, diedBefore(each.session))
    const sessions = jobs.find(({ work }) => work.sessions)?.work.sessions
    const known = { sightings: this.#sightings, signs, grants, isAwaited, nextVersion }
    const context = sessions ? { ...known, sessions } : known
    return new this.#Opener(this.#key, entry, context, clock)
  }

  /** Returns an empty entry for a key that has none. */
  async #nothing(until: number): Promise<Found> {
    const { floor, repeat } = this.#parts
    return { text: undefined, entry: emptyEntry(await repeat(async () => floor.get(), until)) }
  }

  /** Saves the state. Returns false if another box was faster; then the newest entry is known. */
  async #save(found: Found, state: S, until: number): Promise<boolean> {
    const { clock, floor, nextMark } = this.#parts
    const mark = nextMark()
    const entry = state.close(mark)
    const text = encodeKeyEntry(entry)
    const sentAt = clock.now()
    const isApplied = await this.#apply(found, text, mark, until)
    if (isApplied && found.text === undefined && !floor.isValid)
      throw new UnclearError('an entry was created too late')
    // Other boxes see it later, so a grant of this box ends here first.
    if (isApplied) this.#adopt({ text, entry }, sentAt)
    this.#isContended = !isApplied
    return isApplied
  }

  async #apply(found: Found, text: string, mark: Mark, until: number): Promise<boolean> {
    const { clock } = this.#parts
    const sentAt = clock.now()
    const limit = Math.max(until - sentAt, MIN_CALL_TIME)
    try {
      const isApplied = await answered(this.#send(found, text, mark), clock, limit)
      this.#parts.distance.replied(clock.now() - sentAt)
      return isApplied
    } catch (cause) {
      if (cause instanceof DamagedEntryError) throw cause
      return this.#settle(found, text, mark, until, cause)
    }
  }

  /** Sends a change. If it is not applied, learns the newest entry. */
  async #send(found: Found, text: string, mark: Mark): Promise<boolean> {
    const { store } = this.#parts
    // The client and the members may repeat a change whose reply was lost. Then the second one fails.
    const isRepeated = (newest: Found): boolean =>
      wasApplied(newest.entry.locks, mark, found.entry.locks) === true
    if (found.text === undefined) {
      const adding = store.add(this.#key, text)
      this.#unlock()
      const present = await adding
      if (present === undefined) return true
      return isRepeated(this.#learn(present))
    }
    const replacing = store.replace(this.#key, found.text, text)
    // The member executes it after the change, so that a failed change learns the newest entry in the same round trip.
    const reading = this.#isContended && !this.#isLocked ? store.get(this.#key) : undefined
    reading?.catch(() => undefined)
    // Other boxes need not wait for the reply.
    this.#unlock()
    if (await replacing) return true
    return isRepeated(this.#learn(await (reading ?? store.get(this.#key))))
  }

  /**
   * Finds out whether a change with a lost reply was applied. Resends it if it was not, which is harmless because it is
   * the same change.
   */
  async #settle(found: Found, text: string, mark: Mark, until: number, cause: unknown): Promise<boolean> {
    const { clock, store } = this.#parts
    const inTime = <T>(call: Promise<T>): Promise<T> =>
      answered(call, clock, Math.max(until - clock.now(), 0))
    while (clock.now() < until) {
      try {
        const now = await inTime(store.get(this.#key))
        if (now === text) return true
        if (now !== found.text) {
          this.#learn(now)
          const isApplied =
            now === undefined ? undefined : wasApplied(this.#known!.entry.locks, mark, found.entry.locks)
          if (isApplied === undefined) break
          return isApplied
        }
        if (await inTime(this.#send(found, text, mark))) return true
      } catch (error) {
        if (error instanceof DamagedEntryError) throw error
        await pause(clock, true)
      }
    }
    this.#known = undefined
    throw new UnclearError('the reply to a change was lost', { cause })
  }

  /** Reads the entry. */
  async #read(until: number): Promise<Found> {
    const { repeat, store } = this.#parts
    return this.#learn(await repeat(() => store.get(this.#key), until))
  }

  /** Treats a text that was read as the newest one. */
  #learn(text: string | undefined): Found {
    if (this.#known && this.#known.text === text) {
      this.#isCertain = true
      this.#knownAt = this.#parts.clock.now()
      // Its IDs may have expired since.
      this.#parts.seen(this.#key, this.#known)
      return this.#known
    }
    if (this.#known) this.#sharedAt = this.#parts.clock.now()
    return this.#adopt(this.#decode(text), this.#parts.clock.now())
  }

  #decode(text: string | undefined): Found {
    if (text === undefined) return { text, entry: emptyEntry() }
    try {
      return { text, entry: decodeKeyEntry(this.#key, text) }
    } catch (error) {
      this.#known = undefined
      throw new DamagedEntryError(this.#key, error)
    }
  }

  #adopt(found: Found, seenAt: number, isCertain = true): Found {
    this.#known = found
    this.#knownAt = this.#parts.clock.now()
    this.#isCertain = isCertain
    this.#sightings.see(found.entry.locks.requests, seenAt)
    this.#parts.seen(this.#key, found)
    return found
  }

  /**
   * Locks the entry, in the order of arrival, until the next change. Until then, or until the lease ends, changes of
   * other boxes wait on the member. If other boxes have locked it for too long, it is not locked.
   */
  async #lock(): Promise<void> {
    this.#isLocked = await this.#parts.locks.tryLock(this.#key, LOCK_WAIT, LOCK_LEASE, true)
  }

  /** Locks the entry and reads it, usually in one round trip. */
  async #lockAndRead(until: number): Promise<void> {
    if (this.#isLocked) return
    const { clock } = this.#parts
    let readAt = 0
    const reading = this.#read(until).then(() => (readAt = clock.now()))
    await Promise.all([this.#lock(), reading])
    if (this.#isLocked && clock.now() - readAt > LOCKED_LATER) await this.#read(until)
  }

  /** Unlocks the entry if it is locked, without waiting. If that fails, the lock ends with its lease. */
  #unlock(): void {
    if (!this.#isLocked) return
    this.#isLocked = false
    this.#parts.locks.unlockOnce(this.#key).catch(() => undefined)
  }
}

/** Whether a request is about to claim the key. */
function isAboutToChange({ locks }: KeyEntry): boolean {
  return locks.requests.some(({ phase }) => phase === 'reserved')
}
