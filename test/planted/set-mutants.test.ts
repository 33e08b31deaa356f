import { expect, test } from 'vitest'
import type { KeyOperations as Operations } from '../../packages/hazelcast/src/key-operations.js'
import { runCancelledSet, runLateSet, runWaitingSet } from '../simulation/hazelcast/late-set.js'
import { runSets } from '../simulation/hazelcast/run.js'
import { mutatedCopy } from './mutated-copy.js'
import { setMutants } from './set-mutants.js'

/** Maximum number of runs until a mutant must be found. */
const RUNS = 6000

test.each(setMutants)('the mutant $id of sets is found: $description', { timeout: 600_000 }, async mutant => {
  const copy = mutatedCopy(mutant, ['packages/hazelcast/src/key-operations.ts'])
  try {
    const mutated = (await copy.load('packages/hazelcast/src/key-operations.js')) as {
      KeyOperations: typeof Operations
    }
    const { KeyOperations } = mutated
    let found =
      (await runLateSet(KeyOperations, false)) ??
      (await runLateSet(KeyOperations, true)) ??
      (await runCancelledSet(KeyOperations)) ??
      (await runWaitingSet(KeyOperations))
    for (let seed = 0; found === undefined && seed < RUNS; seed++)
      found = (await runSets(seed, KeyOperations)).wrong
    expect(found, `${RUNS} runs went by`).toBeDefined()
    // A mutant that does not run breaks everything.
    expect(found).not.toMatch(/ReferenceError|SyntaxError/)
  } finally {
    copy.remove()
  }
})
