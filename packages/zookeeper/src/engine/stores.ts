import { SessionExpiredError, type ZooKeeper } from '../index.js'
import {
  WriteQueue,
  firstKeys,
  type Commit,
  type CommitOutcome,
  type List,
  type ReadOutcome,
  type ReadSet,
} from 'signalbox/engine'
import type { BoxContext } from './box-context.js'
import type { BoxSession } from './box-session.js'
import type { LockRequests } from './lock-requests.js'
import { decodeKey } from './names.js'
import type { Values } from './values.js'

/** Reads, writes and watches the values of stores, over the sessions of a box. */
export class Stores {
  readonly #box: BoxContext
  readonly #session: BoxSession
  readonly #values: Values
  readonly #requests: LockRequests
  readonly #writes: WriteQueue
  /** The watched keys, each with a function that ends its watch in the current session. */
  readonly #watched = new Map<string, { end: () => void }>()

  constructor(box: BoxContext, session: BoxSession, values: Values, requests: LockRequests) {
    this.#box = box
    this.#session = session
    this.#values = values
    this.#requests = requests
    this.#writes = new WriteQueue(box.place.name)
  }

  read(what: ReadSet): Promise<ReadOutcome> {
    return this.#session.run(client => this.#values.read(client, what, true))
  }

  /** Lists the keys. ZooKeeper returns all children of a node in one reply, in no order. */
  list(list: List): Promise<string[]> {
    return this.#session.run(async client => {
      const { children } = await client.getChildren(this.#box.paths.store, { linearizable: true })
      return firstKeys(
        children.flatMap(name => decodeKey(name) ?? []),
        list,
      )
    })
  }

  async commit(commit: Commit): Promise<CommitOutcome> {
    const { guard, release } = commit
    if (!guard) return this.#commitUnguarded(commit)
    const own = this.#requests.held(guard)
    if (!own) return this.#session.run(client => this.#values.commit(client, commit, 'lost'))
    let outcome: CommitOutcome
    try {
      outcome = await this.#values.commit(own.client!, commit, { paths: own.paths, release })
    } catch (error) {
      if (!(error instanceof SessionExpiredError)) throw error
      // The session ended before the commit was sent, so it wrote nothing. An earlier attempt of the caller's may have.
      return this.#session.run(client => this.#values.commit(client, commit, 'lost'))
    }
    if (outcome.state === 'committed' && release) this.#requests.forget(own)
    return outcome
  }

  async watch(key: string): Promise<undefined> {
    const client = await this.#session.get()
    if (!this.#watched.has(key)) this.#watched.set(key, { end: () => undefined })
    await this.#watchValue(client, key)
    return undefined
  }

  unwatch(key: string): void {
    this.#watched.get(key)?.end()
    this.#watched.delete(key)
  }

  /** Handles a new session, which has no watches yet. Changes between two sessions were reported to neither. */
  async onSession(client: ZooKeeper): Promise<void> {
    for (const key of this.#watched.keys()) await this.#watchValue(client, key)
    this.#box.listener.missed()
  }

  #commitUnguarded(commit: Commit): Promise<CommitOutcome> {
    const write = () => this.#session.run(client => this.#values.commit(client, commit, undefined))
    const [first] = commit.writes
    return first ? this.#writes.run(first.key, write) : write()
  }

  async #watchValue(client: ZooKeeper, key: string): Promise<void> {
    const end = await client.onChange(this.#box.paths.value(key), ({ type }) => {
      if (type !== 'ended') this.#box.listener.changed(key)
    })
    const watch = this.#watched.get(key)
    if (watch) watch.end = end
    else end()
  }
}
