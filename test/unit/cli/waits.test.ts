import { hostname } from 'node:os'
import { expect, onTestFinished, test, vi } from 'vitest'
import { reportingWaits } from '../../../src/cli/waits.js'
import { open } from '../../../src/index.js'

test('a terminal shows which holder a command waits for, a pipe does not', async () => {
  const [box, other] = [await open('memory:waits'), await open('memory:waits')]
  onTestFinished(async () => {
    await Promise.all([box.close(), other.close()])
  })
  const held = await other.mutex('nightly').acquire({ label: 'billing' })
  const told: string[] = []
  const waiting = [true, false].map(isTTY => {
    const stderr = { isTTY, write: (text: string) => told.push(`${isTTY ? '' : 'script: '}${text}`) }
    return reportingWaits(box, ['free', 'nightly'], stderr, () => box.mutex('free', 'nightly').acquire())
  })
  await vi.waitFor(() => expect(told).toHaveLength(1), { timeout: 5000 })
  expect(told[0]).toMatch(
    new RegExp(
      `^signalbox: waiting for nightly, held by billing on ${hostname()}, pid ${process.pid}, requested \\d\\.\\ds ago\\n$`,
    ),
  )
  await held.release()
  for (const grant of waiting) await (await grant).release()
  expect(told).toHaveLength(1)
})
