import { InvalidArgumentError, shown } from '../errors.js'
import { badArguments } from './arguments.js'
import { box } from './box.js'
import { checksOf, type Check } from './checks.js'
import { clocks } from './clocks.js'
import { concurrency } from './concurrency.js'
import { deadHolders } from './dead-holders.js'
import { deadWaiters } from './dead-waiters.js'
import { deadline } from './deadline.js'
import { diagnostics } from './diagnostics.js'
import { election } from './election.js'
import { ends } from './ends.js'
import { errors } from './errors.js'
import { exclusion } from './exclusion.js'
import { fencing } from './fencing.js'
import { hasLimits, keepsValues, type EngineFixture } from './fixture.js'
import { foundKeys } from './found-keys.js'
import { givingUp } from './giving-up.js'
import { keptIds } from './kept-ids.js'
import { limits, noLimits } from './limits.js'
import { lostHints } from './lost-hints.js'
import { once } from './once.js'
import { order } from './order.js'
import { quiet } from './quiet.js'
import { release } from './release.js'
import { safeState } from './safe-state.js'
import { taskEnd } from './task-end.js'
import { waking } from './waking.js'
import { weaknesses } from './weaknesses.js'
import { wholeness } from './wholeness.js'

export type { Check } from './checks.js'
export type { CuttableEngine, EngineFixture, Opener, Place } from './fixture.js'
export { Random } from './random.js'
export { shiftWallClock } from './wall-clock.js'

/**
 * The checks that every engine passes, promise by promise. Run each one as a test of any test runner. A check takes at
 * most 20 seconds, has a place of its own and may start a few processes. All of them take about a minute where the
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
    waking(fixture)
    lostHints(fixture)
    wholeness(fixture)
    release(fixture)
    givingUp(fixture)
    deadHolders(fixture)
    deadWaiters(fixture)
    errors(fixture)
    taskEnd(fixture)
    badArguments(fixture)
    clocks(fixture)
    quiet(fixture)
    if (keepsValues(fixture)) {
      safeState(fixture)
      keptIds(fixture)
      foundKeys(fixture)
    }
    if (hasLimits(fixture)) {
      limits(fixture)
      concurrency(fixture)
    } else noLimits(fixture)
    box(fixture)
    if (keepsValues(fixture)) {
      election(fixture)
      once(fixture)
    }
    diagnostics(fixture)
    ends(fixture)
    weaknesses(fixture)
  })
}

function checkFixture(fixture: unknown): void {
  const { name, guarantees, start, weaknesses } = (fixture ?? {}) as Partial<
    Record<keyof EngineFixture, unknown>
  >
  const isFit =
    typeof name === 'string' &&
    typeof start === 'function' &&
    [guarantees, weaknesses].every(part => typeof part === 'object' && part !== null)
  if (isFit) return
  throw new InvalidArgumentError(
    `conformance takes a fixture with name, guarantees, start and weaknesses, not ${shown(fixture)}`,
  )
}
