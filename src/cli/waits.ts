import { systemClock } from '../base/clock.js'
import { shortDuration } from '../base/duration.js'
import type { Box, Party } from '../index.js'
import { pause } from '../base/pause.js'
import { waitsOf, type Wait } from '../reports/index.js'
import { reportsOf } from './ls.js'
import { printable } from '../base/printable.js'
import type { Terminal } from './terminal.js'

/** Minimum length of a wait that is reported, in milliseconds. */
const REPORT_AFTER = 1000
/** Interval at which the holder is looked up after that, in milliseconds. */
const LOOK_UP_INTERVAL = 5000

/** Reports on a terminal the holder that a task waits for, and again when the holder changes. */
export async function reportingWaits<T>(
  box: Box,
  keys: readonly string[],
  stderr: Terminal['stderr'],
  task: () => Promise<T>,
): Promise<T> {
  if (stderr.isTTY !== true) return task()
  const over = new AbortController()
  void report(box, keys, stderr, over.signal)
  try {
    return await task()
  } finally {
    over.abort()
  }
}

async function report(
  box: Box,
  keys: readonly string[],
  stderr: Terminal['stderr'],
  over: AbortSignal,
): Promise<void> {
  let reported: Party['token']
  await pause(REPORT_AFTER, systemClock, over)
  while (!over.aborted) {
    // If the engine can't be reached, the task itself reports it.
    const found = await blockerOf(box, keys).catch(() => undefined)
    if (over.aborted) return
    if (found && found.blocker.token !== reported) {
      reported = found.blocker.token
      stderr.write(`signalbox: waiting for ${printable(found.key)}, ${heldBy(found.blocker)}\n`)
    }
    await pause(LOOK_UP_INTERVAL, systemClock, over)
  }
}

async function blockerOf(box: Box, keys: readonly string[]): Promise<Wait<Party> | undefined> {
  const reports = await Promise.all(keys.map(key => reportsOf(box, key, { exact: true })))
  return waitsOf(reports.flat()).find(({ waiter, holds }) => holds && waiter.session === box.session)
}

function heldBy({ label, host, pid, age, session }: Party): string {
  if (session === '') return 'held by a client of another library'
  const place = printable(label === undefined ? host : `${label} on ${host}`)
  return `held by ${place}, pid ${pid}, requested ${shortDuration(age)} ago`
}
