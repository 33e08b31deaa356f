import { describe, expect, test } from 'vitest'
import { RecordTransactions } from '../../../src/store/records/record-transactions.js'
import { explore } from './explore.js'
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
})
