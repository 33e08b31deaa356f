import { AssertionError } from 'node:assert'

/** How long a check takes at the most: milliseconds. */
const PATIENCE = 20_000
/** The longest that a timer of Node takes. */
const LONGEST = 2 ** 31 - 1

/** Something that an engine has to do. */
export interface Check {
  /** What it belongs to, from the promise on, and what is so; joined by ` > `. */
  readonly name: string
  /** Whether it may run beside others that say so. All others run alone, one after the other. */
  readonly concurrent: boolean
  /**
   * Rejects with an AssertionError, or with whatever went wrong, unless the engine does it.
   * @param patience how long that may take, in milliseconds; Infinity where the runner limits it. Default: 20 seconds
   */
  run(patience?: number): Promise<void>
}

type Step = () => unknown

/** Checks that have something in common, while they are told. */
interface Group {
  readonly names: readonly string[]
  readonly before: readonly Step[]
  readonly after: readonly Step[]
}

/** The group that is being told; groups are told in one go. */
let group: Group | undefined
let told: Check[] = []

/** The checks that are told while `tell` is called. */
export function checksOf(tell: () => void): Check[] {
  told = []
  group = { names: [], before: [], after: [] }
  try {
    tell()
    return told
  } finally {
    group = undefined
  }
}

/** A group of checks inside the one that is being told. */
export function describe(name: string, tell: () => void): void {
  const outer = here()
  group = { ...outer, names: [...outer.names, name] }
  try {
    tell()
  } finally {
    group = outer
  }
}

describe.skipIf = (skipped: boolean | undefined): typeof describe | (() => void) =>
  skipped ? () => undefined : describe

/** A check of the group that is being told. */
export function test(name: string, body: Step): void {
  add(name, body, false)
}

test.concurrent = (name: string, body: Step): void => add(name, body, true)
test.runIf = (wanted: boolean): typeof test | (() => void) => (wanted ? test : () => undefined)
test.skipIf = (skipped: boolean | undefined): typeof test | (() => void) => test.runIf(!skipped)

/** Is done before each check of this group that is told from here on. */
export function beforeEach(step: Step): void {
  group = { ...here(), before: [...here().before, step] }
}

/** Is done after each check of this group that is told from here on, whatever became of it; the last told comes first. */
export function afterEach(step: Step): void {
  group = { ...here(), after: [step, ...here().after] }
}

function add(name: string, body: Step, concurrent: boolean): void {
  const { names, before, after } = here()
  told.push({
    name: [...names, name].join(' > '),
    concurrent,
    run: (patience = PATIENCE) =>
      within(patience, async inTime => {
        try {
          for (const step of before) await inTime(step())
          await inTime(body())
        } finally {
          for (const step of after) await step()
        }
      }),
  })
}

/**
 * Rejects when something takes longer than that. What is told to be done `inTime` is given up then, so that what comes
 * after it can begin; nobody waits for that any more.
 */
async function within(
  patience: number,
  work: (inTime: (step: unknown) => Promise<unknown>) => Promise<void>,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    // It also keeps the process alive: what a check waits for need not, and not every test runner does.
    timer = setTimeout(
      () => reject(new AssertionError({ message: `still waiting after ${patience / 1000} s` })),
      Math.min(patience, LONGEST),
    )
  })
  try {
    await Promise.race([work(step => Promise.race([step, late])), late])
  } finally {
    clearTimeout(timer)
  }
}

function here(): Group {
  if (!group) throw new Error('checks are told within checksOf')
  return group
}
