import { AssertionError } from 'node:assert'

/** Maximum duration of a check, in milliseconds. */
const PATIENCE = 20_000
/** Maximum delay of a timer in Node, in milliseconds. */
const MAX_TIMEOUT = 2 ** 31 - 1

/** A requirement that an engine has to meet. */
export interface Check {
  /** The names of its groups, outermost first, and its own name, joined by ` > `. */
  readonly name: string
  /**
   * Whether it may run at the same time as other concurrent checks. All others must run alone, because they disturb the
   * whole process.
   */
  readonly concurrent: boolean
  /**
   * Rejects with an AssertionError, or with the error that stopped the check, if the engine does not pass.
   * @param patience maximum duration, in milliseconds; Infinity if the test runner has a limit. Default: 20 seconds,
   *   for adverse checks four minutes
   */
  run(patience?: number): Promise<void>
}

/** The names of the groups that are being defined, from the outermost on. */
let groups: readonly string[] | undefined
let defined: Check[] = []
let defaultPatience = PATIENCE

/**
 * Returns the checks that `define` defines.
 * @param patience maximum duration of a check whose test runner sets no limit, in milliseconds
 */
export function checksOf(define: () => void, patience = PATIENCE): Check[] {
  defined = []
  defaultPatience = patience
  groups = []
  try {
    define()
    return defined
  } finally {
    groups = undefined
  }
}

/** A group of checks inside the current group. */
export function describe(name: string, define: () => void): void {
  const outer = here()
  groups = [...outer, name]
  try {
    define()
  } finally {
    groups = outer
  }
}

describe.skipIf = (skipped: boolean | undefined): typeof describe | (() => void) =>
  skipped ? () => undefined : describe

/** Resources of one check. They are ended after it. */
interface Stage {
  start(): unknown
  end(): unknown
}

/** Adds a check to the current group. */
type Test<S> = (name: string, body: (stage: S) => unknown) => void

/** A direct call adds a check that may run at the same time as others. */
export interface Tests<S> extends Test<S> {
  /**
   * Adds a check that runs alone, because it stops the thread, sets a clock, or counts the operations of an undisturbed
   * box.
   */
  readonly alone: Test<S>
  runIf(wanted: boolean): Test<S>
  skipIf(skipped: boolean | undefined): Test<S>
}

/** Adds checks that each have a stage of their own. */
export function testsOn<S extends Stage>(make: () => S): Tests<S> {
  const test: Test<S> = (name, body) => add(name, true, make, body)
  const none: Test<S> = () => undefined
  return Object.assign(test, {
    alone: (name: string, body: (stage: S) => unknown) => add(name, false, make, body),
    runIf: (wanted: boolean) => (wanted ? test : none),
    skipIf: (skipped: boolean | undefined) => (skipped ? none : test),
  })
}

/** Adds checks that have no stage. */
export const test = testsOn(() => ({ start: () => undefined, end: () => undefined }))

function add<S extends Stage>(
  name: string,
  concurrent: boolean,
  make: () => S,
  body: (stage: S) => unknown,
): void {
  const most = defaultPatience
  defined.push({
    name: [...here(), name].join(' > '),
    concurrent,
    run: (patience = most) =>
      within(patience, async inTime => {
        const stage = make()
        try {
          await inTime(stage.start())
          await inTime(body(stage))
        } finally {
          await stage.end()
        }
      }),
  })
}

/**
 * Rejects when the work takes longer than `patience`, in milliseconds. Then `inTime` stops waiting for its step, so
 * that the clean-up can begin.
 */
async function within(
  patience: number,
  work: (inTime: (step: unknown) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    // The timer also keeps the process alive. The check and the test runner may have nothing else that does.
    timer = setTimeout(
      () => reject(new AssertionError({ message: `still waiting after ${patience / 1000} s` })),
      Math.min(patience, MAX_TIMEOUT),
    )
  })
  try {
    await Promise.race([work(step => Promise.race([step, late])), late])
  } finally {
    clearTimeout(timer)
  }
}

function here(): readonly string[] {
  if (!groups) throw new Error('checks are defined within checksOf')
  return groups
}
