import { InputError, type TimedMessage } from './input/source.js'
import type { OnDone } from './supervisor/stream-window.js'
import type { IdDigest, Progress } from './progress.js'
import { ID_RETENTION } from './run-store.js'

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
