import type { Clock } from '../../clock.js'
import type { Guarantees } from '../../guarantees.js'
import { LockTable, type Effect } from '../../locks/table.js'
import { decideCommit, readAll } from '../../store/commit.js'
import type {
  ClaimReserved,
  Commit,
  CommitOutcome,
  Engine,
  Enqueue,
  Listener,
  Member,
  Operation,
  OutcomeOf,
  Outcomes,
  ReadSet,
  Standing,
} from '../engine.js'
import { MemoryState } from './state.js'

/** What the memory engine promises, and what it can't. */
export const memoryGuarantees: Guarantees = {
  engine: 'memory',
  scope: 'thread',
  deadHolder: 'at once',
  durability: 'process',
  weaknesses: [
    {
      promise: 'P2',
      how: 'Tokens begin at the wall clock when the process starts, so a wall clock that was set back between two runs lets them fall.',
    },
    { promise: 'P13', how: 'State lives in the process and ends with it.' },
  ],
}

/** How many commits go by until recorded ids are looked through for old ones. */
const COMMITS_PER_SWEEP = 4096

/** What all boxes of one `memory:` name share: one lock table and one store. */
export class MemorySpace {
  readonly state = new MemoryState(Date.now() * 1000)
  readonly effects: Effect[] = []
  readonly table = new LockTable(this.state, this.effects)
  readonly listeners = new Map<string, Listener>()
  /** By store key: the sessions that watch it. */
  readonly watchers = new Map<string, Set<string>>()
  commitsToSweep = COMMITS_PER_SWEEP
}

/** The lock table in a variable: locks and state within one thread, every answer at once. */
export class MemoryEngine implements Engine {
  readonly guarantees = memoryGuarantees
  readonly tellsWanted = true
  readonly #space: MemorySpace
  readonly #clock: Clock
  #session = ''

  constructor(
    readonly name: string,
    space: MemorySpace,
    clock: Clock,
  ) {
    this.#space = space
    this.#clock = clock
  }

  join(member: Member, listener: Listener): void {
    this.#session = member.session
    this.#space.state.join(member)
    this.#space.listeners.set(member.session, listener)
  }

  submit<O extends Operation>(operation: O): OutcomeOf<O>
  submit(operation: Operation): Outcomes[keyof Outcomes] {
    const now = this.#clock.now()
    const outcome = this.#carryOut(operation, now)
    if (this.#space.effects.length > 0) this.#tell()
    return outcome
  }

  leave(): void {
    const { state, listeners, watchers } = this.#space
    listeners.delete(this.#session)
    for (const sessions of watchers.values()) sessions.delete(this.#session)
    this.submit({ type: 'revoke', session: this.#session })
    state.leave(this.#session)
  }

  #carryOut(operation: Operation, now: number): Outcomes[keyof Outcomes] {
    switch (operation.type) {
      case 'enqueue':
        for (const claim of operation.claims) this.#tellWanted(claim.key)
        return this.#read(operation, now)
      case 'claim':
        return this.#read(operation, now)
      case 'inspect':
        // What is kept without being used is nobody's.
        for (const key of this.#space.state.keys(operation.prefix)) this.#tellWanted(key)
        return this.#space.table.decide(operation, now)
      case 'read':
        return readAll(this.#space.state, operation satisfies ReadSet)
      case 'commit':
        return this.#commit(operation, now)
      case 'watch':
        this.#watchersOf(operation.key).add(operation.session)
        return undefined
      case 'unwatch': {
        const sessions = this.#watchersOf(operation.key)
        sessions.delete(operation.session)
        if (sessions.size === 0) this.#space.watchers.delete(operation.key)
        return undefined
      }
      default:
        return this.#space.table.decide(operation, now)
    }
  }

  #read(operation: Enqueue | ClaimReserved, now: number): Standing {
    const standing = this.#space.table.decide(operation, now)
    if (!operation.read || standing.state !== 'held') return standing
    return { ...standing, read: readAll(this.#space.state, operation.read) }
  }

  #tellWanted(key: string): void {
    const queue = this.#space.state.queue(key)
    if (!queue) return
    // A copy, because whoever does not use its grant gives it back within the call.
    for (const { request } of [...queue]) {
      if (request.phase === 'held') this.#space.listeners.get(request.session)?.wanted(request.id)
    }
  }

  #commit(commit: Commit, now: number): CommitOutcome {
    const { state, table, watchers, listeners } = this.#space
    const { guard } = commit
    const outcome = decideCommit(
      state,
      commit,
      !guard || table.holding(guard.id, guard.number, now) !== undefined,
      now,
    )
    if (outcome.state !== 'committed') return outcome
    if (guard && commit.release) table.decide({ type: 'release', ...guard }, now)
    for (const { key } of watchers.size > 0 ? commit.writes : []) {
      for (const session of watchers.get(key) ?? []) listeners.get(session)?.changed(key)
    }
    if (commit.record.length > 0 && --this.#space.commitsToSweep <= 0) {
      this.#space.commitsToSweep = COMMITS_PER_SWEEP
      state.forgetIds(now)
    }
    return outcome
  }

  #watchersOf(key: string): Set<string> {
    const { watchers } = this.#space
    const sessions = watchers.get(key) ?? new Set()
    watchers.set(key, sessions)
    return sessions
  }

  /**
   * Tells the boxes, whose answers may cause further effects: those find an emptied list of their own. A reservation
   * is claimed within this call, so nobody has to look after its window.
   */
  #tell(): void {
    const { effects, listeners } = this.#space
    for (const { type, session, id } of effects.splice(0)) listeners.get(session)?.[type](id)
  }
}
