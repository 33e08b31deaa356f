import type { Trouble } from './simulation.js'
import type { Order } from './order.js'

/** The conditions under which callers work. */
export interface Scenario {
  readonly name: string
  /** Title of the table. */
  readonly title: string
  /**
   * Minimum duration in seconds, and disturbance, under the virtual clock. Undefined: runs in real time with the
   * service.
   */
  readonly simulated?: { readonly seconds: number; readonly trouble: Trouble }
  readonly stall?: Order['stall']
  /** Number of threads for each core that spin during the run. The callers have a lower priority. */
  readonly spinners?: number
}

/** All scenarios. The first one has no disturbance. */
export const scenarios: readonly Scenario[] = [
  { name: 'calm', title: 'calm' },
  {
    name: 'stall',
    title: 'each thread of callers stands still for 450 ms every 1.7 s',
    stall: { every: 1700, length: 450 },
  },
  {
    name: 'starved',
    title: '2 spinning threads for each core, of higher priority than the callers',
    spinners: 2,
  },
  {
    name: 'late',
    title: 'virtual clock: what is scheduled after 30 s runs 40 s late',
    simulated: { seconds: 130, trouble: { late: { from: 30_000, by: 40_000 } } },
  },
  {
    name: 'later',
    title: 'virtual clock: what is scheduled after 30 s runs 60 s late',
    simulated: { seconds: 130, trouble: { late: { from: 30_000, by: 60_000 } } },
  },
]
