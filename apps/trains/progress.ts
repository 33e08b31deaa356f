import { InputError, type TimedMessage } from './input/source.js'
import { ID_RETENTION } from './run-store.js'
import type { OnDone } from './supervisor/stream-window.js'
import type { Tracker } from './tracker.js'

/** The store key of a run's progress, next to its trains and locations. */
const KEY = 'RUN'

/** The run name that progress is stored under. The next run can read it without the name of the last one. */
const ANY_RUN = 'any'

/** The progress of a run, from which `--resume` continues. */
export interface Progress {
  /** The name of the run: see `RunStore`. */
  readonly run: string
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
  value = 0x811c9dc5

  add(id: string): void {
    for (let index = 0; index < id.length; index++) {
      this.value = Math.imul(this.value ^ id.charCodeAt(index), 0x01000193)
    }
    // Separates the IDs: without this, `a`, `bc` and `ab`, `c` would have the same digest.
    this.value = Math.imul(this.value ^ 0xff, 0x01000193) >>> 0
  }
}

/**
 * Maximum age of stored progress that a run can resume, in milliseconds. It is below the retention of IDs, because a
 * message after the stored mark may have been committed some time before the mark was stored.
 */
const RESUMABLE = ID_RETENTION - 3_600_000

/** Checks that a run can be resumed. @throws InputError if its progress is too old, or the input is another one. */
export function checkResumable(progress: Progress, input: string): void {
  if (Date.now() - progress.at > RESUMABLE) {
    throw new InputError(
      '--resume: the run was interrupted more than 23 hours ago, and the store forgets which messages are committed ' +
        'after 24: start a new run without --resume',
    )
  }
  if (progress.input !== input) {
    throw new InputError(
      `--resume needs the input of the interrupted run, ${progress.input}; this is ${input}`,
    )
  }
}

/**
 * Yields the messages that the interrupted run has not done, and reports those that it has done to `onDone`.
 * @param digest of the IDs that `onDone` has received; `onDone` must update it.
 * @throws InputError if the input does not begin with the messages of the interrupted run.
 */
export async function* skipDone(
  batches: AsyncIterable<readonly TimedMessage[]>,
  progress: Progress,
  digest: IdDigest,
  onDone: OnDone,
): AsyncGenerator<readonly TimedMessage[]> {
  const deadLettered = new Set(progress.deadLettered)
  let sequence = 0
  for await (const batch of batches) {
    if (sequence === progress.lowWatermark) {
      yield batch
      continue
    }
    const done = batch.slice(0, progress.lowWatermark - sequence)
    for (const { message } of done) {
      onDone(message, sequence, deadLettered.has(sequence))
      sequence++
    }
    if (sequence === progress.lowWatermark && digest.value !== progress.digest) {
      throw new InputError(`--resume: the first ${sequence} messages are not those of the interrupted run`)
    }
    if (done.length < batch.length) yield batch.slice(done.length)
  }
  if (sequence < progress.lowWatermark) {
    throw new InputError(
      `--resume: the input ends after ${sequence} messages, but ${progress.lowWatermark} are done`,
    )
  }
}
