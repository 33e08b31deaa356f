import type { Session } from './core/session.js'
import { follow, type Found } from './store/follow.js'
import { Store } from './store/store.js'
import {
  aboutTask,
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  shown,
  UnavailableError,
} from './errors.js'
import { numberOf, type Grant } from './core/grant.js'
import type { LockOptions } from './core/lock-options.js'
import type { Lock } from './core/lock.js'
import { mutex } from './core/mutex.js'
import { checkKey } from './options.js'
import { pause } from './pause.js'
import { electionKey } from './reserved-keys.js'

/** The leader of an election. */
export interface Leader {
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  /** The fencing token of the term. */
  readonly token: bigint
}

/** A leader as it is stored: JSON has no bigint. */
interface StoredLeader {
  session: string
  host: string
  pid: number
  label?: string
  token: string
}

/** Options of a leader. */
export interface LeadOptions extends LockOptions {
  /**
   * Whether the caller stands again after an outage, after the loss of the lead, and after any other error that `task`
   * throws. It pauses for a second before; if the task fails again within 10 seconds, twice as long each time, up to 10
   * seconds. A function receives each error, and ends the lead with it by returning false, or a promise of that, or by
   * throwing that error. If the function fails with another error, that is a warning of the process, and the caller
   * stands again. With `true` each error is a warning of the process. The lead also ends with invalid options, with a
   * `wait` that is over, when `signal` aborts, and when the box is closed. Default false: `lead` throws each error.
   */
  again?: boolean | ((error: unknown) => unknown) | undefined
}

/** One of many callers leads. When it resigns or is lost, the next waiter leads. */
export interface Election {
  /**
   * Waits until this caller leads, calls `task` with the term's grant, and resigns when the task ends. `grant.signal`
   * aborts when the lead is lost: then the task has to end. With `again` the caller stands again after an error:
   *
   * ```ts
   * await election.lead(work, { again: error => console.warn(error) })
   * ```
   *
   * @returns what the task returns when it ends as the leader
   * @throws what `Lock.run` throws; with `again` only what ends the lead
   */
  lead<T>(task: (grant: Grant) => T | Promise<T>, options?: LeadOptions): Promise<T>
  /**
   * Waits until this caller leads. It leads until it releases the grant.
   * @throws what `Lock.acquire` throws
   */
  campaign(options?: LockOptions): Promise<Grant>
  /**
   * The present leader, as far as is known; undefined when there is none.
   * @throws UnavailableError, ClosedError; IndeterminateError when the answer never came
   */
  leader(): Promise<Leader | undefined>
  /**
   * Yields the present leader, and the leader after each change, until the loop is left or the signal aborts. If the
   * message about a change is lost, the change is found within 10 seconds, see {@link Store.watch}. When a leader's
   * process ended or its lease ran out without a resignation, the watch yields only the next leader;
   * {@link Election.leader} knows of the end before.
   * @throws what `Store.watch` throws
   */
  observe(signal?: AbortSignal): AsyncGenerator<Leader | undefined, void, void>
}

/** An election is a mutex whose holder stores that it leads. */
class MutexElection implements Election {
  readonly #session: Session
  readonly #name: string
  readonly #mutex: Lock
  readonly #terms: Store

  constructor(session: Session, name: string) {
    this.#session = session
    // Refused here, because a leader would find it out only after it holds the lock.
    checkKey('name of an election with its store', `${TERMS}/${name}`)
    this.#name = name
    this.#mutex = mutex(session, [electionKey(name)])
    // No events about writes: a listener gets those of the lock, and the caller has written nothing itself.
    this.#terms = new Store(session, TERMS, {}, false)
  }

  async lead<T>(task: (grant: Grant) => T | Promise<T>, options?: LeadOptions): Promise<T> {
    // The lock itself refuses options that are not an object.
    if (typeof options !== 'object' || options === null || !('again' in options))
      return this.#lead(task, options)
    const { again = false, ...term } = options
    if (typeof again !== 'boolean' && typeof again !== 'function') {
      const refused = new InvalidArgumentError(`again must be true, false or a function, not ${shown(again)}`)
      throw aboutTask(refused, false)
    }
    const { signal } = term
    const { clock } = this.#session
    let failures = 0
    for (;;) {
      let ledSince: number | undefined
      const during = (grant: Grant): T | Promise<T> => {
        ledSince = clock.now()
        return task(grant)
      }
      try {
        return await this.#lead(typeof task === 'function' ? during : task, term)
      } catch (error) {
        const canPass = ledSince !== undefined || isOutageOrLoss(error)
        if (again === false || !canPass || signal?.aborted || this.#session.refusal()) throw error
        if (ledSince === undefined) failures = 0
        else failures = clock.now() - ledSince < MAX_PAUSE ? failures + 1 : 1
        if (!(await this.#mayStandAgain(again, error))) throw error
      }
      const length = Math.min(STAND_AGAIN * 2 ** Math.max(failures - 1, 0), MAX_PAUSE)
      await pause(length, clock, signal, this.#session.over)
    }
  }

  async campaign(options?: LockOptions): Promise<Grant> {
    const grant = await this.#mutex.acquire(options)
    try {
      await this.#announce(grant, options?.label)
    } catch (error) {
      await grant.release().catch(() => undefined)
      throw error
    }
    return new Term(grant, () => this.#withdraw(grant))
  }

  async leader(): Promise<Leader | undefined> {
    return this.#leading((await this.#terms.get(this.#name))?.value)
  }

  async *observe(signal?: AbortSignal): AsyncGenerator<Leader | undefined, void, void> {
    const read = async (): Promise<Found<Leader | undefined>> => {
      const entry = await this.#terms.get(this.#name)
      return { value: await this.#leading(entry?.value), version: entry?.version ?? 0 }
    }
    const { clock } = this.#session
    yield* follow(task => this.#session.watch(`${TERMS}/${this.#name}`, task), read, clock, signal)
  }

  async #mayStandAgain(again: true | ((error: unknown) => unknown), error: unknown): Promise<boolean> {
    if (again === true) {
      this.#warn('after', error)
      return true
    }
    try {
      return (await again(error)) !== false
    } catch (own) {
      if (own === error) return false
      // A report that fails, as in the same outage, must not leave the election without a leader.
      this.#warn('although `again` failed', own)
      return true
    }
  }

  #warn(why: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    process.emitWarning(`election '${this.#name}' stands again ${why}: ${message}`, 'SignalboxWarning')
  }

  /** Leads for one term. */
  async #lead<T>(task: (grant: Grant) => T | Promise<T>, options: LockOptions | undefined): Promise<T> {
    let began = false
    try {
      if (typeof task !== 'function')
        throw new InvalidArgumentError(`the task of lead must be a function, not ${shown(task)}`)
      return await this.#mutex.run(async grant => {
        await this.#announce(grant, options?.label)
        began = true
        try {
          return await task(grant)
        } finally {
          await this.#withdraw(grant)
        }
      }, options)
    } catch (error) {
      throw began ? error : aboutTask(error, false)
    }
  }

  /** The stored leader if its term still holds the lock: a leader that crashed could not delete its term. */
  async #leading(stored: unknown): Promise<Leader | undefined> {
    if (!isStoredLeader(stored)) return undefined
    const { session, host, pid, label } = stored
    const token = BigInt(stored.token)
    const requests = await this.#session.submit({
      type: 'inspect',
      prefix: electionKey(this.#name),
      exact: true,
    })
    const leads = requests.some(({ phase, number }) => phase === 'held' && number === numberOf(token))
    return leads ? { session, host, pid, label, token } : undefined
  }

  /** Stores the term, unless a later one is stored already. */
  async #announce(grant: Grant, label: string | undefined): Promise<void> {
    const { session, host, pid, label: ofBox } = this.#session.member
    const term = { session, host, pid, label: label ?? ofBox, token: String(grant.token) }
    for (;;) {
      const entry = await this.#terms.get(this.#name)
      grant.assertHeld()
      if ((await this.#terms.compareAndSet(this.#name, entry?.version ?? 0, term)) !== undefined) return
    }
  }

  /**
   * Deletes the stored term if it is still this one. If that fails, `leader` still finds that the term is over. So the
   * failure must neither keep the lock held nor hide the result or error of the task.
   */
  async #withdraw(grant: Grant): Promise<void> {
    try {
      const entry = await this.#terms.get(this.#name)
      if (isStoredLeader(entry?.value) && entry.value.token === String(grant.token))
        await this.#terms.delete(this.#name, entry.version)
    } catch {
      // See above.
    }
  }
}

/** The grant of a lead. Its release deletes the stored term first. */
class Term implements Grant {
  readonly #grant: Grant
  readonly #withdraw: () => Promise<void>

  constructor(grant: Grant, withdraw: () => Promise<void>) {
    this.#grant = grant
    this.#withdraw = withdraw
  }

  get token(): bigint {
    return this.#grant.token
  }

  get keys(): readonly string[] {
    return this.#grant.keys
  }

  get signal(): AbortSignal {
    return this.#grant.signal
  }

  assertHeld(): void {
    this.#grant.assertHeld()
  }

  fence(transaction: object): Promise<void> {
    return this.#grant.fence(transaction)
  }

  expiresIn(): number {
    return this.#grant.expiresIn()
  }

  async release(): Promise<void> {
    await this.#withdraw()
    await this.#grant.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#withdraw()
    await this.#grant[Symbol.asyncDispose]()
  }
}

const TERMS = 'signalbox-elections'

/** False for a value that something else has written, which the next leader overwrites. */
function isStoredLeader(value: unknown): value is StoredLeader {
  if (typeof value !== 'object' || value === null) return false
  const { session, host, pid, token } = value as { readonly [key in keyof StoredLeader]: unknown }
  const isMember = typeof session === 'string' && typeof host === 'string' && typeof pid === 'number'
  return isMember && typeof token === 'string' && /^\d+$/.test(token)
}

/** How long after an error a caller stands again: milliseconds. A task that fails at once must not spin. */
const STAND_AGAIN = 1000
const MAX_PAUSE = 10_000

function isOutageOrLoss(error: unknown): boolean {
  return (
    error instanceof UnavailableError || error instanceof IndeterminateError || error instanceof LostError
  )
}

/** @throws InvalidArgumentError when the name is invalid. */
export function election(session: Session, name: string): Election {
  return new MutexElection(session, name)
}
