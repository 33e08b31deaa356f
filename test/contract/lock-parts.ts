import { deadHolders } from '../../src/conformance/dead-holders.js'
import { deadline } from '../../src/conformance/deadline.js'
import { exclusion } from '../../src/conformance/exclusion.js'
import { fencing } from '../../src/conformance/fencing.js'
import { givingUp } from '../../src/conformance/giving-up.js'
import { order } from '../../src/conformance/order.js'
import { release } from '../../src/conformance/release.js'
import { waking } from '../../src/conformance/waking.js'
import { wholeness } from '../../src/conformance/wholeness.js'

/** The parts of the checks that are about how locks are held, waited for and given up. */
export const lockParts = [
  exclusion,
  fencing,
  deadline,
  order,
  waking,
  wholeness,
  release,
  givingUp,
  deadHolders,
] as const
