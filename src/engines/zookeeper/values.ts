import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.js'
import { IndeterminateError, UnavailableError } from '../../errors.js'
import {
  BadVersionError,
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  type RefusedError,
  type Acl,
  type CreatedTogether,
  type Stat,
  type Transaction,
  type ZooKeeper,
} from './client/index.js'
import { insist } from './client/settled.js'
import type {
  Commit,
  CommitOutcome,
  ReadOutcome,
  ReadSet,
  RecordedId,
  Versioned,
} from '../../engine/contract.js'
import { checkLosses } from './losses.js'
import type { Places } from './names.js'
import type { ServerTime } from './server-time.js'
import { decodeRecord, encodeRecord, writtenAt, type NewRecord, type ValueRecord } from './value-record.js'

/** A store key as it was read; without a node it was never written, or long ago deleted. */
interface Known {
  readonly path: string
  readonly node: { readonly record: ValueRecord; readonly stat: Stat } | undefined
  /** Clock time. */
  readonly readAt: number
}

/** What has to be so for a commit to count: the nodes of a grant, which it may release. */
export interface GuardNodes {
  readonly paths: readonly string[]
  readonly release: boolean
}

/**
 * What was read is good for so long: milliseconds. A node's own version begins anew when it was deleted for good and made again, so
 * what decides is never older than this, and nodes of deleted keys stay for much longer.
 */
const KNOWN_FOR = 5000
/** So many keys are known at the most. */
const MOST_KNOWN = 4096
/** The nodes of deleted keys stay for so long at the least: milliseconds. */
const DELETED_FOR = 600_000

/** The values of stores, each in a node of its own; a commit is one multi. */
export class Values {
  readonly #places: Places
  readonly #acl: readonly Acl[]
  readonly #clock: Clock
  readonly #engine: string
  readonly #time: ServerTime
  #known = new Map<string, Known>()

  constructor(places: Places, acl: readonly Acl[], clock: Clock, engine: string, time: ServerTime) {
    this.#places = places
    this.#acl = acl
    this.#clock = clock
    this.#engine = engine
    this.#time = time
  }

  /** @param fresh whether the leader is asked for what is committed by now. */
  async read(client: ZooKeeper, { keys, ids }: ReadSet, fresh: boolean): Promise<ReadOutcome> {
    const all = await this.#readAll(client, [...keys, ...ids.map(({ key }) => key)], fresh)
    return {
      values: keys.map(key => versioned(all.get(key)!)),
      seen: ids.map(id => this.#isRecorded(all.get(id.key)!, id)),
    }
  }

  /** @param guard undefined when nothing guards it; `lost` when what should does not hold. */
  async commit(
    client: ZooKeeper,
    commit: Commit,
    guard: GuardNodes | 'lost' | undefined,
  ): Promise<CommitOutcome> {
    const keys = [...commit.expect, ...commit.writes, ...commit.record].map(({ key }) => key)
    const stamp = randomUUID()
    let losses = 0
    for (let attempt = 0; ; attempt++) {
      const known =
        attempt === 0 && guard !== 'lost'
          ? await this.#recall(client, keys)
          : await this.#readAll(client, keys, true)
      // Under a guard they were looked for together with the grant. They may be there when this very commit was carried out
      // before, with its answer lost, and then its keys differ from what it expects.
      if (attempt > 0 || guard === undefined || guard === 'lost') {
        const repeated = commit.record.find(id => this.#isRecorded(known.get(id.key)!, id))
        if (repeated) return { state: 'repeated', ...repeated }
        if (guard === 'lost') return { state: 'lost' }
      }
      const conflict = commit.expect.find(
        ({ key, version }) => versioned(known.get(key)!).version !== version,
      )
      if (conflict) {
        // Remembered from before the change that the caller knows of, perhaps.
        if (attempt === 0) continue
        return { state: 'conflict', key: conflict.key, found: versioned(known.get(conflict.key)!) }
      }
      const parts = new CommitParts(client.transaction(), known, commit, stamp, this.#acl, this.#time.now)
      parts.add(guard)
      if (parts.transaction.size === 0) return { state: 'committed', versions: commit.writes.map(() => 0) }
      const outcome = await this.#carryOut(parts.transaction)
      if (outcome === undefined) {
        losses++
        const applied = await this.#wasApplied(client, parts, stamp)
        if (applied !== undefined) return { state: 'committed', versions: parts.versions(applied) }
        checkLosses(losses, { key: keys.join(', '), engine: this.#engine })
        continue
      }
      if (outcome.done)
        return { state: 'committed', versions: await this.#remember(client, parts, outcome.answers) }
      const { index, error } = outcome
      if (!isOvertaken(error)) throw error
      if (guard && index < guard.paths.length) {
        // A release that was carried out, with its answer lost and nothing written beside it.
        if (losses > 0 && parts.written.length === 0) return { state: 'committed', versions: [] }
        guard = 'lost'
      }
    }
  }

  /** Undefined when it is not known what became of it. */
  async #carryOut(transaction: Transaction) {
    try {
      return await transaction.outcome()
    } catch (error) {
      if (error instanceof ConnectionLossError) return undefined
      throw error
    }
  }

  /** The transaction that applied it; undefined when it certainly was not applied. */
  async #wasApplied(client: ZooKeeper, parts: CommitParts, stamp: string): Promise<number | undefined> {
    const [first] = parts.written
    if (!first) return undefined
    const now = await this.#lookAt(client, first.key)
    if (now.node?.record.stamp === stamp) return Number(now.node.stat.mzxid)
    if (now.node?.stat.mzxid === first.before.node?.stat.mzxid) return undefined
    throw new IndeterminateError('a commit lost its answer, and another change came after it', {
      key: first.key,
      engine: this.#engine,
    })
  }

  /** A key as it is after a change whose answer was lost. */
  async #lookAt(client: ZooKeeper, key: string): Promise<Known> {
    try {
      return (await this.#readAll(client, [key], true)).get(key)!
    } catch (cause) {
      // What an ended session had sent may still come, so the next one could not tell.
      throw new IndeterminateError('a commit lost its answer, and could not be looked for', {
        key,
        engine: this.#engine,
        cause,
      })
    }
  }

  /** What is known of keys, from memory where that is fresh. */
  async #recall(client: ZooKeeper, keys: readonly string[]): Promise<Map<string, Known>> {
    const oldest = this.#clock.now() - KNOWN_FOR
    const known = new Map<string, Known>()
    const missing: string[] = []
    for (const key of keys) {
      const one = this.#known.get(key)
      if (one && one.readAt >= oldest) known.set(key, one)
      else missing.push(key)
    }
    if (missing.length > 0)
      for (const [key, one] of await this.#readAll(client, missing, false)) known.set(key, one)
    return known
  }

  async #readAll(client: ZooKeeper, keys: readonly string[], fresh: boolean): Promise<Map<string, Known>> {
    const distinct = [...new Set(keys)]
    const synced = fresh && distinct.length > 0 ? client.sync(this.#places.store) : undefined
    const all = await Promise.all([...distinct.map(key => this.#readOne(client, key)), synced])
    return new Map(distinct.map((key, index) => [key, all[index] as Known]))
  }

  async #readOne(client: ZooKeeper, key: string): Promise<Known> {
    const path = this.#places.value(key)
    const readAt = this.#clock.now()
    let node: Known['node']
    try {
      const { data, stat } = await client.getData(path)
      this.#time.saw(stat)
      node = { record: this.#decoded(key, path, data, stat.mtime), stat }
      this.#dropOld(client, path, node)
    } catch (error) {
      if (!(error instanceof NoNodeError)) throw error
    }
    const known = { path, node, readAt }
    this.#keep(key, known)
    return known
  }

  #decoded(key: string, path: string, data: Buffer, mtime: number): ValueRecord {
    try {
      return decodeRecord(data, mtime)
    } catch (cause) {
      throw new UnavailableError(
        `the value of ${key} can't be read: another program has written to ${path}`,
        {
          key,
          engine: this.#engine,
          cause,
        },
      )
    }
  }

  /** What was deleted long ago and has nothing to remember goes for good. */
  #dropOld(client: ZooKeeper, path: string, { record, stat }: NonNullable<Known['node']>): void {
    const { now } = this.#time
    if (record.value !== undefined || now - stat.mtime < DELETED_FOR) return
    if (record.ids.some(([, until]) => until > now)) return
    void client.delete(path, stat.version).catch(() => undefined)
  }

  #isRecorded({ node }: Known, { id }: RecordedId): boolean {
    return node?.record.ids.some(([other, until]) => other === id && until > this.#time.now) ?? false
  }

  #keep(key: string, known: Known): void {
    if (this.#known.size >= MOST_KNOWN) this.#known = new Map()
    this.#known.set(key, known)
  }

  /** The versions of what a commit has written. */
  async #remember(
    client: ZooKeeper,
    parts: CommitParts,
    answers: readonly unknown[],
  ): Promise<readonly number[]> {
    const readAt = this.#clock.now()
    let zxid: bigint | undefined
    for (const { key, index, record, before } of parts.written) {
      const answer = answers[index] as CreatedTogether | Stat
      const stat = 'path' in answer ? answer.stat : answer
      if (stat) {
        zxid = stat.mzxid
        this.#time.saw(stat)
        this.#keep(key, { path: before.path, node: { record: writtenAt(record, stat.mtime), stat }, readAt })
      } else this.#known.delete(key)
    }
    const [first] = parts.written
    return parts.versions(Number(first ? (zxid ?? (await this.#creationOf(client, first.key))) : 0))
  }

  /** The transaction that has just created the node of a key, from a server that did not tell. */
  async #creationOf(client: ZooKeeper, key: string): Promise<bigint> {
    let cause: unknown
    try {
      const stat = await insist(() => client.exists(this.#places.value(key)))
      if (stat) return stat.czxid
    } catch (error) {
      cause = error
    }
    throw new IndeterminateError('a commit was carried out, and which version that is was not to be had', {
      key,
      engine: this.#engine,
      cause,
    })
  }
}

/** A commit as the parts of a multi. */
class CommitParts {
  /** The keys that are written, with the place of each in the multi. */
  readonly written: { key: string; index: number; record: NewRecord; before: Known }[] = []

  constructor(
    readonly transaction: Transaction,
    readonly known: ReadonlyMap<string, Known>,
    readonly commit: Commit,
    readonly stamp: string,
    readonly acl: readonly Acl[],
    readonly now: number,
  ) {}

  add(guard: GuardNodes | undefined): void {
    const { expect, writes, record } = this.commit
    for (const path of guard?.paths ?? [])
      if (guard!.release) this.transaction.delete(path)
      else this.transaction.check(path)
    const values = new Map(writes.map(({ key, value }) => [key, value]))
    const changed = new Set([...values.keys(), ...record.map(({ key }) => key)])
    for (const key of changed) this.#write(key, values)
    const written = new Set(this.written.map(({ key }) => key))
    // What is deleted and is not there is not written either, as long as that is so.
    const unwritten = new Set([...expect.map(({ key }) => key), ...changed].filter(key => !written.has(key)))
    for (const key of unwritten) this.#check(this.known.get(key)!)
  }

  /** The versions of the writes, by the transaction that carried them out. */
  versions(zxid: number): number[] {
    return this.commit.writes.map(({ value }) => (value === undefined ? 0 : zxid))
  }

  #write(key: string, values: ReadonlyMap<string, string | undefined>): void {
    const before = this.known.get(key)!
    const { node, path } = before
    const { record: recorded, retention } = this.commit
    const fresh = recorded.filter(id => id.key === key).map(({ id }) => [id, retention] as const)
    const ids = (node?.record.ids ?? []).filter(([, until]) => until > this.now)
    const isWrite = values.has(key)
    const value = isWrite ? values.get(key) : node?.record.value
    if (value === undefined && node?.record.value === undefined && fresh.length === 0) return
    const version = isWrite || value === undefined ? undefined : versioned(before).version
    const record = { value, ids, fresh, stamp: this.stamp, version }
    this.written.push({ key, index: this.transaction.size, record, before })
    if (node) this.transaction.setData(path, encodeRecord(record), node.stat.version)
    else this.transaction.create(path, encodeRecord(record), { acl: this.acl })
  }

  #check({ path, node }: Known): void {
    if (node) this.transaction.check(path, node.stat.version)
    // There is no other way to ask for absence: creating it fails if it is there.
    else this.transaction.create(path, '', { acl: this.acl }).delete(path)
  }
}

/** Whether a part was refused because others had changed what was read, or taken a lock node away. */
function isOvertaken(error: RefusedError): boolean {
  if (error instanceof BadVersionError || error instanceof NodeExistsError) return true
  // What was to be created has no parent.
  return error instanceof NoNodeError && error.operation !== 'create'
}

function versioned({ node }: Known): Versioned {
  if (node?.record.value === undefined) return { value: undefined, version: 0 }
  return { value: node.record.value, version: node.record.version ?? Number(node.stat.mzxid) }
}
