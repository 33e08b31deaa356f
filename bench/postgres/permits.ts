import pg from 'pg'
import { RateLimiterPostgres } from 'rate-limiter-flexible'
import { open } from 'signalbox'
import { postgresSupport } from '../lockers/postgres-server.js'
import { CALLERS, LIMIT, permits } from '../limits/permits.js'
import type { Work } from '../work.js'

const OWN = 'signalbox'
const FLEXIBLE = 'rate-limiter-flexible, by pg'

/** Taking available permits, from a PostgreSQL server. */
export const postgresPermits: Work = {
  part: 'postgres',
  name: `permits for ${CALLERS} callers in one process`,
  seconds: 1,
  subjects: [
    permits(OWN, postgresSupport, async url => {
      const box = await open(url)
      const limiter = box.limiter('partner', { limit: LIMIT, per: '1s' })
      return { take: () => limiter.acquire(), end: () => box.close() }
    }),
    permits(FLEXIBLE, postgresSupport, async url => {
      const storeClient = new pg.Pool({ connectionString: url, max: 10 })
      const limiter = await new Promise<RateLimiterPostgres>((resolve, reject) => {
        const options = { storeClient, points: LIMIT, duration: 1, tableName: 'limits' }
        const made: RateLimiterPostgres = new RateLimiterPostgres(options, error => {
          if (error) reject(error)
          else resolve(made)
        })
      })
      return { take: () => limiter.consume('partner'), end: () => storeClient.end() }
    }),
  ],
  comparisons: [{ measure: 'opsPerSecond', of: OWN, to: FLEXIBLE, goal: { atLeast: 4 } }],
}
