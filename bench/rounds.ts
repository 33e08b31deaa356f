import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { idOf, type Contender, type GrowthPoint, type Sample, type Subject, type Work } from './work.js'

/** Number and duration of the rounds. */
export interface Settings {
  readonly rounds: number
  /** Duration of a round for each subject, in seconds; undefined for the duration that the work specifies. */
  readonly seconds: number | undefined
}

/** The samples of one subject, one for each round, up to the first that is broken. */
export interface Samples {
  readonly subject: string
  readonly growth?: GrowthPoint | undefined
  readonly samples: readonly Sample[]
}

interface Entrant {
  readonly subject: Subject
  readonly contender: Contender | undefined
  readonly samples: Sample[]
}

/** Maximum duration of a warm-up, unless the subject needs a longer one, in seconds. */
const WARM_UP = 2
/** Duration of a warm-up, in rounds. After one round, much code is not compiled yet. */
const WARM_UP_ROUNDS = 3

/**
 * Measures all subjects of a work in rounds. Every other round has the opposite order, so that a machine that becomes
 * slower or warmer affects all subjects equally. A subject that fails is broken from then on, and the others continue.
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
  const entrants: Entrant[] = []
  try {
    for (const [index, subject] of work.subjects.entries()) {
      progress(`${idOf(work)}: ${subject.name} warms up`)
      const own = join(folder, String(index))
      await mkdir(own)
      const usual = Math.min(WARM_UP_ROUNDS * milliseconds, WARM_UP * 1000)
      const warmUp = Math.max(usual, (subject.warmUp ?? 0) * 1000)
      entrants.push(await entrant(work, subject, own, warmUp))
    }
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? entrants : [...entrants].reverse()
      for (const { subject, contender, samples } of order) {
        if (!contender || samples.some(isBroken)) continue
        progress(`${idOf(work)}: round ${round + 1} of ${rounds}, ${subject.name}`)
        samples.push(await sample(contender, milliseconds))
      }
    }
  } finally {
    for (const { contender } of entrants) await contender?.stop()
  }
  return entrants.map(({ subject: { name, growth }, samples }) => ({ subject: name, growth, samples }))
}

/** Starts a subject and warms it up. */
async function entrant(work: Work, subject: Subject, folder: string, warmUp: number): Promise<Entrant> {
  let contender: Contender
  try {
    contender = await subject.start({ work: idOf(work), subject: subject.name, folder })
  } catch (error) {
    return { subject, contender: undefined, samples: [failure(error)] }
  }
  const first = await sample(contender, warmUp)
  return { subject, contender, samples: isBroken(first) ? [first] : [] }
}

async function sample(contender: Contender, milliseconds: number): Promise<Sample> {
  try {
    return await contender.measure(milliseconds)
  } catch (error) {
    return failure(error)
  }
}

/** Maximum length of the reason for a failure, in characters. Only its first line is kept. */
const MAX_MESSAGE_LENGTH = 200

/** Returns the sample of a round in which a subject failed. */
function failure(error: unknown): Sample {
  const message = error instanceof Error ? error.message : String(error)
  const broken = `it failed: ${message.split('\n')[0]!.slice(0, MAX_MESSAGE_LENGTH)}`
  return { operations: 0, milliseconds: 0, waits: new Float64Array(), broken }
}

function isBroken({ broken }: Sample): boolean {
  return broken !== undefined
}
