import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readAllBlocks, root } from '../docs/pages.js'
import { compileBlocks } from '../docs/typescript-blocks.js'
import { runProgram } from '../support/run-program.js'

test('the engine of the docs passes all checks of the conformance kit', async () => {
  const [template] = readAllBlocks().filter(({ page }) => page === 'docs/conformance.md')
  const output = join(root, 'build-docs', String(process.pid))
  mkdirSync(output, { recursive: true })
  onTestFinished(() => rmSync(output, { recursive: true, force: true }))
  const { problems, program } = compileBlocks([template!], output).get(template!)!
  expect(problems).toEqual([])
  const { stdout } = await runProgram(process.execPath, [program, ''], { cwd: output, timeLimit: 300_000 })
  expect(Number(/^. tests (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(300)
  expect(stdout).toMatch(/^. fail 0$/m)
})
