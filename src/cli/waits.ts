import { systemClock } from '../clock.js'
import { shortDuration } from '../duration.js'
import type { Box, Party } from '../index.js'
import { pause } from '../pause.js'
import { reportsOf } from './ls.js'
import { oneLine } from './one-line.js'
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
    const [found] = await holdersOf(box, keys).catch(() => [])
    if (over.aborted) return
    if (found && found.holder.token !== told) {
      told = found.holder.token
      stderr.write(`signalbox: waiting for ${oneLine(found.key)}, ${heldBy(found.holder)}\n`)
    }
    await pause(LOOK, systemClock, over)
  }
}

async function holdersOf(box: Box, keys: readonly string[]): Promise<{ key: string; holder: Party }[]> {
  const found = await Promise.all(
    keys.map(async key => (await reportsOf(box, key)).find(report => report.key === key)),
  )
  return found.flatMap(report => report?.holders.map(holder => ({ key: report.key, holder })) ?? [])
}

function heldBy({ label, host, pid, age }: Party): string {
  const place = label === undefined ? host : `${oneLine(label)} on ${host}`
  return `held by ${place} (pid ${pid}) for ${shortDuration(age)}`
}
