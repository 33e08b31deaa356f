import type { Trouble } from './simulation.js'
import type { Order } from './order.js'

/** What the callers have to live with. */
export interface Scenario {
  readonly name: string
  /** Of the table. */
  readonly title: string
  /** Under the virtual clock, minimum number of seconds; undefined: on the real one, against the service. */
  readonly simulated?: { readonly seconds: number; readonly trouble: Trouble }
  readonly stall?: Order['stall']
  /** Number of threads for each core that spin during the run. The callers get the processor last. */
  readonly spinners?: number
}

/** All of them; the first is the plain one. */
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
