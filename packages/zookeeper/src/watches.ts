import { OPCODE, type NewWatch, type WatchKind } from './call.js'
import { JuteWriter } from './jute-writer.js'
import type { WatchEvent, WatchListener } from './watch-event.js'

/** A type of event that a server sends. */
export type ServerEvent = Exclude<WatchEvent['type'], 'ended'>

const KINDS: readonly WatchKind[] = ['data', 'exist', 'children', 'persistent', 'recursive']

/** The kinds of one-shot watches that each event removes. */
const ONE_SHOT: Readonly<Record<ServerEvent, readonly WatchKind[]>> = {
  created: ['data', 'exist'],
  changed: ['data', 'exist'],
  deleted: ['data', 'exist', 'children'],
  children: ['children'],
}

/** Approximate maximum size of a request that sets watches again, in bytes, because servers reject long ones. */
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

  /** Removes a listener at a path from watches of all kinds. */
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

  /** Returns the listeners of an event, and removes one-shot watches. */
  take(type: ServerEvent, path: string): Set<WatchListener> {
    const listeners = new Set<WatchListener>()
    for (const kind of ONE_SHOT[type]) {
      for (const listener of this.#listeners[kind].get(path) ?? []) listeners.add(listener)
      this.#listeners[kind].delete(path)
    }
    for (const listener of this.#listeners.persistent.get(path) ?? []) listeners.add(listener)
    // Recursive watches get events of the children themselves.
    if (type !== 'children' && this.#listeners.recursive.size > 0) {
      for (let each = path; ; each = each.slice(0, Math.max(each.lastIndexOf('/'), 1))) {
        for (const listener of this.#listeners.recursive.get(each) ?? []) listeners.add(listener)
        if (each === '/') break
      }
    }
    return listeners
  }

  /** Removes all listeners, and returns each of them once for each of its paths. */
  takeAll(): { readonly path: string; readonly listener: WatchListener }[] {
    const all: { path: string; listener: WatchListener }[] = []
    for (const kind of KINDS) {
      for (const [path, listeners] of this.#listeners[kind])
        for (const listener of listeners) all.push({ path, listener })
      this.#listeners[kind].clear()
    }
    return all
  }

  /**
   * Returns the listeners of persistent watches. Servers do not report the events that these missed without a
   * connection.
   */
  persistent(): { readonly path: string; readonly listener: WatchListener }[] {
    return (['persistent', 'recursive'] as const).flatMap(kind =>
      [...this.#listeners[kind]].flatMap(([path, all]) => [...all].map(listener => ({ path, listener }))),
    )
  }

  /** Returns the requests that set all watches on a server. The server then reports the events since `zxid`. */
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

  /** Number of watched paths; a path counts once for each kind of watch. */
  get size(): number {
    return KINDS.reduce((sum, kind) => sum + this.#listeners[kind].size, 0)
  }
}

function emptyLists(): Record<WatchKind, string[]> {
  return { data: [], exist: [], children: [], persistent: [], recursive: [] }
}
