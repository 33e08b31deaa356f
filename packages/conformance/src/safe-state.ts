import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'
import { guardedCommits } from './guarded-commits.js'
import { listing } from './listing.js'
import { sharedCommits } from './shared-commits.js'
import { transactionIds } from './transaction-ids.js'
import { transactions } from './transactions.js'
import { values } from './values.js'
import { watching } from './watching.js'

/** P13: a committed change is there, and a change whose grant was lost is rejected by the store. */
export function safeState(fixture: EngineFixture): void {
  describe('P13 commits are atomic and durable', () => {
    values(fixture)
    listing(fixture)
    for (const [manner, options] of [
      ['each on its own', {}],
      ['in groups', { group: { maxSize: 8, maxTime: 20 } }],
    ] as const) {
      describe(`transactions, ${manner}`, () => {
        transactions(fixture, options)
        transactionIds(fixture, options)
        guardedCommits(fixture, options)
      })
    }
    sharedCommits(fixture)
    if (!fixture.hasRecords) watching(fixture)
  })
}
