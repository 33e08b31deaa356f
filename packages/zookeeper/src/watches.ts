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

/** A request that sets watches anew has about so many bytes at the most, because servers refuse long ones. */
const CHUNK = 128 * 1024

/** The watches of a session, as the server should have them. */
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

  /** Forgets a listener at a path, in watches of all kinds. */
  remove(path: string, listener: WatchListener): void {
    for (const kind of KINDS) {
      const listeners = this.#listeners[kind].get(path)
      if (listeners?.delete(listener) && listeners.size === 0) this.#listeners[kind].delete(path)
    }
  }

  /** Whether there is a listener at a path. */
  has(path: string): boolean {
    return KINDS.some(kind => this.#listeners[kind].has(path))
  }

  /** The listeners that an event is for. It uses up one-shot watches. */
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

  /** Forgets all listeners, and returns each of them once for each path at which it listened. */
  takeAll(): { readonly path: string; readonly listener: WatchListener }[] {
    const all: { path: string; listener: WatchListener }[] = []
    for (const kind of KINDS) {
      for (const [path, listeners] of this.#listeners[kind])
        for (const listener of listeners) all.push({ path, listener })
      this.#listeners[kind].clear()
    }
    return all
  }

  /** The persistent listeners. Servers do not tell them what happened while there was no connection. */
  lasting(): { readonly path: string; readonly listener: WatchListener }[] {
    return (['persistent', 'recursive'] as const).flatMap(kind =>
      [...this.#listeners[kind]].flatMap(([path, all]) => [...all].map(listener => ({ path, listener }))),
    )
  }

  /** The requests that give a server all watches. The server then tells what they have missed since `zxid`. */
  requests(xid: number, zxid: bigint, chroot: string): Buffer[] {
    const requests: Buffer[] = []
    let lists = emptyLists()
    let size = 0
    const finish = (): void => {
      if (size === 0) return
      const writer = new JuteWriter(size + 64, chroot).int(xid).int(OPCODE.setWatches2).long(zxid)
      for (const kind of KINDS) writer.list(lists[kind], path => writer.path(path))
      requests.push(writer.frame())
      lists = emptyLists()
      size = 0
    }
    for (const kind of KINDS) {
      for (const path of this.#listeners[kind].keys()) {
        const more = Buffer.byteLength(chroot + path) + 4
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
