import type { Clock, Timer } from '../../../base/clock.js'
import { slotOf } from '../slot.js'
import type { Reply } from './connection.js'

/** The answer of a node about the cluster. */
export interface ClusterAnswer {
  /** The host that was asked. A node that does not know its own host leaves it out of the answer. */
  readonly host: string
  /** The answer to CLUSTER SLOTS. */
  readonly slots: Reply
}

/** Delay before the cluster is examined again, in milliseconds. */
const PAUSE = 100

/** The known masters of the hash slots. Nodes are named by `host:port`. */
export class ClusterTopology {
  readonly #ask: () => Promise<ClusterAnswer>
  readonly #rename: (node: string) => string
  readonly #changed: () => void
  readonly #clock: Clock
  /** The master of each slot, by the last look and by later redirections of single slots. */
  #owners: (string | undefined)[] = []
  #looking: Promise<void> | undefined
  #soon: Timer | undefined
  #isClosed = false

  /**
   * @param ask asks one of the nodes
   * @param rename returns the address of a node from here, by its address within the cluster
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

  /** Handles the redirection of a command for this slot to another node. @returns the address of that node from here */
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

  /** Examines the cluster again soon, because something was not as expected. */
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
 * Parses the master of each slot from the answer to CLUSTER SLOTS: first and last slot, the master's host and port,
 * replicas.
 */
function ownersOf(slots: Reply, askedHost: string): (string | undefined)[] {
  const owners: (string | undefined)[] = []
  for (const range of slots as readonly Reply[]) {
    const [first, last, master] = range as [number, number, [string | null, number]]
    const [host, port] = master
    const owner = `${host === null || host === '' || host === '?' ? askedHost : host}:${port}`
    for (let slot = first; slot <= last; slot++) owners[slot] = owner
  }
  return owners
}
