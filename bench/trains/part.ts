import type { Work } from '../work.js'
import { RUN_SECONDS, tracker } from './tracker.js'

const ONE = tracker(1)
const FOUR = tracker(4)
const EIGHT = tracker(8)

/** The train tracker on the file engine, every commit durable. */
export const trainWorks: readonly Work[] = [
  {
    part: 'trains',
    name: 'messages of the train tracker',
    seconds: RUN_SECONDS,
    mostRounds: 3,
    subjects: [ONE, tracker(2), FOUR, EIGHT],
    comparisons: [
      { measure: 'opsPerSecond', of: FOUR.name, to: ONE.name, goal: { atLeast: 1 } },
      { measure: 'opsPerSecond', of: EIGHT.name, to: FOUR.name, goal: { atLeast: 0.9 } },
    ],
    targets: [
      { measure: 'opsPerSecond', of: ONE.name, goal: { atLeast: 40_000 } },
      { measure: 'least share', of: FOUR.name, goal: { atLeast: 0.125 } },
      { measure: 'least share', of: EIGHT.name, goal: { atLeast: 0.0625 } },
      { measure: 'p99 wait', of: FOUR.name, goal: { atMost: 100 } },
      { measure: 'p99 wait', of: EIGHT.name, goal: { atMost: 100 } },
    ],
  },
]
