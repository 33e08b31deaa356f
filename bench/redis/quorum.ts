import { distinctKeys, hotKey, sequential } from '../file/works.js'
import type { Comparison, Work } from '../work.js'
import { redlockQuorum, signalboxQuorum } from './quorum-lockers.js'

const faster: Comparison = {
  measure: 'opsPerSecond',
  of: 'signalbox',
  to: 'redlock',
  goal: { atLeast: 2 },
}

function field(down: number): Parameters<typeof sequential>[0] {
  return {
    part: 'redis',
    libraries: [signalboxQuorum(down), redlockQuorum(down)],
    comparisons: [faster],
  }
}

function named(work: Work, what: string): Work {
  return { ...work, name: `quorum of five${what}: ${work.name}` }
}

/** Locks on five independent servers. */
export const quorumWorks: readonly Work[] = [
  named(sequential(field(0)), ''),
  named(distinctKeys(field(0), 64), ''),
  named(hotKey(field(0), { processes: 1, tasks: 16 }), ''),
  named(hotKey(field(0), { processes: 4, tasks: 4 }), ''),
  named(sequential(field(2)), ', two of them down'),
  named(hotKey(field(2), { processes: 4, tasks: 4 }), ', two of them down'),
]
