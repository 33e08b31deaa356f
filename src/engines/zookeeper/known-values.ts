import { ifExists, type Stat, type ZooKeeper } from 'signalbox-zookeeper'
import type { RecordedId, Versioned } from '../../engine/contract.js'
import { UnavailableError } from '../../errors.js'
import type { BoxContext } from './box-context.js'
import { decodeRecord, writtenAt, type NewRecord, type ValueRecord } from './value-record.js'

/** A store key as it was read. Without a node it was never written, or deleted long ago. */
export interface Known {
  readonly path: string
  readonly node: { readonly record: ValueRecord; readonly stat: Stat } | undefined
  /** Clock time. */
  readonly readAt: number
}

/**
 * How long a commit may rely on what was read: milliseconds. The version of a node begins anew when the node was
 * deleted for good and is created again, so the nodes of deleted keys stay for much longer.
 */
const KNOWN_FOR = 5000
/** So many keys are known at the most. */
const MAX_KNOWN = 4096
/** The nodes of deleted keys stay for so long at the least: milliseconds. */
const DELETED_FOR = 600_000

/**
 * Reads store keys, and remembers them for a while. Without that, a transaction would take five requests instead of
 * four, and each change of a value that one process writes again and again two instead of one.
 */
export class KnownValues {
  readonly #box: BoxContext
  #known = new Map<string, Known>()

  constructor(box: BoxContext) {
    this.#box = box
  }

  /** Reads keys. @param isFresh whether the leader is asked for what is committed by now. */
  async read(client: ZooKeeper, keys: readonly string[], isFresh: boolean): Promise<Map<string, Known>> {
    const distinct = [...new Set(keys)]
    const synced = isFresh && distinct.length > 0 ? client.sync(this.#box.paths.store) : undefined
    const all = await Promise.all([...distinct.map(key => this.#readOne(client, key)), synced])
    return new Map(distinct.map((key, index) => [key, all[index] as Known]))
  }

  /** What is known of keys, from memory where that is fresh enough. */
  async recall(client: ZooKeeper, keys: readonly string[]): Promise<Map<string, Known>> {
    const oldest = this.#box.clock.now() - KNOWN_FOR
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

  /** Remembers what has just been written. @param stat undefined where the server did not send it */
  wrote(key: string, path: string, record: NewRecord, stat: Stat | undefined): void {
    if (!stat) return void this.#known.delete(key)
    this.#box.time.saw(stat)
    const node = { record: writtenAt(record, stat.mtime), stat }
    this.#keep(key, { path, node, readAt: this.#box.clock.now() })
  }

  /** Whether the id is recorded with the key that was read. */
  isRecorded({ node }: Known, { id }: RecordedId): boolean {
    return node?.record.ids.some(([other, until]) => other === id && until > this.#box.time.now) ?? false
  }

  async #readOne(client: ZooKeeper, key: string): Promise<Known> {
    const path = this.#box.paths.value(key)
    const readAt = this.#box.clock.now()
    const found = await ifExists(client.getData(path))
    let node: Known['node']
    if (found) {
      const { data, stat } = found
      this.#box.time.saw(stat)
      node = { record: this.#decoded(key, path, data, stat.mtime), stat }
      this.#dropOld(client, path, node)
    }
    const known = { path, node, readAt }
    this.#keep(key, known)
    return known
  }

  #decoded(key: string, path: string, data: Buffer, mtime: number): ValueRecord {
    try {
      return decodeRecord(data, mtime)
    } catch (cause) {
      const message = `can't read the value of ${key}: another program has written to ${path}`
      throw new UnavailableError(message, { key, engine: this.#box.place.name, cause })
    }
  }

  /** A node goes for good when it was deleted long ago and has nothing to remember. */
  #dropOld(client: ZooKeeper, path: string, { record, stat }: NonNullable<Known['node']>): void {
    const { now } = this.#box.time
    if (record.value !== undefined || now - stat.mtime < DELETED_FOR) return
    if (record.ids.some(([, until]) => until > now)) return
    void client.delete(path, stat.version).catch(() => undefined)
  }

  #keep(key: string, known: Known): void {
    if (this.#known.size >= MAX_KNOWN) this.#known = new Map()
    this.#known.set(key, known)
  }
}

/** The value of a key, as the contract wants it. */
export function versioned({ node }: Known): Versioned {
  if (node?.record.value === undefined) return { value: undefined, version: 0 }
  return { value: node.record.value, version: node.record.version ?? Number(node.stat.mzxid) }
}
