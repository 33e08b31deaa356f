import { describe, expect, test } from 'vitest'
import { Ledger } from '../../../src/store/records/ledger.js'
import { faultyCopy } from '../faulty-copy.js'
import { explore } from './explore.js'
import { mistakes } from './mistakes.js'
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

  describe('a mistake in the sources is found', () => {
    test.each(mistakes)('$name', async mistake => {
      const copy = faultyCopy(mistake, ['store/records/ledger.ts'])
      try {
        const faulty = (await copy.load('store/records/ledger.js')) as { Ledger: typeof Ledger }
        let found: string | undefined
        for (const scope of small) found ??= (await explore(explored(scope, faulty.Ledger))).violation
        expect(found, 'nothing was wrong').toBeDefined()
      } finally {
        copy.remove()
      }
    })
  })
})
