import { systemClock } from '../clock.js'
import { shortDuration } from '../duration.js'
import type { Box, Party } from '../index.js'
import { pause } from '../pause.js'
import { waitsOf, type Wait } from './blocking.js'
import { reportsOf } from './ls.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

/** A wait that is shorter is not told: milliseconds. */
const PATIENCE = 1000
/** How often the holder is looked at after that: milliseconds. */
const LOOK = 5000

/** Tells a person which holder keeps a task waiting, and tells it again when that is another one. */
export async function tellingWaits<T>(
  box: Box,
  keys: readonly string[],
  stderr: Terminal['stderr'],
  task: () => Promise<T>,
): Promise<T> {
  if (stderr.isTTY !== true) return task()
  const over = new AbortController()
  void tell(box, keys, stderr, over.signal)
  try {
    return await task()
  } finally {
    over.abort()
  }
}

async function tell(
  box: Box,
  keys: readonly string[],
  stderr: Terminal['stderr'],
  over: AbortSignal,
): Promise<void> {
  let told: Party['token']
  await pause(PATIENCE, systemClock, over)
  while (!over.aborted) {
    // The task itself tells of an engine that can't be asked.
    const found = await blockerOf(box, keys).catch(() => undefined)
    if (over.aborted) return
    if (found && found.blocker.token !== told) {
      told = found.blocker.token
      stderr.write(`signalbox: waiting for ${printable(found.key)}, ${heldBy(found.blocker)}\n`)
    }
    await pause(LOOK, systemClock, over)
  }
}

/** A holder that keeps this box from one of the keys. */
async function blockerOf(box: Box, keys: readonly string[]): Promise<Wait | undefined> {
  const reports = await Promise.all(keys.map(key => reportsOf(box, key, { exact: true })))
  return waitsOf(reports.flat()).find(({ waiter, holds }) => holds && waiter.session === box.session)
}

function heldBy({ label, host, pid, age, session }: Party): string {
  if (session === '') return 'held by a client of another library'
  const place = printable(label === undefined ? host : `${label} on ${host}`)
  return `held by ${place} (pid ${pid}), which asked for it ${shortDuration(age)} ago`
}
