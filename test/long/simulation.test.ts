import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runProgram } from '../support/run-program.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const program = fileURLToPath(new URL('../../build/test/simulation/seeds.process.js', import.meta.url))
const SCHEDULES = 100_000
/** Number of schedules that one process runs. */
const PORTION = 5000
/** Maximum time, in milliseconds. The processes get only the processor time that other work leaves. */
const TIME_LIMIT = 8_000_000

test('100,000 schedules break no promise', { timeout: TIME_LIMIT }, async () => {
  const broken: string[] = []
  // The short run uses other seeds.
  let next = 1_000_000
  const end = next + SCHEDULES
  const worker = async (): Promise<void> => {
    while (next < end && broken.length === 0) {
      const first = next
      next += PORTION
      const argv = [program, String(first), String(next)]
      await runProgram(process.execPath, argv, { cwd: root, timeLimit: TIME_LIMIT }).catch(
        (error: unknown) => {
          broken.push((error as Error).message)
        },
      )
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, worker))
  expect(broken).toEqual([])
})
