import { inspect } from 'node:util'
import { InvalidArgumentError } from 'signalbox'
import { box } from './box.js'
import { checksOf, type Check } from './checks.js'
import { clocks } from './clocks.js'
import { concurrency } from './concurrency.js'
import { definitions } from './definitions.js'
import { deadNetwork } from './dead-network.js'
import { crowd, largeCrowd } from './crowd.js'
import { deadHolders } from './dead-holders.js'
import { deadRemains, manyDeadRemains } from './dead-remains.js'
import { deadWaiters } from './dead-waiters.js'
import { deadline } from './deadline.js'
import { distance } from './distance.js'
import { distantLimits } from './distant-limits.js'
import { election } from './election.js'
import { ends } from './ends.js'
import { errors } from './errors.js'
import { exclusion } from './exclusion.js'
import { fencing } from './fencing.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { forgedHints } from './forged-hints.js'
import { foundKeys } from './found-keys.js'
import { givingUp } from './giving-up.js'
import { growth } from './growth.js'
import { halfDead } from './half-dead.js'
import { jitter } from './jitter.js'
import { keptIds } from './kept-ids.js'
import { keptPlaces } from './kept-places.js'
import { lateRequests } from './late-requests.js'
import { limits, noLimits } from './limits.js'
import { lostHints } from './lost-hints.js'
import { lostReplies } from './lost-replies.js'
import { once } from './once.js'
import { order } from './order.js'
import { quiet } from './quiet.js'
import { readNotWritten } from './read-not-written.js'
import { release } from './release.js'
import { safeState } from './safe-state.js'
import { silentHints } from './silent-hints.js'
import { spoiled } from './spoiled.js'
import { thaw } from './thaw.js'
import { waking } from './waking.js'
import { weaknesses } from './weaknesses.js'
import { wholeness } from './wholeness.js'

export type { Check } from './checks.js'
export type { Delays, EngineFixture, Network, Opener, Place } from './fixture.js'
export { Random } from './random.js'
export { shiftWallClock } from './wall-clock.js'

/**
 * The checks that every engine passes, promise by promise. Run each one as a test of any test runner. A check takes at
 * most 20 seconds, has a place of its own and may start a few processes. All of them take about a minute if the
 * engine answers at once.
 * @throws InvalidArgumentError when a part of the fixture is missing
 */
export function conformance(fixture: EngineFixture): Check[] {
  checkFixture(fixture)
  return checksOf(() => {
    exclusion(fixture)
    fencing(fixture)
    deadline(fixture)
    order(fixture)
    keptPlaces(fixture)
    crowd(fixture)
    waking(fixture)
    lostHints(fixture)
    lostReplies(fixture)
    forgedHints(fixture)
    wholeness(fixture)
    release(fixture)
    givingUp(fixture)
    deadHolders(fixture)
    deadWaiters(fixture)
    deadRemains(fixture)
    errors(fixture)
    clocks(fixture)
    quiet(fixture)
    if (keepsValues(fixture)) {
      safeState(fixture)
      keptIds(fixture)
      foundKeys(fixture)
      readNotWritten(fixture)
      spoiled(fixture)
    }
    if (hasLimits(fixture)) {
      limits(fixture)
      definitions(fixture)
      concurrency(fixture)
    } else noLimits(fixture)
    box(fixture)
    if (keepsValues(fixture)) {
      election(fixture)
      once(fixture)
    }
    ends(fixture)
    weaknesses(fixture)
  })
}

/** Maximum duration of an adverse check, in milliseconds. */
const ADVERSE_PATIENCE = 240_000

/**
 * Checks of an engine under adverse conditions that last: thousands of keys, short-lived boxes, large crowds, distance,
 * jitter, lost hints, and connections that swallow data or have ended. A check takes at most four minutes. It measures
 * memory or shares of time, so run one at a time, apart from {@link conformance}.
 * @throws InvalidArgumentError when a part of the fixture is missing
 */
export function adverse(fixture: EngineFixture): Check[] {
  checkFixture(fixture)
  return checksOf(() => {
    growth(fixture)
    largeCrowd(fixture)
    manyDeadRemains(fixture)
    if (fixture.network === 'none') return
    distance(fixture)
    jitter(fixture)
    if (hasLimits(fixture)) distantLimits(fixture)
    silentHints(fixture)
    deadNetwork(fixture)
    halfDead(fixture)
    lateRequests(fixture)
    thaw(fixture)
  }, ADVERSE_PATIENCE)
}

function checkFixture(fixture: unknown): void {
  const { name, guarantees, network, start, weaknesses } = (fixture ?? {}) as Partial<
    Record<keyof EngineFixture, unknown>
  >
  const isFit =
    typeof name === 'string' &&
    typeof start === 'function' &&
    (network === 'none' || typeof network === 'function') &&
    [guarantees, weaknesses].every(part => typeof part === 'object' && part !== null)
  if (isFit) return
  throw new InvalidArgumentError(
    `conformance must be a fixture with name, guarantees, network, start and weaknesses, not ${inspect(fixture, { depth: 0 })}`,
  )
}
