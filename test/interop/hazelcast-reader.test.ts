import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { open } from '../../src/open.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { faultless, runTracker } from '../support/trains/run-tracker.js'
import { javaMap } from './client.js'

const MAP = 'shop'

const server = await startHazelcast()
const url = `hazelcast://${server.address}/${TEST_CLUSTER}?map=${MAP}`
const folder = mkdtempSync(join(tmpdir(), 'signalbox-trains-'))

afterAll(async () => {
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs a Java program, and returns its replies to these commands. */
async function java(orders: readonly string[]): Promise<string[]> {
  const argv = [...javaMap.argv.slice(0, -1), 'HazelcastReader', server.address, TEST_CLUSTER, MAP]
  const child = spawn(javaMap.program, argv, { timeout: 60_000, killSignal: 'SIGKILL' })
  let output = ''
  let complaints = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
  child.stdin.end(orders.map(order => `${order}\n`).join(''))
  const status = await new Promise(resolve => child.once('close', resolve))
  expect(status, complaints).toBe(0)
  return output.trimEnd().split('\n')
}

test('a Java program reads the counters of the trains, and refuses an old token', async () => {
  const { status, output, report } = await runTracker(folder, url, ['--processes', '1', '--days', '1'])
  expect(status, output).toBe(0)
  expect(report).toMatchObject(faultless(1))
  await using box = await open(url)
  const token = () => box.mutex('ledger').run(grant => grant.token)
  const [older, newer] = [await token(), await token()]
  const locations = Object.entries(report.locations)
  const answers = await java([
    ...locations.map(([id]) => `counts ${id}`),
    'counts nowhere',
    `write ledger ${newer} by the newer`,
    `write ledger ${older} by the older`,
    `write ledger ${newer + 1n} by the newest`,
  ])
  const expected = locations.map(([, { created, deleted, arrived, departed }]) =>
    [created, deleted, arrived, departed].join(' '),
  )
  expect(answers).toEqual([...expected, 'absent', 'written', 'refused', 'written'])
})
