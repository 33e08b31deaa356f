import type { Session } from './core/session.js'
import { follow, type Found } from './store/follow.js'
import { Store } from './store/store.js'
import {
  withTaskBegan,
  DamagedValueError,
  IndeterminateError,
  InvalidArgumentError,
  LostError,
  shown,
  UnavailableError,
} from './base/errors.js'
import { DelegatingGrant } from './core/delegating-grant.js'
import { numberOf, type Grant } from './core/grant.js'
import type { LockOptions } from './core/lock-options.js'
import type { Lock } from './core/lock.js'
import { mutex } from './core/mutex.js'
import { failureText } from './base/failure-text.js'
import { checkKey, checkTask } from './base/options.js'
import { printedAs } from './base/printed.js'
import { needsReceiver } from './base/receiver.js'
import { pause } from './base/pause.js'
import { electionKey } from './base/reserved-keys.js'

/** The leader of an election. */
export interface Leader {
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  /** The fencing token of the term. */
  readonly token: bigint
}

/** A leader as it is stored, because JSON has no bigint. */
interface StoredLeader {
  session: string
  host: string
  pid: number
  label?: string | undefined
  token: string
}

/** Options of {@link Election.lead}. */
export interface LeadOptions extends LockOptions {
  /**
   * Whether the caller becomes a candidate again after an outage, after the loss of its lead, and after any error of
   * `task`; default false: `lead` throws the error. It first pauses for a second; if the task fails again within 10
   * seconds, twice as long each time, up to 10 seconds. A function receives each error. `lead` throws the error if the
   * function returns false, or a promise of false, or throws that error. If the function throws another error, the
   * process emits a warning, and the caller is a candidate again. With `true` the process emits a warning for each
   * error. `lead` also throws on invalid options, when `wait` has passed, when `signal` aborts, and when the box is
   * closed.
   */
  again?: boolean | ((error: unknown) => unknown) | undefined
}

/** Elects one leader among many candidates. When it resigns or dies, the next candidate leads. */
export interface Election {
  /**
   * Waits until this caller leads, calls `task` with the grant of its term, and resigns when the task ends. The task
   * must end when `grant.signal` aborts, because then the lead is lost. With `again` the caller is a candidate again
   * after an error:
   *
   * ```ts
   * await election.lead(work, { again: error => console.warn(error) })
   * ```
   *
   * If the term can't be stored in an outage, the caller tries again for 10 seconds at most, while it holds its lock.
   * @returns the result of the task
   * @throws what `Lock.run` throws; with `again`, only the errors that its option names
   */
  lead<T>(task: (grant: Grant) => T | Promise<T>, options?: LeadOptions): Promise<T>
  /**
   * Waits until this caller leads, and returns the grant. It leads until it releases the grant.
   * @throws what `Lock.acquire` throws
   */
  campaign(options?: LockOptions): Promise<Grant>
  /**
   * Returns the current leader; undefined if there is none.
   * @throws DamagedValueError while another program's value is in place of the term; UnavailableError, ClosedError;
   * IndeterminateError when the engine did not reply
   */
  leader(): Promise<Leader | undefined>
  /**
   * Yields the current leader, and the leader after each change, until the loop ends or the signal aborts. If the
   * message about a change is lost, the change is found within 10 seconds, see {@link Store.watch}. When a leader's
   * process dies or its lease expires, this yields only the next leader; {@link Election.leader} returns undefined
   * before.
   * @throws what `Store.watch` throws
   */
  observe(signal?: AbortSignal): AsyncGenerator<Leader | undefined, void, void>
}

/** An election by a mutex, whose holder stores its term. */
export class MutexElection implements Election {
  readonly #session: Session
  readonly #name: string
  readonly #mutex: Lock
  readonly #terms: Store

  static {
    needsReceiver(this)
    printedAs(this, 'Election', election => ({ name: election.#name, engine: election.#session.engine.name }))
  }

  /** @throws InvalidArgumentError when the name is invalid. */
  constructor(session: Session, name: string) {
    this.#session = session
    // Checked here, because otherwise a leader would get this error only when it holds the lock.
    checkKey('name of an election with its store', `${TERMS}/${name}`)
    this.#name = name
    this.#mutex = mutex(session, [electionKey(name)])
    // No events about writes: the caller writes nothing itself, and the lock publishes its own events.
    this.#terms = new Store(session, TERMS, {}, false)
  }

  async lead<T>(task: (grant: Grant) => T | Promise<T>, options?: LeadOptions): Promise<T> {
    // The lock refuses options that are not an object.
    if (typeof options !== 'object' || options === null || !('again' in options))
      return this.#lead(task, options)
    const { again = false, ...term } = options
    if (typeof again !== 'boolean' && typeof again !== 'function') {
      const refused = new InvalidArgumentError(`again must be true, false or a function, not ${shown(again)}`)
      throw withTaskBegan(refused, false)
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
        if (!(await this.#mayRetry(again, error))) throw error
      }
      const length = Math.min(MIN_PAUSE * 2 ** Math.max(failures - 1, 0), MAX_PAUSE)
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

  async #mayRetry(again: true | ((error: unknown) => unknown), error: unknown): Promise<boolean> {
    if (again === true) {
      this.#warn('after', error)
      return true
    }
    try {
      return (await again(error)) !== false
    } catch (own) {
      if (own === error) return false
      // A function that fails, perhaps in the same outage, must not leave the election without a leader.
      this.#warn('although `again` failed', own)
      return true
    }
  }

  #warn(why: string, error: unknown): void {
    process.emitWarning(
      `election '${this.#name}' stands again ${why}: ${failureText(error)}`,
      'SignalboxWarning',
    )
  }

  async #lead<T>(task: (grant: Grant) => T | Promise<T>, options: LockOptions | undefined): Promise<T> {
    let began = false
    try {
      checkTask('lead', task, 'lead(task, options)')
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
      throw began ? error : withTaskBegan(error, false)
    }
  }

  /** The stored leader, if it still holds the lock. A leader that crashed has not deleted its term. */
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

  /**
   * Stores the term of the grant. In an outage it tries again, while the grant is held.
   * @throws LostError when the grant is lost; the error of an outage that lasts
   */
  async #announce(grant: Grant, label: string | undefined): Promise<void> {
    const { member, clock, over } = this.#session
    const { session, host, pid, label: ofBox } = member
    const term = { session, host, pid, label: label ?? ofBox, token: String(grant.token) }
    const until = clock.now() + MAX_PAUSE
    for (let length = MIN_RETRY; ; length = Math.min(2 * length, MIN_PAUSE)) {
      try {
        if (await this.#put(term, grant)) return
      } catch (error) {
        if (!isOutage(error) || clock.now() + length > until) throw error
        await pause(length, clock, grant.signal, over)
        grant.assertHeld()
      }
    }
  }

  /**
   * Stores a term in place of the one that is there. Returns false if another one was stored meanwhile.
   * @throws LostError when the grant is lost; what a store throws
   */
  async #put(term: StoredLeader, grant: Grant): Promise<boolean> {
    const before = await this.#term()
    grant.assertHeld()
    // An earlier attempt that was not answered may have stored it.
    if (isStoredLeader(before.value) && before.value.token === term.token) return true
    // Without a version, a late write could replace the term of a later leader.
    if (before.version !== undefined)
      return (await this.#terms.compareAndSet(this.#name, before.version, term)) !== undefined
    await this.#terms.put(this.#name, term)
    return true
  }

  /** The stored term. Its version is undefined only if the value is damaged so that it can't be read, either. */
  async #term(): Promise<{ readonly value?: unknown; readonly version: number | undefined }> {
    try {
      return (await this.#terms.get(this.#name)) ?? { version: 0 }
    } catch (error) {
      if (error instanceof DamagedValueError) return { version: error.version }
      throw error
    }
  }

  /**
   * Deletes the stored term, if it is still this one. If that fails, `leader` still finds that nobody holds the lock.
   * So the failure must neither prevent the release nor replace the result or error of the task.
   */
  async #withdraw(grant: Grant): Promise<void> {
    try {
      const entry = await this.#terms.get(this.#name)
      if (isStoredLeader(entry?.value) && entry.value.token === String(grant.token))
        await this.#terms.delete(this.#name, entry.version)
    } catch {
      // `leader` compares the term with the holder of the lock.
    }
  }
}

/** The grant of a term. Its release first deletes the stored term. */
class Term extends DelegatingGrant {
  readonly #withdraw: () => Promise<void>

  constructor(grant: Grant, withdraw: () => Promise<void>) {
    super(grant)
    this.#withdraw = withdraw
  }

  async release(): Promise<void> {
    await this.#withdraw()
    await this.held.release()
  }
}

const TERMS = 'signalbox-elections'

/** False for a value that another program has written. The next leader overwrites it. */
function isStoredLeader(value: unknown): value is StoredLeader {
  if (typeof value !== 'object' || value === null) return false
  const { session, host, pid, token } = value as { readonly [key in keyof StoredLeader]: unknown }
  const isMember = typeof session === 'string' && typeof host === 'string' && typeof pid === 'number'
  return isMember && typeof token === 'string' && /^\d+$/.test(token)
}

/** Bounds of the pause after an error, in milliseconds, so that a task that fails at once does not spin. */
const MIN_PAUSE = 1000
const MAX_PAUSE = 10_000

/** The first pause after an outage while a term is stored, in milliseconds. */
const MIN_RETRY = 50

function isOutage(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof IndeterminateError
}

function isOutageOrLoss(error: unknown): boolean {
  return isOutage(error) || error instanceof LostError
}
