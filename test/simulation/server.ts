import type { Clock } from '../../src/base/clock.js'
import type {
  Awaitable,
  Listener,
  SessionInfo,
  Operation,
  OutcomeOf,
  RequestReport,
  RequestStatus,
  Versioned,
} from '../../src/engine/contract.js'
import type { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import type { History } from './history.js'
import type { ObservedTable } from './observed-table.js'
import type { ObservedStore } from './observed-store.js'
import type { Sources } from './sources.js'
import type { Timeline } from './timeline.js'
import { lockRequest } from '../support/lock-request.js'

/** A hint on its way to a session. */
export interface Hint {
  readonly type: 'wake' | 'lost' | 'changed'
  readonly session: string
  /** ID of the request, or the store key that has changed. */
  readonly id: string
}

/** The connection of the server with one session. */
export interface Peer {
  readonly name: string
  /** Whether {@link contended} reaches the process. */
  readonly reportsContention: boolean
  hint(hint: Hint): void
  /** Reports that another request wants the kept grant, within the call that wants it. */
  contended(id: string): void
}

/** An operation of a session, to repeat it later. */
export interface Applied {
  readonly session: string
  readonly operation: Operation
}

interface Known {
  readonly engine: MemoryEngine
  readonly peer: Peer
}

export interface Answer<O extends Operation> {
  readonly outcome: OutcomeOf<O>
  /** The keys that the operation reserved for other sessions. */
  readonly reserved: readonly string[]
}

/** A listener that ignores all notifications, for the observer. */
const deaf: Listener = {
  wake: () => {},
  lost: () => {},
  contended: () => {},
  reserved: () => {},
  changed: () => {},
  missed: () => {},
  ended: () => {},
}

/** Number of recent operations that can be sent again. */
const REMEMBERED = 50

/**
 * The server of the engine: the lock table and the store of the memory engine. It executes each operation in one step,
 * and shows it to the checks together with its hints.
 */
export class Server {
  readonly #space: MemorySpace
  readonly #sources: Sources
  readonly #timeline: Timeline
  readonly #history: History
  readonly #table: ObservedTable
  readonly #store: ObservedStore
  readonly #offset: number
  readonly #clock: Clock
  /** Inspects the server. Its session is not one of `#sessions`. */
  readonly #observer: MemoryEngine
  readonly #sessions = new Map<string, Known>()
  /** The hints of the current operations. An operation may be executed within another one. */
  readonly #hints: Hint[][] = []
  readonly recent: Applied[] = []

  /** @param offset offset of its clock, which cannot be compared with that of any process */
  constructor(
    sources: Sources,
    timeline: Timeline,
    history: History,
    table: ObservedTable,
    store: ObservedStore,
    offset: number,
  ) {
    this.#sources = sources
    this.#timeline = timeline
    this.#history = history
    this.#table = table
    this.#store = store
    this.#offset = offset
    this.#clock = { now: () => this.#now(), after: () => ({ cancel: () => {} }) }
    this.#space = new sources.MemorySpace(this.#clock)
    this.#observer = this.#engine()
    this.#observer.join({ session: 'observer', host: '', pid: 0, label: undefined }, deaf)
    history.origin = this.#firstNumber()
  }

  join(member: SessionInfo, peer: Peer): Awaitable<void> {
    const { session } = member
    const engine = this.#engine()
    this.#sessions.set(session, { engine, peer })
    return engine.join(member, this.#listener(session, peer))
  }

  leave(session: string): void {
    const known = this.#sessions.get(session)
    if (!known) return
    // A session that leaves gets no more hints.
    this.#sessions.delete(session)
    this.#execute(session, known, { type: 'revoke', session })
    known.engine.leave()
  }

  /** Executes an operation and notifies the sessions that it concerns. */
  execute<O extends Operation>(session: string, operation: O): Answer<O> {
    return this.#execute(session, this.#sessions.get(session)!, operation)
  }

  knows(session: string): boolean {
    return this.#sessions.has(session)
  }

  #execute<O extends Operation>(session: string, { engine, peer }: Known, operation: O): Answer<O> {
    const hints: Hint[] = []
    this.#hints.push(hints)
    const outcome = engine.submit(operation)
    this.#hints.pop()
    this.#history.note('server', `${peer.name} ${operation.type}`, { operation, outcome, hints })
    this.#store.applied(operation, outcome)
    this.#table.applied(session, operation, outcome, hints)
    this.recent.push({ session, operation })
    if (this.recent.length > REMEMBERED) this.recent.shift()
    const reserved = hints
      .filter(hint => hint.type === 'wake' && hint.session !== session)
      .flatMap(({ id }) => this.#table.keyOf(id) ?? [])
    for (const hint of hints) this.#sessions.get(hint.session)?.peer.hint(hint)
    // The hints were sent after the engine's answer, so a process that received one may have sent another request
    // since.
    return { outcome: peer.reportsContention && hints.length === 0 ? outcome : notAlone(outcome), reserved }
  }

  /** Returns all requests, as the lock table reports them. The engine first releases grants that it only kept. */
  inspect(): readonly RequestReport[] {
    return this.#observer.submit({ type: 'inspect', prefix: '' })
  }

  value(key: string): Versioned {
    return this.#observer.submit({ type: 'read', keys: [key], ids: [] }).values[0]!
  }

  #engine(): MemoryEngine {
    return new this.#sources.MemoryEngine('simulated:', this.#space, this.#clock)
  }

  #firstNumber(): number {
    const request = lockRequest('observer.first', [{ key: 'first', mode: 'exclusive' }])
    const standing = this.#observer.submit({ type: 'enqueue', request, lease: 1000, wait: 0 })
    this.#observer.submit({ type: 'cancel', request })
    return standing.state === 'held' ? standing.number : NaN
  }

  #now(): number {
    return this.#timeline.now + this.#offset
  }

  #listener(session: string, peer: Peer): Listener {
    const collect = (type: Hint['type'], id: string): void =>
      void this.#hints.at(-1)!.push({ type, session, id })
    return {
      wake: id => collect('wake', id),
      lost: id => collect('lost', id),
      contended: id => peer.contended(id),
      reserved: () => {},
      changed: key => collect('changed', key),
      missed: () => {},
      ended: () => {},
    }
  }
}

/** Returns the outcome of an engine that cannot guarantee to report other requests. */
function notAlone<Outcome>(outcome: Outcome): Outcome {
  const status = outcome as RequestStatus | undefined
  return status?.state === 'held' ? { ...outcome, isUncontended: false } : outcome
}
