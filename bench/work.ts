/** What one subject did in one round. */
export interface Sample {
  /** What was completed within the round. */
  readonly operations: number
  /** How long the round was, in milliseconds. */
  readonly milliseconds: number
  /** How long callers waited for what they asked for, each of them or a steady part of them, in milliseconds. */
  readonly waits: Float64Array
  /** The operations of each process, or of each box where a process has several; absent if there is only one. */
  readonly perPart?: readonly number[] | undefined
  /** Number of open sockets of all processes. */
  readonly connections?: number | undefined
  /** By how many that had asked later each caller was overtaken, where order is measured. */
  readonly overtaken?: Float64Array | undefined
  /** Why the round doesn't count: the subject did not do what it is for. */
  readonly broken?: string | undefined
}

/** A subject that is ready to be measured. */
export interface Contender {
  /** Works for a number of milliseconds, or does a piece of work that takes about that long. */
  measure(milliseconds: number): Promise<Sample>
  stop(): Promise<void>
}

/** Where a subject may keep its files, and by which names it is found in another process. */
export interface Place {
  readonly work: string
  readonly subject: string
  /** A folder of its own, empty, removed afterwards. */
  readonly folder: string
}

/** A point of a line in a picture that shows how figures change with a size. */
export interface GrowthPoint {
  /** Title of the picture. Works with the same title share it. */
  readonly picture: string
  /** Name of the line, such as a library. */
  readonly line: string
  /** Such as 8, of 8 boxes. */
  readonly size: number
  /** Such as `boxes`. */
  readonly unit: string
}

/** One of those that do the same work side by side. */
export interface Subject {
  readonly name: string
  /** Minimum duration of the warm-up, where that matters, in seconds. */
  readonly warmUp?: number | undefined
  readonly growth?: GrowthPoint | undefined
  start(place: Place): Promise<Contender>
}

/** What can be compared between two subjects, or held against a goal. */
export type Measure = 'opsPerSecond' | 'p99 wait' | 'worst wait' | 'worst wait to median' | 'least share'

/** What a value has to reach. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number }

/** Two subjects compared in each round, and what is hoped for. */
export interface Comparison {
  readonly measure: 'opsPerSecond' | 'worst wait'
  readonly of: string
  readonly to: string
  readonly goal?: Goal | undefined
}

/** What one subject alone has to reach. */
interface Target {
  readonly measure: Measure
  readonly of: string
  readonly goal: Goal
}

/** Something to measure: all its subjects do the same in the same way. */
export interface Work {
  /** Which part of the bench it belongs to; `--only` takes it. */
  readonly part: string
  readonly name: string
  /** How long a subject works in a round unless the command says otherwise. */
  readonly seconds: number
  /** Maximum number of rounds, where one takes long. */
  readonly mostRounds?: number
  readonly subjects: readonly Subject[]
  readonly comparisons: readonly Comparison[]
  readonly targets?: readonly Target[]
}

/** What distinguishes a work from all others. */
export function idOf({ part, name }: Work): string {
  return `${part}: ${name}`
}
