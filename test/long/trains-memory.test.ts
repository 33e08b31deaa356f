import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { faultless, runTracker } from '../support/trains/run-tracker.js'

/** Maximum time of a run with a million messages, in milliseconds. */
const MAX_RUN = 10 * 60_000

test('a million messages take no more memory than half of them', { timeout: 2 * MAX_RUN }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const peaks: { supervisor: number; worker: number }[] = []
  for (const days of [150, 300]) {
    const argv = ['--days', `${days}`, '--processes', '4']
    const { report } = await runTracker(folder, `file:${folder}/${days}`, argv, { limit: MAX_RUN })
    expect(report).toMatchObject(faultless(days))
    const worker = Math.max(...report.perWorker.map(({ peakMemory }) => peakMemory!))
    peaks.push({ supervisor: report.peakMemory, worker })
  }
  const [half, all] = peaks
  // Two equal runs differ by up to a quarter, because the garbage collector runs at any time.
  expect(all!.supervisor / half!.supervisor).toBeLessThan(1.25)
  expect(all!.worker / half!.worker).toBeLessThan(1.25)
})
