import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { Box, Party } from '../../src/box.js'
import { startChild as start, type Child } from '../../src/conformance/child.js'
import { locks, queued } from '../../src/conformance/time.js'
import type { Duration } from '../../src/duration.js'

const root = new URL('../../', import.meta.url)

/** Starts a program by its path in the checkout, without `.process.js`. It is killed with the test that started it. */
export function startChild(program: string, ...argv: string[]): Child {
  const child = start(fileURLToPath(new URL(`${program}.process.js`, root)), argv)
  onTestFinished(() => child.kill('SIGKILL'))
  return child
}

/** Starts a process that holds the key `held`. It waits for another one, which the box keeps, so it does not end. */
export async function startHolder(
  box: Box,
  url: string,
  lease: Duration,
): Promise<{ child: Child; holder: Party }> {
  await box.mutex('waited').acquire()
  const child = startChild('dist/src/conformance/holder', 'signalbox', url, String(lease))
  await child.printed('holding')
  await queued(box, 'waited', 1)
  const [report] = await locks(box, 'held')
  return { child, holder: report!.holders[0]! }
}
