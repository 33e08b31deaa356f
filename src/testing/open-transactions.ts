import type { Clock } from '../base/clock.js'
import type { Claim } from '../engine/claim.js'
import type {
  Commit,
  CommitOutcome,
  Inspect,
  Listener,
  LockRequest,
  RequestReport,
  RequestStatus,
  SqlTransaction,
} from '../engine/contract.js'
import { MemoryEngine, type MemorySpace } from '../engines/memory/memory-engine.js'
import { UnavailableError } from '../base/errors.js'
import { pause } from '../base/pause.js'
import { executeIn, type CallersTransaction } from './box-statement.js'

/**
 * Maximum time for which a write waits for a value that an open transaction has locked, in milliseconds, as on
 * PostgreSQL.
 */
const LOCKED_FOR = 2000

const NOBODY: Listener = {
  wake: () => undefined,
  lost: () => undefined,
  contended: () => undefined,
  reserved: () => undefined,
  changed: () => undefined,
  missed: () => undefined,
  ended: () => undefined,
}

/** An open transaction as a holder, as PostgreSQL shows it. */
const OPEN_TRANSACTION = {
  session: 'transaction',
  host: '',
  pid: 0,
  label: 'an open transaction',
  phase: 'held',
  number: 0,
  expiresIn: 0,
} as const

type Queued = RequestStatus & { readonly state: 'queued' }

/** The locks and values that a transaction of the test holds until its end. */
interface Part {
  readonly transaction: CallersTransaction
  readonly keys: ReadonlySet<string>
  /** Time at which it bound them, by the clock of the test. */
  readonly since: number
  /** The store keys that it has read or written. */
  readonly values: ReadonlySet<string>
  readonly ended: Promise<void>
}

/** The open transactions of the test's clients that bind grants and values of one memory. */
export class OpenTransactions {
  /** The engine that ends transactions, also those that outlast the box. */
  readonly #memory: MemoryEngine
  readonly #clock: Clock
  readonly #parts = new Set<Part>()

  constructor(space: MemorySpace, clock: Clock) {
    this.#memory = new MemoryEngine('memory:', space, clock)
    this.#memory.join({ session: 'transactions', host: '', pid: 0, label: undefined }, NOBODY)
    this.#clock = clock
    space.state.isBound = key => [...this.#parts].some(({ keys }) => keys.has(key))
  }

  /** @param failure the reason why the statement fails; undefined if it succeeds. */
  async commitWithin(
    commit: Commit,
    transaction: SqlTransaction,
    failure: string | undefined,
  ): Promise<CommitOutcome> {
    let outcome!: CommitOutcome
    await executeIn(this.#memory.name, transaction, async within => {
      if (failure !== undefined) throw new Error(failure)
      for (let other; (other = this.#locking(commit, within));) await other.ended
      // This only checks. The writes follow when the transaction commits.
      outcome = this.#memory.submit({ ...commit, writes: [], record: [], release: false })
      if (outcome.state === 'committed') this.#add(commit, within)
    })
    return outcome
  }

  /** Waits until no open transaction has locked the values of a commit. @throws UnavailableError after two seconds */
  async unlocked(commit: Commit): Promise<void> {
    const over = new AbortController()
    let isOver = false
    const timeout = pause(LOCKED_FOR, this.#clock, over.signal).then(() => void (isOver = true))
    try {
      for (let other; (other = this.#locking(commit));) {
        await Promise.race([other.ended, timeout])
        if (!isOver) continue
        const { name } = this.#memory
        const text = `could not commit on ${name}: another transaction has locked the value`
        throw new UnavailableError(text, { engine: name })
      }
    } finally {
      over.abort()
    }
  }

  /** Inspects keys. Reports a transaction as the holder of a key that it keeps while no grant holds the key. */
  inspect(operation: Inspect): readonly RequestReport[] {
    const reports = this.#memory.submit(operation)
    const held = new Set(reports.filter(({ phase }) => phase === 'held').map(({ key }) => key))
    const { prefix, exact = false } = operation
    const kept = [...this.#parts].flatMap(({ keys, since }) =>
      [...keys]
        .filter(key => (exact ? key === prefix : key.startsWith(prefix)) && !held.has(key))
        .map(key => ({ ...OPEN_TRANSACTION, key, claim: exclusive(key), age: this.#clock.now() - since })),
    )
    return [...kept, ...reports]
  }

  /** Returns the status of a waiting request. If no grant holds its keys, a transaction is the holder. */
  withHolder({ claims }: LockRequest, status: Queued): Queued {
    if (status.holder) return status
    const part = [...this.#parts].find(({ keys }) => claims.some(({ key }) => keys.has(key)))
    if (!part) return status
    const { session, host, pid, label } = OPEN_TRANSACTION
    return { ...status, holder: { session, host, pid, label, age: this.#clock.now() - part.since } }
  }

  isLocked(commit: Commit): boolean {
    return this.#locking(commit) !== undefined
  }

  #locking(commit: Commit, within?: CallersTransaction): Part | undefined {
    const keys = valuesOf(commit)
    return [...this.#parts].find(
      ({ transaction, values }) => transaction !== within && keys.some(key => values.has(key)),
    )
  }

  #add(commit: Commit, transaction: CallersTransaction): void {
    const claims = commit.guard?.request.claims ?? []
    const keys = claims.filter(({ mode }) => mode === 'exclusive').map(({ key }) => key)
    transaction.onEnd.push(isCommitted => {
      this.#parts.delete(part)
      if (isCommitted && commit.writes.length + commit.record.length > 0)
        this.#memory.submit({ ...commit, guard: undefined, expect: [], release: false })
      this.#memory.submit({ type: 'sweepExpired', keys })
      end()
    })
    let end!: () => void
    const ended = new Promise<void>(resolve => (end = resolve))
    const since = this.#clock.now()
    const part: Part = { transaction, keys: new Set(keys), since, values: new Set(valuesOf(commit)), ended }
    this.#parts.add(part)
  }
}

function exclusive(key: string): Claim {
  return { key, mode: 'exclusive' }
}

function valuesOf({ expect, writes }: Commit): string[] {
  return [...expect, ...writes].map(({ key }) => key)
}
