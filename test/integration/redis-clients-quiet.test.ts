import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { clientPackages } from '../support/redis/client-packages.js'
import { runProgram, type Output } from '../support/run-program.js'
import { startRedisCluster } from '../support/servers/redis-cluster.js'
import { startRedisWithSentinel } from '../support/servers/redis-sentinel.js'
import { startRedis } from '../support/servers/redis.js'

/** Runs a program of `test/support/redis`, which must exit by itself. */
function run(program: string, ...argv: readonly string[]): Promise<Output> {
  const path = fileURLToPath(new URL(`../../build/test/support/redis/${program}.process.js`, import.meta.url))
  return runProgram(process.execPath, [path, ...argv], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    timeLimit: 20_000,
  })
}

const scenes = clientPackages.flatMap(({ name }) => [
  { name, way: 'own' },
  { name, way: 'given' },
])

describe.concurrent('a finished process that has lost its server ends', () => {
  test.each(scenes)('over $name, $way connections', async ({ name, way }) => {
    await using server = await startRedis()
    const output = await run('lost-server', server.url, String(server.pid), name, way)
    expect(output).toEqual({ stdout: 'done\n', stderr: '' })
  })
})

describe('a process ends whose boxes were closed while they were making connections', () => {
  test('over each client package, also where a server takes connections and says nothing', async () => {
    await using server = await startRedis()
    await using servers = await startRedisWithSentinel()
    await using cluster = await startRedisCluster()
    const ended = clientPackages.map(({ name }) =>
      run('closed-early', name, server.url, servers.url, cluster.url),
    )
    for (const output of await Promise.all(ended)) expect(output).toEqual({ stdout: 'done\n', stderr: '' })
  })
})
