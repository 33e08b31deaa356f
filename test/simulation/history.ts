import { createHash } from 'node:crypto'

/** The promises that the checker knows. */
export type Broken = 'P1' | 'P2' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P8' | 'P9' | 'P10' | 'P12' | 'P13'

export interface Violation {
  readonly promise: Broken
  readonly message: string
}

/** An event, with its time in milliseconds. */
export interface Entry {
  readonly at: number
  readonly who: string
  readonly what: string
  readonly detail: unknown
}

/** Matches text that may be a session ID. */
const SESSION = /[\w-]{12}/g

/** All events of one schedule, and the first violated promise. */
export class History {
  violation: Violation | undefined
  /** First number and version of the engine. The history shows other numbers and versions relative to it. */
  origin = 0
  readonly #now: () => number
  readonly #entries: Entry[] = []
  /** Names of sessions. Session IDs are random, and names are the same in each run of a seed. */
  readonly #names = new Map<string, string>()

  constructor(now: () => number) {
    this.#now = now
  }

  name(session: string, name: string): void {
    this.#names.set(session, name)
  }

  /** @param detail must not change afterwards. */
  note(who: string, what: string, detail?: unknown): void {
    this.#entries.push({ at: this.#now(), who, what, detail })
  }

  violate(promise: Broken, message: string): void {
    if (this.violation) return
    this.violation = { promise, message: this.#named(message) }
    this.note('!!', `${promise} broken: ${message}`)
  }

  /** The events in the order in which they happened. */
  get entries(): readonly Entry[] {
    return this.#entries
  }

  /** Returns a hash that is equal for equal histories. */
  fingerprint(): string {
    return createHash('sha256').update(this.print()).digest('hex')
  }

  print(): string {
    const lines = this.#entries.map(
      ({ at, who, what, detail }) =>
        `${at.toFixed(3).padStart(12)} ${who.padEnd(6)} ${what}${detail === undefined ? '' : ` ${this.#text(detail)}`}`,
    )
    return this.#named(lines.join('\n'))
  }

  #text(detail: unknown): string {
    return typeof detail === 'string'
      ? detail
      : JSON.stringify(detail, (_key, value: unknown) => this.#shown(value)).replaceAll('"', '')
  }

  #shown(value: unknown): unknown {
    if (typeof value === 'bigint') return `${Number(value / 1024n) - this.origin}.${value % 1024n}`
    if (typeof value !== 'number') return value
    return value >= this.origin ? value - this.origin : Math.round(value * 1000) / 1000
  }

  #named(text: string): string {
    return text.replace(SESSION, word => this.#names.get(word) ?? word)
  }
}
