import { describe, expect, test } from 'vitest'
import { RecordTransactions } from '../../../src/store/records/record-transactions.js'
import { mutatedCopy } from '../../planted/mutated-copy.js'
import { explore } from './explore.js'
import { recordMutants } from '../../planted/record-mutants.js'
import { explored } from './scenario.js'
import { small } from './scenarios.js'

describe('transactions over records', () => {
  describe('every order of their calls, with a fault at any of them', () => {
    test.each(small)('$scenario.name', async scope => {
      const { violation, ends } = await explore(explored(scope, RecordTransactions))
      expect(violation).toBeUndefined()
      expect(ends).toBeGreaterThan(1)
    })
  })

  describe('a mutant is found', () => {
    test.each(recordMutants)('$id: $description', async mutant => {
      const copy = mutatedCopy(mutant, ['store/records/record-transactions.ts'])
      try {
        const mutated = (await copy.load('store/records/record-transactions.js')) as {
          RecordTransactions: typeof RecordTransactions
        }
        let found: string | undefined
        for (const scope of small)
          found ??= (await explore(explored(scope, mutated.RecordTransactions))).violation
        expect(found, 'nothing was wrong').toBeDefined()
      } finally {
        copy.remove()
      }
    })
  })
})
