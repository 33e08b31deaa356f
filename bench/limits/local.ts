import Bottleneck from 'bottleneck'
import { RateLimiter } from 'limiter'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { limiter } from 'signalbox/limits'
import { now } from '../clock.js'
import { busy } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Work } from '../work.js'

/** Permits per second: high enough that one is always available. */
const LIMIT = 1e9
const EXACT = 'signalbox, exact to the permit'

/** A subject whose decision is the return value of a call. */
function decided(name: string, prepare: () => () => boolean): ForkedSubject {
  return subject(name, () => {
    const once = prepare()
    return (count: number) => {
      for (let index = 0; index < count; index++) if (!once()) throw new Error('there was no permit')
      return Promise.resolve()
    }
  })
}

/** A subject whose decision is a promise. */
function promised(name: string, prepare: () => () => Promise<unknown>): ForkedSubject {
  return subject(name, () => {
    const once = prepare()
    return async (count: number) => {
      for (let index = 0; index < count; index++) await once()
    }
  })
}

/** @param prepare returns a function that takes a number of permits one after another. */
function subject(name: string, prepare: () => (count: number) => Promise<void>): ForkedSubject {
  return forked(name, () => {
    const batch = prepare()
    const timed = async (): Promise<number> => {
      const since = now()
      await batch(1)
      return now() - since
    }
    return Promise.resolve({ perform: window => busy(window, 1, { batch, timed }), stop: async () => {} })
  })
}

/** Taking available permits, within one thread. */
export const localPermits: Work = {
  part: 'limits',
  name: 'a permit that is there, one thread',
  seconds: 0.5,
  subjects: [
    decided('signalbox', () => {
      const own = limiter({ limit: LIMIT, per: '1s' })
      return () => own.tryAcquire() !== undefined
    }),
    decided(EXACT, () => {
      // 10,000 is the greatest limit with an entry for each permit. A new limiter replaces one without permits left.
      const options = { limit: 10_000, per: '1s' } as const
      let own = limiter(options)
      return () => {
        if (own.tryAcquire() !== undefined) return true
        own = limiter(options)
        return own.tryAcquire() !== undefined
      }
    }),
    decided('limiter', () => {
      const own = new RateLimiter({ tokensPerInterval: LIMIT, interval: 'second' })
      return () => own.tryRemoveTokens(1)
    }),
    promised('rate-limiter-flexible', () => {
      const own = new RateLimiterMemory({ points: LIMIT, duration: 1 })
      return () => own.consume('key')
    }),
    promised('bottleneck', () => {
      const own = new Bottleneck()
      const nothing = (): Promise<void> => Promise.resolve()
      return () => own.schedule(nothing)
    }),
  ],
  comparisons: ['signalbox', EXACT].flatMap(of =>
    ['limiter', 'rate-limiter-flexible', 'bottleneck'].map(to => ({
      measure: 'opsPerSecond' as const,
      of,
      to,
      goal: { atLeast: 2 },
    })),
  ),
}
