import { setImmediate as tick } from 'node:timers/promises'
import { open } from '../../src/index.js'
import { lockManager } from '../../src/web-locks/index.js'
import { Random } from '../../packages/conformance/src/random.js'

/**
 * Runs random programs on the lock manager of Node and on ours, each in a space of its own, and compares the results:
 * `web-locks.process.js FIRST COUNT`. Needs Node 24 or later.
 */

type Callback = (lock: { readonly name: string; readonly mode: string } | null) => Promise<string>
interface Info {
  readonly name: string
  readonly mode: string
}
interface Manager {
  request(name: string, options: object, callback: Callback): Promise<string>
  query(): Promise<{ readonly held: readonly Info[]; readonly pending: readonly Info[] }>
}

const NAMES = ['a', 'b', '-c']

type Step =
  | { readonly type: 'request'; readonly name: string; readonly options: object; readonly signal: boolean }
  | { readonly type: 'settle'; readonly which: number; readonly fails: boolean }
  | { readonly type: 'abort'; readonly which: number }

/** Steps in one turn of the event loop. */
type Burst = readonly Step[]

function programOf(random: Random): Burst[] {
  let requests = 0
  const step = (): Step => {
    const kind = random.below(10)
    if (kind > 5 && requests > 0) {
      const which = requests - 1 - random.below(Math.min(requests, 6))
      return kind === 9 ? { type: 'abort', which } : { type: 'settle', which, fails: random.below(4) === 0 }
    }
    requests++
    const some = <T>(value: T, chance: number): T | undefined =>
      random.below(chance) === 0 ? value : undefined
    const options = {
      mode: [undefined, 'exclusive', 'shared', 'shared'][random.below(4)],
      ifAvailable: some(true, 5),
      steal: some(true, 12),
    }
    const name = NAMES[random.below(20) === 0 ? 2 : random.below(2)]!
    return { type: 'request', name, options, signal: random.below(4) === 0 }
  }
  return Array.from({ length: 25 }, () => Array.from({ length: 1 + random.below(3) }, step))
}

/** A request of a program. */
interface Request {
  readonly name: string
  readonly controller: AbortController | undefined
  readonly settle: (fails: boolean) => void
  state: 'waiting' | 'called' | 'over'
}

/** A run of a program on one manager. */
class Run {
  /**
   * Events of each burst: callbacks for each name in their order, then results sorted by request, because their order
   * may differ.
   */
  readonly log: string[] = []
  readonly #calls: string[] = []
  readonly #ends: string[] = []
  /** The same events for ignored names, which may occur at different times. */
  readonly #lateCalls: string[] = []
  readonly #lateEnds: string[] = []
  readonly #manager: Manager
  readonly #prefix: string
  readonly #requests: Request[] = []
  /** Ignored names: Node keeps a request in the queue after its signal has aborted. */
  readonly #left = new Set<string>()

  constructor(manager: Manager, prefix: string) {
    this.#manager = manager
    this.#prefix = prefix
  }

  async play(program: readonly Burst[]): Promise<void> {
    for (const burst of program) {
      for (const step of burst) this.#take(step)
      await this.#rest()
      const { held, pending } = await this.#manager.query()
      this.log.push(
        `held ${this.#lines(held).sort().join(', ')}; pending ${ordered(this.#lines(pending)).join(', ')}`,
      )
    }
    for (let rounds = 0; this.#requests.some(({ state }) => state !== 'over'); rounds++) {
      if (rounds > this.#requests.length) throw new Error(`some never end: ${this.log.join('\n')}`)
      for (const { settle } of this.#requests) settle(false)
      await this.#rest()
    }
    this.log.push(...ordered(this.#lateCalls), ...this.#lateEnds.sort())
  }

  #take(step: Step): void {
    switch (step.type) {
      case 'request':
        if (!this.#left.has(step.name)) this.#request(step.name, step.options, step.signal)
        else
          this.#requests.push({
            name: step.name,
            controller: undefined,
            settle: () => undefined,
            state: 'over',
          })
        return
      case 'settle':
        return this.#requests[step.which]!.settle(step.fails)
      case 'abort': {
        const { controller, name, state } = this.#requests[step.which]!
        if (!controller) return
        if (state === 'waiting') this.#left.add(name)
        controller.abort(`reason ${step.which}`)
      }
    }
  }

  #request(name: string, options: object, hasSignal: boolean): void {
    const which = this.#requests.length
    const controller = hasSignal ? new AbortController() : undefined
    let settle!: (fails: boolean) => void
    const end = new Promise<string>((resolve, reject) => {
      settle = fails => (fails ? reject(new Error(`failure ${which}`)) : resolve(`result ${which}`))
    })
    end.catch(() => undefined)
    const request: Request = { name, controller, settle, state: 'waiting' }
    this.#requests.push(request)
    const over = (text: string): void => {
      request.state = 'over'
      this.#ends.push(`${name} ${which} ${text}`)
    }
    const full = name.startsWith('-') ? name : this.#prefix + name
    this.#manager
      .request(full, { ...options, signal: controller?.signal }, async lock => {
        request.state = 'called'
        // For requests with a signal, Node calls back a moment later, so the order may differ.
        const calls = hasSignal ? this.#ends : this.#calls
        calls.push(
          `${name} called: ${which} with ${lock && `${lock.name.slice(this.#prefix.length)} ${lock.mode}`}`,
        )
        return end
      })
      .then(
        result => over(`fulfilled: ${result}`),
        (error: unknown) => {
          const isStandard = error instanceof DOMException || error instanceof TypeError
          over(`rejected: ${isStandard ? error.name : String(error)}`)
        },
      )
  }

  #lines(infos: readonly Info[]): string[] {
    return infos
      .filter(({ name }) => name.startsWith(this.#prefix))
      .map(({ name, mode }) => `${name.slice(this.#prefix.length)} ${mode}`)
      .filter(line => !this.#left.has(line[0]!))
  }

  /** Waits until nothing more happens, and logs the events. */
  async #rest(): Promise<void> {
    const count = (): number => this.#calls.length + this.#ends.length
    for (let before = -1; before !== count();) {
      before = count()
      for (let turns = 0; turns < 4; turns++) await tick()
    }
    const isLate = (text: string): boolean => this.#left.has(text[0]!)
    this.#lateCalls.push(...this.#calls.filter(isLate))
    this.#lateEnds.push(...this.#ends.filter(isLate))
    const isOnTime = (text: string): boolean => !isLate(text)
    this.log.push(...ordered(this.#calls.filter(isOnTime)), ...this.#ends.filter(isOnTime).sort())
    this.#calls.length = this.#ends.length = 0
  }
}

/** Returns lines sorted by the names at their beginning, because the standard defines no order across names. */
function ordered(lines: readonly string[]): string[] {
  return NAMES.flatMap(name => lines.filter(line => line.startsWith(`${name} `)))
}

const [first = 1, count = 100] = process.argv.slice(2).map(Number)
const theirs = (globalThis as unknown as { readonly navigator: { readonly locks: Manager } }).navigator.locks
const seen = new Set<string>()
await using box = await open('memory:')
for (let seed = first; seed < first + count; seed++) {
  const program = programOf(new Random(seed))
  const [one, other] = [
    new Run(theirs, `${seed}/`),
    new Run(lockManager(box) as unknown as Manager, `${seed}/`),
  ]
  await one.play(program)
  await other.play(program)
  for (const line of one.log) seen.add(line.replaceAll(/\d+/g, 'N').replace(/^held.*|: result N$/, ''))
  const differ = one.log.findIndex((line, index) => line !== other.log[index])
  if (differ === -1 && one.log.length === other.log.length) continue
  const from = Math.max(0, differ - 12)
  process.stdout.write(
    [
      `seed ${seed} differs at line ${differ}:`,
      JSON.stringify(program),
      'Node:',
      ...one.log.slice(from, differ + 6),
      'ours:',
      ...other.log.slice(from, differ + 6),
      '',
    ].join('\n'),
  )
  process.exitCode = 1
  break
}
if (!process.exitCode) process.stdout.write(`${[...seen].sort().join('\n')}\n`)
