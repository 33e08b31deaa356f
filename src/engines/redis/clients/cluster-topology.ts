import type { Clock, Timer } from '../../../base/clock.js'
import { slotOf } from '../slot.js'
import { nodeName } from './node-name.js'
import type { Reply } from './connection.js'

/** What a node says of the cluster. */
export interface ClusterAnswer {
  /** The host that was asked: nodes that don't know what they are called say nothing instead. */
  readonly host: string
  /** The answer to CLUSTER SLOTS. */
  readonly slots: Reply
}

/** Minimum time between two looks at the cluster, in milliseconds. */
const PAUSE = 100

/** Which master serves which hash slot, as far as is known. Nodes are named by `host:port`. */
export class ClusterTopology {
  readonly #ask: () => Promise<ClusterAnswer>
  readonly #rename: (node: string) => string
  readonly #changed: () => void
  readonly #clock: Clock
  /** The master of each slot: what the last look has shown, and what nodes have reported of single slots since. */
  #owners: (string | undefined)[] = []
  #looking: Promise<void> | undefined
  #soon: Timer | undefined
  #isClosed = false

  /**
   * @param ask one of the nodes
   * @param rename how a node is reached from here, by how the cluster calls it
   * @param changed called after every look that succeeded
   */
  constructor(
    ask: () => Promise<ClusterAnswer>,
    rename: (node: string) => string,
    changed: () => void,
    clock: Clock,
  ) {
    this.#ask = ask
    this.#rename = rename
    this.#changed = changed
    this.#clock = clock
  }

  /** The master of the key's slot; undefined when none is known. */
  masterOf(key: string): string | undefined {
    return this.#owners[slotOf(key)]
  }

  /** All masters that serve a slot. */
  get masters(): readonly string[] {
    return [...new Set(this.#owners)].filter(owner => owner !== undefined)
  }

  /** Takes in that a node has sent a command for this slot to another one. @returns how that is reached */
  redirected(slot: number, node: string, isMoved: boolean): string {
    const owner = this.#rename(node)
    // mutant: slot-on-its-way-moved
    if (isMoved) {
      this.#owners[slot] = owner
      this.lookSoon()
    }
    return owner
  }

  /** Asks a node, unless one is being asked already. Rejects when none answers. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Looks again shortly, because something was not as expected. */
  lookSoon(): void {
    if (this.#isClosed) return
    this.#soon ??= this.#clock.after(
      PAUSE,
      () => {
        this.#soon = undefined
        this.look().catch(() => undefined)
      },
      false,
    )
  }

  close(): void {
    this.#isClosed = true
    this.#soon?.cancel()
  }

  async #look(): Promise<void> {
    const { host, slots } = await this.#ask()
    if (this.#isClosed) return
    this.#owners = ownersOf(slots, host).map(owner => owner && this.#rename(owner))
    this.#changed()
  }
}

/**
 * The master of each slot, of what CLUSTER SLOTS answers: first and last slot, the master's host and port, replicas.
 */
function ownersOf(slots: Reply, askedHost: string): (string | undefined)[] {
  const owners: (string | undefined)[] = []
  for (const range of slots as readonly Reply[]) {
    const [first, last, master] = range as [number, number, [string | null, number]]
    const [host, port] = master
    const owner = nodeName(host === null || host === '' || host === '?' ? askedHost : host, port)
    for (let slot = first; slot <= last; slot++) owners[slot] = owner
  }
  return owners
}
