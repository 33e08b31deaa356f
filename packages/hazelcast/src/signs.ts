import { WAITER_TTL, type Clock } from 'signalbox/engine'
import type { SignStore } from './entry-store.js'

/** Minimum time between two look-ups of the sign of a session, in milliseconds. */
const INTERVAL = 1000
/** A look-up is valid for this long, in milliseconds. A box that waits looks again before that. */
const VALID_FOR = 2500
/** Maximum number of sessions whose signs are remembered. */
const MAX_KNOWN = 4096
const NONE: ReadonlySet<string> = new Set()

/** A request, and the session of its box. */
interface Waiter {
  readonly id: string
  readonly session: string
}

/** The signs of another session, as far as this box knows them. */
interface Known {
  /** The clock time at which it was last looked up. */
  readonly lookedAt: number
  /** The newest sign; undefined if none was found yet. */
  readonly text: string | undefined
  /** The clock time at which that was first found. */
  readonly foundAt: number
  /** The requests that it names. */
  readonly ids: ReadonlySet<string>
}

/**
 * The signs of life of boxes. Each box has one entry, which names its requests that wait, so that they write nothing to
 * their keys. The member drops the entry if no other sign follows. A box reads the signs of others only when it matters
 * whether they are silent, and until then assumes that they live. A wrong assumption costs others at most a place in a
 * queue, because a grant has its own lease.
 */
export class Signs {
  readonly #store: SignStore
  readonly #clock: Clock
  #session: string | undefined
  #count = 0
  /** The requests that the last sign of this box named. */
  #own: ReadonlySet<string> = NONE
  readonly #known = new Map<string, Known>()

  constructor(store: SignStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Sends the sign of this box. @throws errors of the client */
  async send(session: string, ids: readonly string[]): Promise<void> {
    this.#session = session
    this.#own = new Set(ids)
    await this.#store.put(keyOf(session), JSON.stringify([++this.#count, ...ids]), WAITER_TTL)
  }

  /** Looks up the signs of sessions that were not looked up just now. @throws errors of the client */
  async lookUp(sessions: Iterable<string>): Promise<void> {
    const before = this.#clock.now() - INTERVAL
    const unknown = [...new Set(sessions)].filter(
      session => session !== this.#session && !((this.#known.get(session)?.lookedAt ?? -Infinity) > before),
    )
    if (unknown.length === 0) return
    const found = await this.#store.getAll(unknown.map(keyOf))
    if (this.#known.size > MAX_KNOWN) this.#known.clear()
    const now = this.#clock.now()
    for (const session of unknown) {
      const text = found.get(keyOf(session))
      const known = this.#known.get(session)
      const isNew = text !== undefined && text !== known?.text
      this.#known.set(session, {
        lookedAt: now,
        text: text ?? known?.text,
        foundAt: isNew ? now : (known?.foundAt ?? -Infinity),
        ids: isNew ? idsIn(text) : (known?.ids ?? NONE),
      })
    }
  }

  /** Whether the last sign of a session names a request, as far as it is known. */
  isCovered({ id, session }: Waiter): boolean {
    if (session === this.#session) return this.#own.has(id)
    return this.#valid(session)?.ids.has(id) ?? true
  }

  /** Returns the clock time at which the last sign of a session came, as far as it is known. */
  seen(session: string): number {
    return this.#valid(session)?.foundAt ?? this.#clock.now()
  }

  #valid(session: string): Known | undefined {
    const known = this.#known.get(session)
    return known && this.#clock.now() - known.lookedAt < VALID_FOR ? known : undefined
  }
}

function keyOf(session: string): string {
  return `alive/${session}`
}

/** Returns no IDs for the text of another program. */
function idsIn(text: string): ReadonlySet<string> {
  try {
    return new Set((JSON.parse(text) as unknown[]).filter(each => typeof each === 'string'))
  } catch {
    return NONE
  }
}
