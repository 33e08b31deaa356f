import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { clientPackages } from '../redis/client-packages.js'
import { runProgram } from '../run-program.js'
import { startRedis } from '../servers/redis.js'

const program = fileURLToPath(new URL('../../build/test/redis/lost-server.process.js', import.meta.url))

const scenes = clientPackages.flatMap(({ name }) => [
  { name, way: 'own' },
  { name, way: 'given' },
])

describe.concurrent('a finished process that has lost its server ends', () => {
  test.each(scenes)('over $name, $way connections', async ({ name, way }) => {
    await using server = await startRedis()
    const output = await runProgram(process.execPath, [program, server.url, String(server.pid), name, way], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      timeLimit: 20_000,
    })
    expect(output).toEqual({ stdout: 'done\n', stderr: '' })
  })
})
