import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startZooKeeper, type ZooKeeperServer } from '../support/servers/zookeeper.js'
import { faultless, runTracker, TIME_LIMIT } from '../support/trains/run-tracker.js'

let server: ZooKeeperServer
let folder: string

beforeAll(async () => {
  server = await startZooKeeper()
  folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))
})

afterAll(async () => {
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'the tracker on ZooKeeper ends with the serial result although workers are killed',
  { timeout: 2 * TIME_LIMIT },
  async () => {
    const argv = ['--processes', '3', '--days', '1', '--kill', '2']
    const url = `zookeeper://${server.address}/trains?sessionTimeout=2s`
    const { status, output, report } = await runTracker(folder, url, argv)
    expect(status, output).toBe(0)
    expect(report).toMatchObject(faultless(1))
    expect(report.kills).toHaveLength(2)
  },
)
