import { AssertionError } from 'node:assert'

/** Maximum duration of a check, in milliseconds. */
const PATIENCE = 20_000
/** The longest that a timer of Node takes. */
const MAX_TIMEOUT = 2 ** 31 - 1

/** Something that an engine has to do. */
export interface Check {
  /** Its groups, from the promise on, and what it checks; joined by ` > `. */
  readonly name: string
  /**
   * Whether it may run at the same time as others that allow it. All others run alone, because they disturb the whole
   * process.
   */
  readonly concurrent: boolean
  /**
   * Rejects with an AssertionError, or with the error that stopped the check, if the engine does not pass.
   * @param patience how long the check may take, in milliseconds; Infinity if the runner limits it. Default: 20 s, for adverse checks four minutes
   */
  run(patience?: number): Promise<void>
}

/** The names of the groups that are being defined, from the outermost on. */
let groups: readonly string[] | undefined
let defined: Check[] = []
let defaultPatience = PATIENCE

/**
 * The checks that `define` defines.
 * @param patience how long each may take where its runner sets no limit: milliseconds
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

/** What is made for one check alone, and ended after it. */
interface Stage {
  start(): unknown
  end(): unknown
}

/** Adds a check to the current group. */
type Test<S> = (name: string, body: (stage: S) => unknown) => void

/** Called directly, it adds a check that may run at the same time as others. */
export interface Tests<S> extends Test<S> {
  /** Adds one that runs alone: it stops the thread, sets a clock, or counts what an undisturbed box does. */
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
 * Rejects when the work takes longer than `patience`. It then stops waiting for the step that runs `inTime`, so that
 * the clean-up after it can begin.
 */
async function within(
  patience: number,
  work: (inTime: (step: unknown) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    // The timer also keeps the process alive: what a check waits for may not, and not every test runner does.
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
