import type { Tracker } from './tracker.js'

/** Where the progress of a run is kept, next to its trains and locations. */
const KEY = 'RUN'

/** The run that progress is stored under: the next run reads it without knowing the name of the last one. */
const ANY_RUN = 'any'

/** How far a run has come: what `--resume` needs to continue. */
export interface Progress {
  /** The name of the run: see `RunStore`. */
  readonly run: string
  /** The description of the input. */
  readonly input: string
  /** All messages before this one, counted from 0 in the order of the input, are done. */
  readonly mark: number
  /** The digest of their ids. */
  readonly digest: number
  /** Which of them were given up. */
  readonly givenUp: readonly number[]
  /** When it was stored, in milliseconds since 1970. */
  readonly at: number
}

/** @returns how far the last run on this engine has come; undefined when there was none. */
export async function loadProgress(tracker: Pick<Tracker, 'store'>): Promise<Progress | undefined> {
  return (await tracker.store(ANY_RUN).get(KEY)) as Progress | undefined
}

/** Remembers how far this run has come, in place of any earlier run. */
export function saveProgress(tracker: Pick<Tracker, 'store'>, progress: Progress): Promise<void> {
  return tracker.store(ANY_RUN).put(KEY, progress)
}

/** Recognises a sequence of ids, so that a run is not resumed with another input. */
export class IdDigest {
  #value = 0x811c9dc5

  get value(): number {
    return this.#value
  }

  add(id: string): void {
    for (let index = 0; index < id.length; index++) {
      this.#value = Math.imul(this.#value ^ id.charCodeAt(index), 0x01000193)
    }
    // Else `a`, `bc` and `ab`, `c` would be the same.
    this.#value = Math.imul(this.#value ^ 0xff, 0x01000193) >>> 0
  }
}
