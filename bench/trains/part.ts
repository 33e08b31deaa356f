import type { Work } from '../work.js'
import { RUN_SECONDS, tracker } from './tracker.js'

const FOUR = tracker(4)
const EIGHT = tracker(8)

/** The train tracker on the file engine, every commit durable. */
export const trainWorks: readonly Work[] = [
  {
    part: 'trains',
    name: 'messages of the train tracker',
    seconds: RUN_SECONDS,
    mostRounds: 3,
    subjects: [tracker(1), tracker(2), FOUR, EIGHT],
    comparisons: [{ measure: 'opsPerSecond', of: EIGHT.name, to: FOUR.name, goal: { atLeast: 1 } }],
    targets: [
      { measure: 'opsPerSecond', of: FOUR.name, goal: { atLeast: 20_000 } },
      { measure: 'least share', of: FOUR.name, goal: { atLeast: 0.15 } },
      { measure: 'p99 wait', of: FOUR.name, goal: { atMost: 100 } },
    ],
  },
]
