import type { IMap } from 'hazelcast-client'
import { endOfTick, type Clock } from 'signalbox/engine'
import { answered } from './call.js'

/** A hint for a box. */
export interface Message {
  /** `look`: another request has come for a key that this one holds. */
  readonly type: 'wake' | 'lost' | 'look'
  /** The request. */
  readonly id: string
  /** The key whose entry has changed. */
  readonly key: string
  /** The entry after that change, unless it is long. With it, the next change of that box needs no read. */
  readonly text?: string | undefined
}

const TYPES: readonly string[] = ['wake', 'lost', 'look'] satisfies Message['type'][]
/** Maximum length of an entry in a hint, in characters. */
const MAX_LENGTH = 16_384

/** A member keeps a hint for this long, in milliseconds. */
const KEPT = 60_000

/**
 * Sends hints to other boxes. Each box listens to one entry. No box reads that entry, so it does not matter whether a
 * hint is late, lost or overwritten.
 */
export class Hints {
  readonly #map: () => Promise<IMap<string, string>>
  readonly #clock: Clock
  readonly #waiting = new Map<string, Message[]>()
  readonly #underway = new Set<Promise<unknown>>()

  constructor(map: () => Promise<IMap<string, string>>, clock: Clock) {
    this.#map = map
    this.#clock = clock
  }

  /** Sends a hint with the others of this tick. */
  send(session: string, message: Message): void {
    const others = this.#waiting.get(session)
    if (others) return void others.push(message)
    if (this.#waiting.size === 0) endOfTick(() => this.#sendAll())
    this.#waiting.set(session, [message])
  }

  /** Resolves when all hints have arrived or have failed. */
  async settled(): Promise<void> {
    await new Promise<void>(resolve => endOfTick(resolve))
    await answered(Promise.allSettled(this.#underway), this.#clock).catch(() => undefined)
  }

  #sendAll(): void {
    const all = [...this.#waiting]
    this.#waiting.clear()
    for (const [session, messages] of all) {
      const text = JSON.stringify(messages.map(encode))
      const sending = this.#map().then(map => map.set(mailboxOf(session), text, KEPT))
      this.#underway.add(sending)
      const over = (): void => void this.#underway.delete(sending)
      sending.then(over, over)
    }
  }
}

function encode({ type, id, key, text }: Message): string[] {
  return text === undefined || text.length > MAX_LENGTH ? [type, id, key] : [type, id, key, text]
}

/** The key of the entry to which the hints for a box are written. */
export function mailboxOf(session: string): string {
  return `hint/${session}`
}

/** Returns the hints in a text; none for the text of another program. */
export function messagesIn(text: string): Message[] {
  try {
    const messages = JSON.parse(text) as [Message['type'], string, string, string?][]
    return messages.flatMap(([type, id, key, entry]) =>
      TYPES.includes(type) && typeof id === 'string' && typeof key === 'string'
        ? [{ type, id, key, text: typeof entry === 'string' ? entry : undefined }]
        : [],
    )
  } catch {
    return []
  }
}
