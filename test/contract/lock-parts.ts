import { deadHolders } from '../../packages/conformance/src/dead-holders.js'
import { deadline } from '../../packages/conformance/src/deadline.js'
import { exclusion } from '../../packages/conformance/src/exclusion.js'
import { fencing } from '../../packages/conformance/src/fencing.js'
import { givingUp } from '../../packages/conformance/src/giving-up.js'
import { order } from '../../packages/conformance/src/order.js'
import { release } from '../../packages/conformance/src/release.js'
import { waking } from '../../packages/conformance/src/waking.js'
import { wholeness } from '../../packages/conformance/src/wholeness.js'

/** The parts of the checks about holding locks, waiting for them and giving up. */
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
