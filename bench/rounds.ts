import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { idOf } from './registry.js'
import type { Contender, Sample, Subject, Work } from './work.js'

/** How long and how often. */
export interface Settings {
  readonly rounds: number
  /** How long a subject works in a round; undefined: as the work says. */
  readonly seconds: number | undefined
}

/** The samples of one subject, one a round. */
export interface Samples {
  readonly subject: string
  readonly samples: readonly Sample[]
}

/** The longest time that a subject is warmed up for: seconds. */
const WARM_UP = 0.7

/**
 * Measures all subjects of a work in rounds, every other one in the opposite order, so that a machine that becomes slower
 * or warmer is the same for all.
 * @param folder an empty one.
 */
export async function measured(
  work: Work,
  settings: Settings,
  folder: string,
  progress: (text: string) => void,
): Promise<readonly Samples[]> {
  const milliseconds = (settings.seconds ?? work.seconds) * 1000
  const rounds = Math.min(settings.rounds, work.mostRounds ?? Infinity)
  const entrants: { subject: Subject; contender: Contender; samples: Sample[] }[] = []
  try {
    for (const [index, subject] of work.subjects.entries()) {
      progress(`${idOf(work)}: ${subject.name} warms up`)
      const own = join(folder, String(index))
      await mkdir(own)
      const contender = await subject.start({ work: idOf(work), subject: subject.name, folder: own })
      entrants.push({ subject, contender, samples: [] })
      await contender.measure(Math.min(milliseconds, WARM_UP * 1000))
    }
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? entrants : [...entrants].reverse()
      for (const { subject, contender, samples } of order) {
        progress(`${idOf(work)}: round ${round + 1} of ${rounds}, ${subject.name}`)
        samples.push(await contender.measure(milliseconds))
      }
    }
  } finally {
    for (const { contender } of entrants) await contender.stop()
  }
  return entrants.map(({ subject, samples }) => ({ subject: subject.name, samples }))
}
