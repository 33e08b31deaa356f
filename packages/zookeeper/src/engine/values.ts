import { randomUUID } from 'node:crypto'
import {
  BadVersionError,
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  retryUnsent,
  type CreatedTogether,
  type MultiOutcome,
  type RefusedError,
  type Stat,
  type Transaction,
  type ZooKeeper,
} from '../index.js'
import { IndeterminateError } from 'signalbox'
import type { Commit, CommitOutcome, ReadOutcome, ReadSet } from 'signalbox/engine'
import type { BoxContext } from './box-context.js'
import { CommitParts, type GuardNodes } from './commit-parts.js'
import { isDamaged, KnownValues, versioned, type Known } from './known-values.js'
import { checkLosses } from './losses.js'

/** The values of stores, each in a node of its own. A commit is one multi. */
export class Values {
  readonly #box: BoxContext
  readonly #known: KnownValues

  constructor(box: BoxContext) {
    this.#box = box
    this.#known = new KnownValues(box)
  }

  /** @param isFresh whether to ask the leader for everything that is committed by now. */
  async read(client: ZooKeeper, { keys, ids }: ReadSet, isFresh: boolean): Promise<ReadOutcome> {
    const all = await this.#known.read(client, [...keys, ...ids.map(({ key }) => key)], isFresh)
    return {
      values: keys.map(key => versioned(all.get(key)!)),
      seen: ids.map(id => this.#known.isRecorded(all.get(id.key)!, id)),
    }
  }

  /** @param guard undefined if the commit has no guard; `lost` if its guard is not held. */
  async commit(
    client: ZooKeeper,
    commit: Commit,
    guard: GuardNodes | 'lost' | undefined,
  ): Promise<CommitOutcome> {
    const { place, time } = this.#box
    const keys = [...commit.expect, ...commit.writes, ...commit.record].map(({ key }) => key)
    const stamp = randomUUID()
    let losses = 0
    for (let attempt = 0; ; attempt++) {
      const isFirst = attempt === 0 && guard !== 'lost'
      const known = isFirst ? await this.#known.get(client, keys) : await this.#known.read(client, keys, true)
      // With a guard, the IDs were looked up together with the grant. An ID can be recorded since only if this commit
      // was executed before and its reply was lost. Then a further attempt sees it, because the keys have changed.
      if (attempt > 0 || guard === undefined || guard === 'lost') {
        const repeated = commit.record.find(id => this.#known.isRecorded(known.get(id.key)!, id))
        if (repeated) return { state: 'repeated', ...repeated }
        if (guard === 'lost') return { state: 'lost' }
      }
      const conflict = commit.expect.find(
        ({ key, version }) => versioned(known.get(key)!).version !== version,
      )
      if (conflict) {
        // The cache may be older than a change that the caller knows of.
        if (attempt === 0) continue
        // If an earlier execution of this commit has released the guard, a later change is no conflict.
        // mutant: conflict-of-repeated-commit
        if (guard && !(await isThere(client, guard))) return { state: 'lost' }
        return { state: 'conflict', key: conflict.key, found: versioned(known.get(conflict.key)!) }
      }
      // A caller that names the version of such data knows that it replaces them.
      const blind = commit.writes
        .map(({ key }) => key)
        .filter(key => !commit.expect.some(each => each.key === key))
      const damaged = blind.find(key => isDamaged(known.get(key)!))
      if (damaged !== undefined) {
        if (attempt === 0) continue
        this.#known.checkReadable(damaged, known.get(damaged)!)
      }
      const parts = new CommitParts(client.transaction(), known, commit, stamp, place.acl, time.now)
      parts.add(guard)
      if (parts.transaction.size === 0) return { state: 'committed', versions: commit.writes.map(() => 0) }
      const outcome = await outcomeOf(parts.transaction)
      if (outcome === 'unknown') {
        losses++
        const applied = await this.#wasApplied(client, parts, stamp)
        if (applied !== undefined) return { state: 'committed', versions: parts.versions(applied) }
        checkLosses(losses, { key: keys.join(', '), engine: place.name })
        continue
      }
      if (outcome.done)
        return { state: 'committed', versions: await this.#remember(client, parts, outcome.answers) }
      const { index, error } = outcome
      if (!isOvertaken(error)) throw error
      if (guard && index < guard.paths.length) {
        // The commit only released its guard. It was executed, and its reply was lost.
        if (losses > 0 && parts.written.length === 0) return { state: 'committed', versions: [] }
        guard = 'lost'
      }
    }
  }

  /** The transaction that applied a commit whose reply was lost; undefined if it certainly was not applied. */
  async #wasApplied(client: ZooKeeper, parts: CommitParts, stamp: string): Promise<number | undefined> {
    const [first] = parts.written
    if (!first) return undefined
    const { key, before } = first
    const engine = this.#box.place.name
    let now: Known
    try {
      now = (await this.#known.read(client, [key], true)).get(key)!
    } catch (cause) {
      // Requests of an ended session may still be executed, so finding nothing in the next session proves nothing.
      const message = 'the reply to a commit was lost, and looking for it failed'
      throw new IndeterminateError(message, { key, engine, cause })
    }
    if (now.node?.record.stamp === stamp) return Number(now.node.stat.mzxid)
    if (now.node?.stat.mzxid === before.node?.stat.mzxid) return undefined
    throw new IndeterminateError('the reply to a commit was lost, and another change came after it', {
      key,
      engine,
    })
  }

  /** Caches the values that a commit has written, and returns their versions. */
  async #remember(
    client: ZooKeeper,
    parts: CommitParts,
    answers: readonly unknown[],
  ): Promise<readonly number[]> {
    let zxid: bigint | undefined
    for (const { key, index, record, before } of parts.written) {
      const answer = answers[index] as CreatedTogether | Stat
      const stat = 'path' in answer ? answer.stat : answer
      zxid = stat?.mzxid ?? zxid
      this.#known.remember(key, before.path, record, stat)
    }
    const [first] = parts.written
    return parts.versions(Number(first ? (zxid ?? (await this.#creationOf(client, first.key))) : 0))
  }

  /** The transaction that has just created the node of a key, if the server did not return it. */
  async #creationOf(client: ZooKeeper, key: string): Promise<bigint> {
    let cause: unknown
    try {
      const stat = await retryUnsent(() => client.exists(this.#box.paths.value(key)))
      if (stat) return stat.czxid
    } catch (error) {
      cause = error
    }
    const message = 'a commit was applied, but the version that it has written could not be read'
    throw new IndeterminateError(message, { key, engine: this.#box.place.name, cause })
  }
}

/** The outcome of a transaction; `unknown` if its reply was lost. */
async function outcomeOf(transaction: Transaction): Promise<MultiOutcome | 'unknown'> {
  try {
    return await transaction.outcome()
  } catch (error) {
    if (error instanceof ConnectionLossError) return 'unknown'
    throw error
  }
}

/** Whether the nodes of a guard exist. */
async function isThere(client: ZooKeeper, { paths }: GuardNodes): Promise<boolean> {
  const stats = await Promise.all(paths.map(path => client.exists(path)))
  return !stats.includes(undefined)
}

/** Whether a part was rejected because another client has changed a value that was read, or deleted a lock node. */
function isOvertaken(error: RefusedError): boolean {
  if (error instanceof BadVersionError || error instanceof NodeExistsError) return true
  // For a creation, this error means that its parent is missing.
  return error instanceof NoNodeError && error.operation !== 'create'
}
