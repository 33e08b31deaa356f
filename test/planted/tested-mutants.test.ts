import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { mutatedSource } from './mutated-copy.js'
import { testedMutants } from './tested-mutants.js'

/** The required parts of Vitest's report in JSON. */
interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

/** Maximum time of a test that waits for an event that the mutant prevents, in milliseconds. */
const TIMEOUT = 10_000

test.each(testedMutants)('the mutant $id is found by a test: $description', async mutant => {
  const { file, test: finder } = mutant
  const child = spawn(
    process.execPath,
    [
      ...['node_modules/vitest/vitest.mjs', 'run', `${file}.test.ts`],
      ...['--config', 'test/planted/mutated.config.ts', '--project', 'unit'],
      ...['--testNamePattern', literally(finder), '--testTimeout', String(TIMEOUT), '--reporter', 'json'],
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, SIGNALBOX_MUTANT: JSON.stringify(mutatedSource(mutant)) },
    },
  )
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  expect(output, errors).toMatch(/^\{/)
  const { testResults } = JSON.parse(output) as Report
  const results = testResults.flatMap(({ assertionResults }) => assertionResults)
  const found = results.find(({ fullName }) => fullName === finder)
  expect(found?.status, errors).toBe('failed')
  // A mutant that does not run breaks every test.
  expect(found!.failureMessages.join('\n')).not.toMatch(/ReferenceError|SyntaxError/)
})

/** Returns a pattern that matches this test name only. */
function literally(name: string): string {
  return `^${name.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)}$`
}
