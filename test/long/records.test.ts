import { describe, expect, test } from 'vitest'
import { RecordTransactions } from '../../src/store/records/record-transactions.js'
import { explore } from '../simulation/records/explore.js'
import { explored } from '../simulation/records/scenario.js'
import { large } from '../simulation/records/scenarios.js'

describe('transactions over records, every order of their calls', () => {
  test.each(large)('$scenario.name, $faults $kinds', async scope => {
    const { violation, states } = await explore(explored(scope, RecordTransactions))
    expect(violation).toBeUndefined()
    expect(states).toBeGreaterThan(1000)
  })
})
