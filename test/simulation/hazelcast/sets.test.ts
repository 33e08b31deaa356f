import { expect, test } from 'vitest'
import { KeyOperations } from '../../../packages/hazelcast/src/key-operations.js'
import { runCancelledSet, runLateSet, runWaitingSet } from './late-set.js'
import { runSets } from './run.js'

/** The mutants of `npm run test:all` take up to 6,000. */
const RUNS = 50

test('boxes that lock and change sets of keys, while calls, hints and processes are lost, break no promise', async () => {
  for (let seed = 0; seed < RUNS; seed++) {
    const { wrong, log } = await runSets(seed, KeyOperations)
    if (wrong !== undefined) expect.fail(`seed ${seed}: ${wrong}\n${log.join('\n')}`)
  }
})

test.each([false, true])(
  'a set whose first key comes late has nothing once another box has its other key, others: %s',
  async others => {
    expect(await runLateSet(KeyOperations, others)).toBeUndefined()
  },
)

test('a cancelled set has no place in a queue, although a hint for it was being handled', async () => {
  expect(await runCancelledSet(KeyOperations)).toBeUndefined()
})

test('a set of a new box follows one that waits in the waiting room, and no free key is refused', async () => {
  expect(await runWaitingSet(KeyOperations)).toBeUndefined()
})
