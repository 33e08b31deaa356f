import { expect, test } from 'vitest'
import type { RecordTransactions as Transactions } from '../../src/store/records/record-transactions.js'
import { explore } from '../simulation/records/explore.js'
import { explored } from '../simulation/records/scenario.js'
import { small } from '../simulation/records/scenarios.js'
import { mutatedCopy } from './mutated-copy.js'
import { recordMutants } from './record-mutants.js'

test.each(recordMutants)(
  'the mutant $id of transactions over records is found: $description',
  { timeout: 120_000 },
  async mutant => {
    const copy = mutatedCopy(mutant, ['src/store/records/record-transactions.ts'])
    try {
      const mutated = (await copy.load('src/store/records/record-transactions.js')) as {
        RecordTransactions: typeof Transactions
      }
      let found: string | undefined
      for (const scope of small)
        found ??= (await explore(explored(scope, mutated.RecordTransactions))).violation
      expect(found, 'nothing was wrong').toBeDefined()
    } finally {
      copy.remove()
    }
  },
)
