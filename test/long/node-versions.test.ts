import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { runProgram } from '../support/run-program.js'

const minute = 60_000
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-node-'))
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The supported major versions, except the one that runs this test. All other tests run on that one. */
const others = ['20', '24'].filter(major => !process.versions.node.startsWith(`${major}.`))

/** Installs a major version from the registry, and returns the path of its program. */
async function nodeOf(major: string): Promise<string> {
  const options = ['--no-audit', '--no-fund', '--prefer-offline', '--no-save']
  await runProgram('npm', ['install', ...options, `node@${major}`], { cwd: folder, timeLimit: 5 * minute })
  return join(folder, 'node_modules/node/bin/node')
}

/** Tests that depend on Node itself, and on versions 5 and 6 of both Redis packages. */
const files = [
  'test/contract/memory.test.ts',
  'test/contract/file.test.ts',
  'test/contract/redis.test.ts',
  'test/integration/redis-clients.test.ts',
]

test.each(others)('engines and clients keep their promises on Node %s', async major => {
  const node = await nodeOf(major)
  const { stdout: version } = await runProgram(node, ['--version'], { cwd: root, timeLimit: minute })
  expect(version).toMatch(`v${major}.`)
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  // This test is about versions. The other runs, which retry nothing, find intermittent failures.
  const { stdout } = await runProgram(node, [vitest, 'run', '--retry=1', ...files], {
    cwd: root,
    timeLimit: 15 * minute,
  })
  expect(stdout).toMatch(/Test Files.*4 passed/)
})
