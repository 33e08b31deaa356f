import type { Work } from '../work.js'
import { manyBoxes } from './boxes.js'
import { engines } from './engines.js'
import { heldKeys } from './held.js'
import { farReaders } from './readers.js'
import { storedValues } from './values.js'
import { besideWaiters, turnsOfWaiters } from './waiters.js'

/** The growth of the cost of a lock with the number of boxes, neighbours, waiters, readers and values. */
export const growthWorks: readonly Work[] = engines.flatMap(engine => [
  ...manyBoxes(engine),
  heldKeys(engine),
  besideWaiters(engine),
  turnsOfWaiters(engine),
  ...farReaders(engine),
  storedValues(engine),
])
