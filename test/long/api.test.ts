import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { runProgram } from '../support/run-program.js'

test('the reference of the API is built without a warning', async () => {
  const program = join(root, 'node_modules/typedoc/bin/typedoc')
  // Its settings make every warning an error.
  const { stdout } = await runProgram(process.execPath, [program], { cwd: root, timeLimit: 300_000 })
  expect(stdout).toContain('html generated')
})
