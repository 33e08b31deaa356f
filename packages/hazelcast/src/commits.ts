import {
  LockTable,
  decideCommit,
  type Clock,
  type Commit,
  type CommitOutcome,
  type Granted,
  type RecordedId,
  type StoreState,
  type Versioned,
} from 'signalbox/engine'
import { pause } from './call.js'
import type { DeadSets } from './dead-sets.js'
import type { Decisions } from './decisions.js'
import type { Decided, KeyChange, RecordedIds } from './key-entry.js'
import { homeOf, type OpenEntry } from './open-entry.js'
import type { KeyValue, Reads } from './reads.js'

/** The result of the commit of a set. */
export interface SetCommit {
  readonly outcome: CommitOutcome
  /** Settles when its keys are written, or are left to the next box that finds the commit. */
  readonly written: Promise<void>
}

/** The decision of a set's home about the commit of the set. */
type AtHome =
  | { readonly state: 'overwritten'; readonly stamps: readonly (readonly [key: string, stamp: number])[] }
  | { readonly state: 'done'; readonly outcome: CommitOutcome; readonly decided?: Decided }

/** Writes values. */
export class Commits {
  readonly #decisions: Decisions
  readonly #reads: Reads
  readonly #dead: DeadSets
  readonly #clock: Clock

  constructor(decisions: Decisions, reads: Reads, dead: DeadSets, clock: Clock) {
    this.#clock = clock
    this.#decisions = decisions
    this.#reads = reads
    this.#dead = dead
  }

  /**
   * Commits the writes of a set. Its home decides the commit in one step, and then any box can write the other keys.
   */
  async ofSet(commit: Commit, guard: Granted): Promise<SetCommit> {
    const { request } = guard
    const home = homeOf(request.claims)
    const others = request.claims.map(({ key }) => key).filter(key => key !== home)
    for (let isFirst = true; ; isFirst = false) {
      // Writes without a lock, made since the set has the keys, are announced at its home.
      const known = await this.#reads.values(others, isFirst ? request.id : undefined)
      const decision = await this.#decisions.at(home, (state, machine, now): AtHome => {
        const stamps = [...state.overwritten(request.id)].filter(
          ([key, stamp]) => stamp > known.get(key)!.stamp,
        )
        // mutant: commit-ignores-overwritten
        if (stamps.length > 0) return { state: 'overwritten', stamps }
        const store = new SetStore(state, known)
        const holds = new LockTable(state, () => undefined).holding(guard, now) !== undefined
        const outcome = decideCommit(store, commit, holds)
        if (outcome.state !== 'committed') return { state: 'done', outcome }
        const changes = others.map(key => store.changeOf(key))
        const decided = { id: request.id, number: guard.number, changes }
        // mutant: commit-not-kept
        state.decide(decided)
        machine.decide({ type: 'release', request, number: guard.number }, now)
        return { state: 'done', outcome, decided }
      })
      if (decision.state === 'overwritten') {
        // A write without a lock that has not happened yet must be announced again.
        await Promise.all(
          decision.stamps.map(([key, stamp]) => this.#decisions.at(key, state => state.raiseStamp(stamp))),
        )
        continue
      }
      const { outcome, decided } = decision
      // The commit is decided. If writing its keys fails here, the next box that finds it writes them.
      const written = decided ? this.#dead.apply(home, decided).catch(() => undefined) : Promise.resolve()
      return { outcome, written }
    }
  }

  /** Writes a key without a lock. */
  async alone(commit: Commit, key: string): Promise<CommitOutcome> {
    /** The stamps with which the write was announced, by set. */
    const announced = new Map<string, number>()
    for (;;) {
      const done = await this.#decisions.at(key, (state, machine, now) => {
        const holders = state.holders()
        const sets = holders.filter(({ id }) => (announced.get(id) ?? 0) <= state.stamp)
        if (sets.length > 0) return { sets, stamp: state.stamp }
        state.raiseStamp(Math.max(0, ...holders.map(({ id }) => announced.get(id)!)))
        return { outcome: machine.decide(commit, now) }
      })
      if (done.outcome) return done.outcome
      // Each set that holds the key learns of the write before it happens, or has committed before.
      await Promise.all(
        done.sets.map(async ({ id, home }) => {
          const stamp = await this.#decisions.at(home, state => {
            if (!state.part(id)) return undefined
            const version = state.versionAbove(Math.max(state.stamp, done.stamp))
            state.overwrite(id, key, version)
            return version
          })
          if (stamp !== undefined) announced.set(id, stamp)
          else if (await this.#dead.free(key)) await pause(this.#clock, true)
        }),
      )
    }
  }
}

/** The values of a set: that of its home in the entry, the others as they were read. */
class SetStore implements StoreState {
  readonly #state: OpenEntry
  readonly #known: ReadonlyMap<string, KeyValue>
  readonly #writes = new Map<string, { readonly version: number; readonly value: string | undefined }>()
  readonly #ids = new Map<string, (readonly [id: string, until: number])[]>()
  #newest: number

  constructor(state: OpenEntry, known: ReadonlyMap<string, KeyValue>) {
    this.#state = state
    this.#known = known
    this.#newest = Math.max(state.stamp, ...[...known.values()].map(({ stamp }) => stamp))
  }

  /** The effect of the commit on another key. */
  changeOf(key: string): KeyChange {
    return { key, write: this.#writes.get(key), ids: this.#ids.get(key) ?? [] }
  }

  values(keys: readonly string[]): Versioned[] {
    return keys.map(key =>
      key === this.#state.key ? this.#state.values([key])[0]! : this.#known.get(key)!.value,
    )
  }

  list(): never {
    throw new TypeError('a commit lists no keys')
  }

  put(key: string, value: string | undefined, version: number): void {
    if (key === this.#state.key) this.#state.put(key, value, version)
    else this.#writes.set(key, { version, value })
  }

  nextVersion(): number {
    return (this.#newest = this.#state.versionAbove(this.#newest))
  }

  recorded(ids: readonly RecordedId[]): boolean[] {
    const now = Date.now()
    const has = (known: RecordedIds, id: string): boolean =>
      known.some(([other, until]) => other === id && until > now)
    return ids.map(({ key, id }) => {
      if (key === this.#state.key) return this.#state.recorded([{ key, id }])[0]!
      const decided = this.#state.decided.flatMap(({ changes }) => changes.filter(each => each.key === key))
      return has(this.#known.get(key)?.ids ?? [], id) || decided.some(change => has(change.ids, id))
    })
  }

  record(key: string, id: string, retention: number): void {
    if (key === this.#state.key) return this.#state.record(key, id, retention)
    this.#ids.set(key, [...(this.#ids.get(key) ?? []), [id, Date.now() + retention]])
  }
}
