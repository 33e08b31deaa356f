/** The results of one subject in one round. */
export interface Sample {
  /** Number of operations that were completed within the round. */
  readonly operations: number
  /** Duration of the round, in milliseconds. */
  readonly milliseconds: number
  /** Waits of all callers, or of a constant part of them, in milliseconds. */
  readonly waits: Float64Array
  /** The operations of each process, or of each box where a process has several; absent if there is only one. */
  readonly perPart?: readonly number[] | undefined
  /** Number of open TCP sockets of all processes. */
  readonly connections?: number | undefined
  /** Number of later callers that overtook each caller, if order is measured. */
  readonly overtaken?: Float64Array | undefined
  /** The reason why the round does not count: the subject failed, or did its work wrongly. */
  readonly broken?: string | undefined
}

/** A subject that is ready to be measured. */
export interface Contender {
  /** Works for a number of milliseconds, or does a piece of work that takes about that long. */
  measure(milliseconds: number): Promise<Sample>
  stop(): Promise<void>
}

/** The folder of a subject, and the names by which another process finds the subject. */
export interface Place {
  readonly work: string
  readonly subject: string
  /** A folder for this subject alone. It is empty at first and removed afterwards. */
  readonly folder: string
}

/** A point of a line in a picture of growth. */
export interface GrowthPoint {
  /** Title of the picture. Works with the same title share it. */
  readonly picture: string
  /** Name of the line, such as a library. */
  readonly line: string
  /** The size, such as 8 for 8 boxes. */
  readonly size: number
  /** The unit of the size, such as `boxes`. */
  readonly unit: string
}

/** A participant in a work, which does the same as the others. */
export interface Subject {
  readonly name: string
  /** Minimum duration of the warm-up, in seconds. */
  readonly warmUp?: number | undefined
  readonly growth?: GrowthPoint | undefined
  start(place: Place): Promise<Contender>
}

/** A figure that can be compared between two subjects, or with a goal. */
export type Measure = 'opsPerSecond' | 'p99 wait' | 'worst wait' | 'worst wait to median' | 'least share'

/** The minimum or maximum that a value must reach. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number }

/** A comparison of two subjects in each round, and its goal. */
export interface Comparison {
  readonly measure: 'opsPerSecond' | 'worst wait'
  readonly of: string
  readonly to: string
  readonly goal?: Goal | undefined
}

/** A goal for one subject alone. */
interface Target {
  readonly measure: Measure
  readonly of: string
  readonly goal: Goal
}

/** A task to measure. All its subjects do the same in the same way. */
export interface Work {
  /** The part of the bench that the work belongs to, as `--only` accepts it. */
  readonly part: string
  readonly name: string
  /** Duration of a round for each subject, in seconds. `--seconds` overrides it. */
  readonly seconds: number
  /** Maximum number of rounds, if a round takes long. */
  readonly mostRounds?: number
  readonly subjects: readonly Subject[]
  readonly comparisons: readonly Comparison[]
  readonly targets?: readonly Target[]
}

/** Returns a name that distinguishes a work from all others. */
export function idOf({ part, name }: Work): string {
  return `${part}: ${name}`
}
