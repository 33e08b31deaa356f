import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { runtime } from '../interop/runtime.js'
import { runProgram } from '../support/run-program.js'

const minute = 60_000
const vitest = join(root, 'node_modules/vitest/vitest.mjs')

/** Bun runs a program that names Node in its first line in Node, unless it gets this option. */
const options = { Bun: ['--bun'], Deno: [] }

const files = [
  'test/contract/memory.test.ts',
  'test/contract/file.test.ts',
  'test/contract/redis.test.ts',
  'test/contract/postgres.test.ts',
  'test/unit/engines/file/driver.test.ts',
  'test/integration/limit-threads.test.ts',
]

test.each(['Bun', 'Deno'] as const)('engines and limits of threads keep their promises on %s', async name => {
  const { program, argv } = runtime(name, vitest, options[name])
  // This test is about runtimes. The other runs, which retry nothing, find intermittent failures.
  const { stdout } = await runProgram(program, [...argv, 'run', '--retry=1', ...files], {
    cwd: root,
    timeLimit: 19 * minute,
  })
  expect(stdout).toMatch(/Test Files.*6 passed/)
})
