import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHazelcast, TEST_CLUSTER, type HazelcastServer } from '../support/servers/hazelcast.js'
import { DAY, runTracker, TIME_LIMIT } from '../support/trains/run-tracker.js'

let server: HazelcastServer
let folder: string

beforeAll(async () => {
  server = await startHazelcast()
  folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
})

afterAll(async () => {
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'the tracker on Hazelcast ends with the serial result although workers are killed',
  { timeout: 2 * TIME_LIMIT },
  async () => {
    const argv = ['--processes', '3', '--days', '1', '--kill', '2']
    const url = `hazelcast://${server.address}/${TEST_CLUSTER}?map=trains`
    const { status, output, report } = await runTracker(folder, url, argv)
    expect(status, output).toBe(0)
    expect(report).toMatchObject({
      messages: DAY.messages,
      created: DAY.created,
      moved: DAY.moved,
      deleted: DAY.deleted,
      ignored: 0,
      deadLettered: 0,
      matchesSerial: true,
    })
    expect(report.kills).toHaveLength(2)
  },
)
