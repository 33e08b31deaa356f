import type { Clock, Timer } from '../../clock.js'
import { exclusiveKeys } from './own-requests.js'
import { emptyTable, type TableRecord } from './table-record.js'

/**
 * The grants of this box that no other request waited for when they were given. Their box is told `wanted` as soon as
 * another request waits, or when the time is over for which the engine can tell.
 */
export class LoneGrants {
  readonly #clock: Clock
  readonly #wanted: (id: string) => void
  readonly #timers = new Map<string, Timer>()
  /** The newest record. */
  #record = emptyTable()

  constructor(clock: Clock, wanted: (id: string) => void) {
    this.#clock = clock
    this.#wanted = wanted
  }

  /** Watches a grant for so many milliseconds, if it is alone. False: it is not. */
  watch(id: string, time: number): boolean {
    this.#timers.get(id)?.cancel()
    this.#timers.delete(id)
    if (!isAlone(id, this.#record)) return false
    const over = (): void => {
      this.#timers.delete(id)
      this.#wanted(id)
    }
    this.#timers.set(id, this.#clock.after(time, over, false))
    return true
  }

  /** Goes on to a newer record. */
  follow(record: TableRecord): void {
    this.#record = record
    // The box is told again when the time is over: it ignores what it hears before it knows of the grant.
    for (const id of this.#timers.keys()) if (!isAlone(id, record)) this.#wanted(id)
  }

  stop(): void {
    for (const timer of this.#timers.values()) timer.cancel()
  }
}

/** Whether a grant excludes all others, and no other request claims any of its keys. */
function isAlone(id: string, { requests }: TableRecord): boolean {
  const own = requests.find(each => each.id === id)
  if (!own || exclusiveKeys(own.claims).length < own.claims.length) return false
  const keys = new Set(own.claims.map(({ key }) => key))
  return requests.every(each => each === own || !each.claims.some(({ key }) => keys.has(key)))
}
