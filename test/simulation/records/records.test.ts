import { describe, expect, test } from 'vitest'
import { Ledger } from '../../../src/store/records/ledger.js'
import { mutatedCopy } from '../../planted/mutated-copy.js'
import { explore } from './explore.js'
import { recordMutants } from '../../planted/record-mutants.js'
import { explored } from './scenario.js'
import { small } from './scenarios.js'

describe('transactions over records', () => {
  describe('every order of their calls, with a fault at any of them', () => {
    test.each(small)('$scenario.name', async scope => {
      const { violation, ends } = await explore(explored(scope, Ledger))
      expect(violation).toBeUndefined()
      expect(ends).toBeGreaterThan(1)
    })
  })

  describe('a mutant is found', () => {
    test.each(recordMutants)('$id: $description', async mutant => {
      const copy = mutatedCopy(mutant, ['store/records/ledger.ts'])
      try {
        const mutated = (await copy.load('store/records/ledger.js')) as { Ledger: typeof Ledger }
        let found: string | undefined
        for (const scope of small) found ??= (await explore(explored(scope, mutated.Ledger))).violation
        expect(found, 'nothing was wrong').toBeDefined()
      } finally {
        copy.remove()
      }
    })
  })
})
