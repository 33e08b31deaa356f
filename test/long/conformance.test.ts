import { expect, test } from 'vitest'
import { root } from '../docs/pages.js'
import { builtProgram } from '../support/built-program.js'
import { runProgram } from '../support/run-program.js'

test('the engine among the examples passes all checks of the conformance kit', async () => {
  const program = builtProgram('examples/engine/json-engine.js')
  const { stdout } = await runProgram(process.execPath, [program, ''], { cwd: root, timeLimit: 300_000 })
  expect(Number(/^. tests (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(300)
  expect(stdout).toMatch(/^. fail 0$/m)
})
