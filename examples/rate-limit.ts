/**
 * Calls a partner for each order on its command line. All processes together stay within the partner's limit. The
 * default is 20 calls in any second.
 *
 *     REDIS_URL=redis://localhost PARTNER_URL=https://partner.example node rate-limit.js order-1 order-2
 */
import { open, TimedOutError, type Duration } from 'signalbox'
import { limitFetch } from 'signalbox/limits/http'

const { REDIS_URL = 'redis://localhost', PARTNER_URL, LIMIT = '20', PER = '1s', WAIT = '30s' } = process.env
if (!PARTNER_URL) throw new Error('PARTNER_URL is missing')

await using box = await open(REDIS_URL)
// A call may take up to 100 ms longer to arrive than the previous call. Without `jitter`, the partner could then count
// too many calls in a second.
const partner = box.limiter('partner', { limit: Number(LIMIT), per: PER as Duration, jitter: '100ms' })
// The partner identifies an order by its key, so a retry is safe.
const callPartner = limitFetch(fetch, partner, { retries: 3, idempotent: true, wait: WAIT as Duration })

await Promise.all(
  process.argv.slice(2).map(async order => {
    try {
      const headers = { 'Idempotency-Key': order }
      const { status } = await callPartner(new URL('/orders', PARTNER_URL), { method: 'POST', headers })
      console.log(`${order}: ${status}`)
    } catch (error) {
      if (!(error instanceof TimedOutError)) throw error
      console.log(`${order}: not sent, the limit is reached`)
    }
  }),
)
