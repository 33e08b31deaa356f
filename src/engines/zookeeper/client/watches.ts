import { OPCODE, type NewWatch, type WatchKind } from './call.js'
import { JuteWriter } from './jute-writer.js'
import type { WatchEvent, WatchListener } from './watch-event.js'

/** What a server tells of a node. */
export type Told = Exclude<WatchEvent['type'], 'ended'>

const KINDS: readonly WatchKind[] = ['data', 'exist', 'children', 'persistent', 'recursive']

/** Which one-shot watches an event uses up. */
const USED_UP: Readonly<Record<Told, readonly WatchKind[]>> = {
  created: ['data', 'exist'],
  changed: ['data', 'exist'],
  deleted: ['data', 'exist', 'children'],
  children: ['children'],
}

/** One request that sets watches anew has so many bytes at the most: servers refuse long ones. */
const CHUNK = 128 * 1024

/** The watches of a session, as the server should have them. Paths are the server's. */
export class Watches {
  readonly #listeners: Readonly<Record<WatchKind, Map<string, Set<WatchListener>>>> = {
    data: new Map(),
    exist: new Map(),
    children: new Map(),
    persistent: new Map(),
    recursive: new Map(),
  }

  add({ kind, path, listener }: NewWatch): void {
    const byPath = this.#listeners[kind]
    const others = byPath.get(path)
    if (others) others.add(listener)
    else byPath.set(path, new Set([listener]))
  }

  /** Forgets a listener at a path, whatever it is told of there. */
  remove(path: string, listener: WatchListener): void {
    for (const kind of KINDS) {
      const listeners = this.#listeners[kind].get(path)
      if (listeners?.delete(listener) && listeners.size === 0) this.#listeners[kind].delete(path)
    }
  }

  /** Whether anybody listens at a path. */
  has(path: string): boolean {
    return KINDS.some(kind => this.#listeners[kind].has(path))
  }

  /** Who is told of an event; one-shot watches are used up by it. */
  take(type: Told, path: string): Set<WatchListener> {
    const told = new Set<WatchListener>()
    for (const kind of USED_UP[type]) {
      for (const listener of this.#listeners[kind].get(path) ?? []) told.add(listener)
      this.#listeners[kind].delete(path)
    }
    for (const listener of this.#listeners.persistent.get(path) ?? []) told.add(listener)
    // Recursive watches are told of the children themselves.
    if (type !== 'children' && this.#listeners.recursive.size > 0) {
      for (let each = path; ; each = each.slice(0, Math.max(each.lastIndexOf('/'), 1))) {
        for (const listener of this.#listeners.recursive.get(each) ?? []) told.add(listener)
        if (each === '/') break
      }
    }
    return told
  }

  /** Every listener, once for each path it listens at, and forgets all. */
  takeAll(): { readonly path: string; readonly listener: WatchListener }[] {
    const all: { path: string; listener: WatchListener }[] = []
    for (const kind of KINDS) {
      for (const [path, listeners] of this.#listeners[kind])
        for (const listener of listeners) all.push({ path, listener })
      this.#listeners[kind].clear()
    }
    return all
  }

  /** The persistent listeners: they are not told what happened while no connection was there. */
  lasting(): { readonly path: string; readonly listener: WatchListener }[] {
    return (['persistent', 'recursive'] as const).flatMap(kind =>
      [...this.#listeners[kind]].flatMap(([path, all]) => [...all].map(listener => ({ path, listener }))),
    )
  }

  /** The requests that give a server all watches, and have it tell what they missed since `zxid`. */
  requests(xid: number, zxid: bigint): Buffer[] {
    const requests: Buffer[] = []
    let lists = emptyLists()
    let size = 0
    const finish = (): void => {
      if (size === 0) return
      const writer = new JuteWriter(size + 64).int(xid).int(OPCODE.setWatches2).long(zxid)
      for (const kind of KINDS) writer.list(lists[kind], path => writer.text(path))
      requests.push(writer.frame())
      lists = emptyLists()
      size = 0
    }
    for (const kind of KINDS) {
      for (const path of this.#listeners[kind].keys()) {
        const more = Buffer.byteLength(path) + 4
        if (size + more > CHUNK) finish()
        lists[kind].push(path)
        size += more
      }
    }
    finish()
    return requests
  }

  /** How many paths are watched, each kind counted. */
  get size(): number {
    return KINDS.reduce((sum, kind) => sum + this.#listeners[kind].size, 0)
  }
}

function emptyLists(): Record<WatchKind, string[]> {
  return { data: [], exist: [], children: [], persistent: [], recursive: [] }
}
