import type { Tracker } from './tracker.js'

/** The store key of a run's progress, next to its trains and locations. */
const KEY = 'RUN'

/** The run name that progress is stored under. The next run can read it without the name of the last one. */
const ANY_RUN = 'any'

/** The progress of a run, from which `--resume` continues. */
export interface Progress {
  /** The name of the run: see `RunStore`. */
  readonly run: string
  /** The description of the input. */
  readonly input: string
  /** All messages below this sequence number are done. The first message of the input has number 0. */
  readonly lowWatermark: number
  /** The digest of the IDs of these messages. */
  readonly digest: number
  readonly deadLettered: readonly number[]
  /** Time at which the progress was stored, in milliseconds since 1970. */
  readonly at: number
}

/** Returns the progress of the last run on this engine; undefined if there was none. */
export async function loadProgress(tracker: Pick<Tracker, 'store'>): Promise<Progress | undefined> {
  return (await tracker.store(ANY_RUN).get(KEY)) as Progress | undefined
}

/** Stores the progress of this run, replacing that of any earlier run. */
export function saveProgress(tracker: Pick<Tracker, 'store'>, progress: Progress): Promise<void> {
  return tracker.store(ANY_RUN).put(KEY, progress)
}

/** Identifies a sequence of IDs, so that a run is not resumed with another input. */
export class IdDigest {
  #value = 0x811c9dc5

  get value(): number {
    return this.#value
  }

  add(id: string): void {
    for (let index = 0; index < id.length; index++) {
      this.#value = Math.imul(this.#value ^ id.charCodeAt(index), 0x01000193)
    }
    // Separates the IDs: without this, `a`, `bc` and `ab`, `c` would have the same digest.
    this.#value = Math.imul(this.#value ^ 0xff, 0x01000193) >>> 0
  }
}
