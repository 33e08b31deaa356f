import { expect, test } from 'vitest'
import { reduced } from './reduction.js'
import { simulate } from './simulate.js'
import { sources } from './sources.js'

const { SEED } = process.env

test.runIf(SEED)('the schedule of SEED breaks no promise', async () => {
  const result = await simulate(Number(SEED), sources)
  const { history } = result.violation ? await reduced(result, sources) : result
  console.info(history.print())
  expect(result.violation).toBeUndefined()
})
