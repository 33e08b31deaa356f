import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { builtProgram } from '../support/built-program.js'
import { runProgram } from '../support/run-program.js'
import { startHazelcast, TEST_CLUSTER } from '../support/servers/hazelcast.js'
import { quorumUrl } from '../support/servers/quorum.js'
import { startRedisServers } from '../support/servers/redis.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { signalboxOn } from './client.js'
import { meetings } from './meeting.js'
import { runtime, type Runtime } from './runtime.js'

const TIME_LIMIT = 60_000

const folder = mkdtempSync(join(tmpdir(), 'signalbox-runtimes-'))
const [redis, zookeeper, hazelcast] = await Promise.all([
  startRedisServers(3),
  startZooKeeper(),
  startHazelcast(),
])

afterAll(async () => {
  await Promise.all([...redis, zookeeper, hazelcast].map(server => server.stop()))
  rmSync(folder, { recursive: true })
})

/** Returns the outcome of each step of `tour.process.ts`. */
async function tour(
  on: Runtime,
  url: string,
  ...options: readonly string[]
): Promise<Record<string, unknown>> {
  const { program, argv } = runtime(on, builtProgram('test/interop/tour.process.js'), options)
  const { stdout } = await runProgram(program, [...argv, url], { cwd: tmpdir(), timeLimit: TIME_LIMIT })
  const lines = stdout.trim().split('\n')
  return Object.fromEntries(lines.map(line => JSON.parse(line) as [string, unknown]))
}

describe.each(['Bun', 'Deno'] as const)('on %s', name => {
  const all = { lock: true, transaction: 2, limit: true, 'limit of threads': true }
  const without = 'INVALID_ARGUMENT'

  test.each([
    ['memory', () => 'memory:tour', all],
    ['files', () => `file:${folder}/${name}`, all],
    ['Redis', () => redis[0]!.url, all],
    ['a quorum', () => quorumUrl(redis), { ...all, transaction: without, limit: without }],
    ['ZooKeeper', () => `zookeeper://${zookeeper.address}/${name}`, { ...all, limit: without }],
    [
      'Hazelcast',
      () => `hazelcast://${hazelcast.address}/${TEST_CLUSTER}?map=${name}`,
      { ...all, limit: without },
    ],
  ])('%s does all that it does on Node', async (_, url, outcomes) => {
    expect(await tour(name, url())).toEqual(outcomes)
  })

  describe.each([
    ['files', () => `file:${folder}/both-${name}`],
    ['Redis', () => redis[0]!.url],
    ['a quorum', () => quorumUrl(redis)],
  ])('a process and one of Node on %s', (_, url) => {
    meetings(() => ({ url: url(), prefix: '', layout: 'string' }), signalboxOn(name))
  })
})

test('on Deno without --allow-ffi, the file engine and limits of threads are refused, and nothing is created', async () => {
  const path = join(folder, 'refused')
  const refused = 'UNAVAILABLE'
  expect(await tour('Deno', `file:${path}`, '--deny-ffi')).toEqual({
    lock: refused,
    transaction: refused,
    limit: refused,
    'limit of threads': refused,
  })
  expect(existsSync(path)).toBe(false)
})
