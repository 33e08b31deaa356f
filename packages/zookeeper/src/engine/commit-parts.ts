import type { Acl, Transaction } from '../index.js'
import type { Commit } from 'signalbox/engine'
import { versioned, type Known } from './known-values.js'
import { encodeRecord, type NewRecord } from './value-record.js'

/** The nodes of the grant that guards a commit, and whether the commit releases it. */
export interface GuardNodes {
  readonly paths: readonly string[]
  readonly release: boolean
}

/** A commit as the parts of a multi. */
export class CommitParts {
  /** The keys that are written, each with its place in the multi. */
  readonly written: { key: string; index: number; record: NewRecord; before: Known }[] = []

  constructor(
    readonly transaction: Transaction,
    readonly known: ReadonlyMap<string, Known>,
    readonly commit: Commit,
    readonly stamp: string,
    readonly acl: readonly Acl[],
    readonly now: number,
  ) {}

  /** Adds all parts to the transaction, those of the guard first. */
  add(guard: GuardNodes | undefined): void {
    const { expect, writes, record } = this.commit
    for (const path of guard?.paths ?? [])
      if (guard!.release) this.transaction.delete(path)
      else this.transaction.check(path)
    const values = new Map(writes.map(({ key, value }) => [key, value]))
    const changed = new Set([...values.keys(), ...record.map(({ key }) => key)])
    for (const key of changed) this.#write(key, values)
    const written = new Set(this.written.map(({ key }) => key))
    // Deleting a missing key writes nothing, but the key must still be missing.
    const unwritten = new Set([...expect.map(({ key }) => key), ...changed].filter(key => !written.has(key)))
    for (const key of unwritten) this.#check(this.known.get(key)!)
  }

  /** The versions of the writes, which are the ID of their transaction. */
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
    // A multi has no check for a missing node. Creating the node fails if it exists.
    else this.transaction.create(path, '', { acl: this.acl }).delete(path)
  }
}
