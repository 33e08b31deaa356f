import { bottleneckRedis } from './bottleneck-redis.js'
import { bottleneck } from './bottleneck.js'
import { counterRing } from './counter-ring.js'
import { eitherRefill, firstCallerRefill } from './first-caller-refill.js'
import { limiterPackage } from './limiter.js'
import { packedCounter } from './packed-counter.js'
import { pThrottleStrict } from './p-throttle-strict.js'
import { pThrottleWindow } from './p-throttle.js'
import { rateLimiterFlexibleRedis } from './rate-limiter-flexible-redis.js'
import { rateLimiterFlexible } from './rate-limiter-flexible.js'
import { scheduledRefill } from './scheduled-refill.js'
import { semaphoreRing } from './semaphore-ring.js'
import { signalboxFile } from './signalbox-file.js'
import { signalboxRedis } from './signalbox-redis.js'
import { signalboxWindow } from './signalbox-window.js'
import type { Strategy } from './strategy.js'
import { timedSemaphore } from './timed-semaphore.js'
import { tokenBucket } from './token-bucket.js'
import { usualCounter } from './usual-counter.js'

/** All strategies, in the order of the table. */
export const strategies: readonly Strategy[] = [
  signalboxWindow('sliding'),
  signalboxWindow('calendar'),
  signalboxWindow('smooth'),
  signalboxFile,
  signalboxRedis,
  scheduledRefill,
  firstCallerRefill,
  eitherRefill,
  usualCounter,
  packedCounter,
  counterRing,
  semaphoreRing,
  tokenBucket,
  timedSemaphore,
  bottleneck,
  bottleneckRedis,
  pThrottleWindow,
  pThrottleStrict,
  rateLimiterFlexible,
  rateLimiterFlexibleRedis,
  limiterPackage,
]

/** Returns the strategy with this name. @throws Error if there is none. */
export function strategy(name: string): Strategy {
  const found = strategies.find(one => one.name === name)
  if (!found) throw new Error(`there is no strategy ${name}`)
  return found
}
