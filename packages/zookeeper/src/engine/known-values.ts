import { ifExists, type Stat, type ZooKeeper } from '../index.js'
import { DamagedValueError } from 'signalbox'
import type { RecordedId, Versioned } from 'signalbox/engine'
import type { BoxContext } from './box-context.js'
import { decodeRecord, writtenAt, type NewRecord, type ValueRecord } from './value-record.js'

/** A store key as it was read. Without a node, it was never written, or was deleted long ago. */
export interface Known {
  readonly path: string
  readonly node: { readonly record: ValueRecord; readonly stat: Stat } | undefined
  /** Clock time of the read. */
  readonly readAt: number
}

/**
 * Time for which a commit may use a cached read, in milliseconds. If a node was removed and is created again, its
 * version starts again, so the nodes of deleted keys stay for much longer.
 */
const CACHE_TIME = 5000
/** Maximum number of cached keys. */
const MAX_CACHED = 4096
/** Minimum time that the nodes of deleted keys stay, in milliseconds. */
const DELETED_FOR = 600_000

/**
 * Reads store keys, and caches them for a while. Without the cache, a transaction would take five requests instead of
 * four, and repeated changes of a value by one process two instead of one.
 */
export class KnownValues {
  readonly #box: BoxContext
  #known = new Map<string, Known>()

  constructor(box: BoxContext) {
    this.#box = box
  }

  /** Reads keys. @param isFresh whether to ask the leader for everything that is committed by now. */
  async read(client: ZooKeeper, keys: readonly string[], isFresh: boolean): Promise<Map<string, Known>> {
    const distinct = [...new Set(keys)]
    const synced = isFresh && distinct.length > 0 ? client.sync(this.#box.paths.store) : undefined
    const all = await Promise.all([...distinct.map(key => this.#readOne(client, key)), synced])
    return new Map(distinct.map((key, index) => [key, all[index] as Known]))
  }

  /** Returns keys from the cache where they are fresh enough, and reads the others. */
  async get(client: ZooKeeper, keys: readonly string[]): Promise<Map<string, Known>> {
    const oldest = this.#box.clock.now() - CACHE_TIME
    const known = new Map<string, Known>()
    const missing: string[] = []
    for (const key of keys) {
      const one = this.#known.get(key)
      if (one && one.readAt >= oldest) known.set(key, one)
      else missing.push(key)
    }
    if (missing.length > 0)
      for (const [key, one] of await this.read(client, missing, false)) known.set(key, one)
    return known
  }

  /** Caches a value that was just written. @param stat undefined if the server did not send it */
  remember(key: string, path: string, record: NewRecord, stat: Stat | undefined): void {
    if (!stat) return void this.#known.delete(key)
    this.#box.time.observe(stat)
    const node = { record: writtenAt(record, stat.mtime), stat }
    this.#set(key, { path, node, readAt: this.#box.clock.now() })
  }

  /** Whether the ID is recorded with the key that was read. @throws DamagedValueError */
  isRecorded(known: Known, { key, id }: RecordedId): boolean {
    // Whether the change was applied is not known, so it must not be applied a second time.
    this.checkReadable(key, known)
    return (
      known.node?.record.ids.some(([other, until]) => other === id && until > this.#box.time.now) ?? false
    )
  }

  async #readOne(client: ZooKeeper, key: string): Promise<Known> {
    const path = this.#box.paths.value(key)
    const readAt = this.#box.clock.now()
    const found = await ifExists(client.getData(path))
    let node: Known['node']
    if (found) {
      const { data, stat } = found
      this.#box.time.observe(stat)
      node = { record: decoded(data, stat.mtime), stat }
      this.#dropOld(client, path, node)
    }
    const known = { path, node, readAt }
    this.#set(key, known)
    return known
  }

  /** @throws DamagedValueError if another program, or one with another layout, has written the node. */
  checkReadable(key: string, known: Known): void {
    if (!isDamaged(known)) return
    const message = `can't read the value of ${key}: another program has written to ${known.path}`
    throw new DamagedValueError(message, { key, engine: this.#box.place.name }, versioned(known).version)
  }

  /** Removes a node that was deleted long ago and has no recorded IDs left. */
  #dropOld(client: ZooKeeper, path: string, { record, stat }: NonNullable<Known['node']>): void {
    const { now } = this.#box.time
    if (record.value !== undefined || now - stat.mtime < DELETED_FOR) return
    if (record.ids.some(([, until]) => until > now)) return
    void client.delete(path, stat.version).catch(() => undefined)
  }

  #set(key: string, known: Known): void {
    if (this.#known.size >= MAX_CACHED) this.#known = new Map()
    this.#known.set(key, known)
  }
}

/** Stands for data that another program has written. Its value is not valid JSON, so only callers that read it fail. */
const DAMAGED: ValueRecord = { value: 'not written by Signalbox', ids: [], stamp: '', version: undefined }

function decoded(data: Buffer, mtime: number): ValueRecord {
  try {
    return decodeRecord(data, mtime)
  } catch {
    return DAMAGED
  }
}

/** Whether another program, or one with another layout, has written the node. */
export function isDamaged({ node }: Known): boolean {
  return node?.record === DAMAGED
}

/** The value of a key, as in the contract. */
export function versioned({ node }: Known): Versioned {
  if (node?.record.value === undefined) return { value: undefined, version: 0 }
  const { value, version } = node.record
  // A commit that recorded only an ID has changed the node later.
  if (version !== undefined) return { value, version }
  return { value, version: Number(node.stat.mzxid), changed: node.stat.mtime }
}
