import { Box } from '../../src/box.js'
import { VirtualClock } from '../../src/base/clock.js'
import type { Claim } from '../../src/engine/claim.js'
import type {
  Engine,
  Listener,
  LockRequest,
  Operation,
  OutcomeOf,
  SessionInfo,
} from '../../src/engine/contract.js'
import { RETRY_DELAY } from '../../src/engine/retry-until-expired.js'
import { MemoryState } from '../../src/engine/kit/memory-state.js'
import { StateMachine, type AnyEffect } from '../../src/engine/state-machine.js'
import { memoryGuarantees } from '../../src/engines/memory/memory-engine.js'
import { IndeterminateError, UnavailableError } from '../../src/base/errors.js'
import type { Grant, WriteGrant } from '../../src/core/grant.js'

const KEY = 'key'
const LEASE = 10_000
/** The session that competes with the box for the key. */
const RIVAL = 'rival'

/** The mode of the claims of all callers of a world. */
export type Kind = 'exclusive' | 'shared' | 'permits'

const claims: Readonly<Record<Kind, readonly Claim[]>> = {
  exclusive: [{ key: KEY, mode: 'exclusive' }],
  shared: [{ key: KEY, mode: 'shared' }],
  permits: [{ key: KEY, mode: 'permits', permits: 1, max: 2 }],
}

/** An operation that the box has sent, until its reply arrives. */
interface Call {
  readonly operation: Operation
  readonly resolve: (outcome: unknown) => void
  readonly reject: (error: unknown) => void
  /** Set once the engine has executed it. */
  outcome?: { readonly value: unknown }
}

/** An engine with the real lock table, which executes and answers each operation when the test says so. */
class SteppedEngine implements Engine {
  readonly name = 'stepped:'
  readonly guarantees = memoryGuarantees
  readonly reportsContention = false
  readonly coversBySigns = true
  readonly calls: Call[] = []
  readonly hints: AnyEffect[] = []
  readonly state: MemoryState
  readonly #clock: VirtualClock
  readonly #decisions: StateMachine
  #listener!: Listener
  #session = ''

  constructor(clock: VirtualClock) {
    this.#clock = clock
    this.state = new MemoryState(1, clock)
    this.#decisions = new StateMachine(this.state, effect => {
      if (effect.session === this.#session) this.hints.push(effect)
    })
  }

  join(member: SessionInfo, listener: Listener): void {
    this.#session = member.session
    this.#listener = listener
    this.state.join(member)
  }

  submit<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
    return new Promise((resolve, reject) => {
      this.calls.push({ operation, resolve: resolve as (outcome: unknown) => void, reject })
    })
  }

  leave(): void {}

  decide<O extends Operation>(operation: O): OutcomeOf<O> {
    return this.#decisions.decide(operation, this.#clock.now())
  }

  /** Executes the oldest operation that was not executed. */
  execute(): void {
    const call = this.calls.find(({ outcome }) => !outcome)!
    call.outcome = { value: this.decide(call.operation) }
  }

  /** Answers the oldest operation; executes it first if necessary. */
  answer(): void {
    if (!this.calls[0]!.outcome) this.execute()
    const { resolve, outcome } = this.calls.shift()!
    resolve(outcome!.value)
  }

  /** Ends the connection before the oldest operation was sent, or before its reply arrived. */
  fail(): void {
    const { outcome, reject } = this.calls.shift()!
    const context = { engine: this.name }
    reject(outcome ? new IndeterminateError('no reply', context) : new UnavailableError('not sent', context))
  }

  hint(): void {
    const hint = this.hints.shift()!
    if (hint.type === 'changed') return
    this.#listener[hint.type === 'wake' ? 'wake' : 'lost'](hint.id)
  }
}

/** A task that acquires a lock of the box. */
interface Caller {
  readonly abort: AbortController
  grant?: Grant
  /** `granted` until it has called `release`. */
  phase: 'waiting' | 'granted' | 'done'
}

/** Maximum of each in one sequence of steps. */
const bounds = { callers: 3, failures: 1, lostHints: 1, pauses: 2, visits: 1, downgrades: 1 }

/** Maximum wait of callers for a free key after a message was lost, in milliseconds. */
const MAX_DELAY = 2700

/** One box with callers of one kind, and a rival for the same key, driven step by step. */
class QueueWorld {
  readonly #kind: Kind
  readonly #left = { ...bounds }
  readonly #clock = new VirtualClock(1000)
  readonly #engine = new SteppedEngine(this.#clock)
  readonly #callers: Caller[] = []
  #box!: Box
  #rival: LockRequest | undefined
  /** The number of callers when the rival came, if no operation of theirs was under way and none of them waited. */
  #callersBefore = Infinity
  #visits = 0
  #hasFailed = false
  /** Whether no message was lost or late so far. */
  #isSmooth = true

  private constructor(kind: Kind) {
    this.#kind = kind
  }

  static async start(kind: Kind): Promise<QueueWorld> {
    const world = new QueueWorld(kind)
    world.#engine.state.join({ session: RIVAL, host: 'host', pid: 2, label: undefined })
    world.#box = await Box.join(world.#engine, world.#clock)
    return world
  }

  /** The steps that are possible now. */
  steps(): string[] {
    const { calls, hints } = this.#engine
    const left = this.#left
    const steps = this.#callers.flatMap(({ phase }, index) => {
      if (phase === 'waiting') return [`abort ${index}`]
      if (phase !== 'granted') return []
      return this.#kind === 'exclusive' && left.downgrades > 0
        ? [`release ${index}`, `downgrade ${index}`]
        : [`release ${index}`]
    })
    if (left.callers > 0) steps.push('call')
    if (calls.some(({ outcome }) => !outcome)) steps.push('execute')
    if (calls.length > 0) steps.push('answer')
    if (calls.length > 0 && left.failures > 0) steps.push('fail')
    if (hints.length > 0) steps.push('hint')
    if (hints.length > 0 && left.lostHints > 0) steps.push('lose hint')
    if (this.#rival) steps.push('rival leaves', 'rival dies')
    else if (left.visits > 0) steps.push('rival comes')
    if (left.pauses > 0) steps.push('pass', ...(this.#nextAt() < Infinity ? ['pause'] : []))
    return steps
  }

  async take(step: string): Promise<void> {
    const [word, index] = step.split(' ')
    switch (step.startsWith('rival') || step === 'lose hint' ? step : word) {
      case 'abort':
        this.#callers[Number(index)]!.abort.abort()
        break
      case 'release':
        this.#release(this.#callers[Number(index)]!)
        break
      case 'downgrade':
        this.#left.downgrades--
        ;(this.#callers[Number(index)]!.grant as WriteGrant).downgrade().catch(() => undefined)
        break
      case 'call':
        this.#left.callers--
        this.#call()
        break
      case 'execute':
        this.#engine.execute()
        break
      case 'answer':
        this.#engine.answer()
        break
      case 'fail':
        this.#left.failures--
        this.#hasFailed = true
        this.#isSmooth = false
        this.#engine.fail()
        break
      case 'hint':
        this.#engine.hint()
        break
      case 'lose hint':
        this.#left.lostHints--
        this.#isSmooth = false
        this.#engine.hints.shift()
        break
      case 'rival comes':
        this.#left.visits--
        this.#rivalComes()
        break
      case 'rival leaves':
        this.#engine.decide({ type: 'cancel', request: this.#rival! })
        this.#rival = undefined
        break
      case 'rival dies':
        this.#isSmooth = false
        this.#rival = undefined
        break
      // Long enough that no further turn of the box is fair.
      case 'pass':
        this.#left.pauses--
        this.#isSmooth = false
        this.#clock.advance(10)
        break
      case 'pause':
        this.#left.pauses--
        this.#isSmooth = false
        // The rival sends no signs of life.
        this.#callersBefore = Infinity
        this.#clock.advanceTo(this.#nextAt())
    }
    await settled()
  }

  /** Returns the state on which the next steps can depend, as text. */
  signature(): string {
    const now = this.#clock.now()
    const { calls, hints, state } = this.#engine
    return JSON.stringify([
      this.#callers.map(({ phase }) => phase),
      calls.map(({ operation, outcome }) => [
        operation.type,
        'request' in operation && operation.request.id,
        outcome?.value,
      ]),
      hints.map(hint => [hint.type, 'id' in hint && hint.id]),
      [...state.requests()].map(({ id, phase, isCovered, expires }) => [id, phase, isCovered, expires - now]),
      this.#left,
      this.#nextAt() - now,
    ])
  }

  /** Returns a message about a fault of the current state, if there is one. */
  fault(): string | undefined {
    const holders = this.#callers.filter(({ phase, grant }) => phase === 'granted' && isHeld(grant!)).length
    const rivalHolds = this.#rival && this.#engine.state.request(this.#rival.id)?.phase === 'held'
    if (this.#kind === 'exclusive' && holders > 1) return `${holders} callers hold the lock`
    if (this.#kind === 'permits' && holders + (rivalHolds ? 1 : 0) > 2)
      return 'more permits are in use than exist'
    if (this.#kind !== 'permits' && holders > 0 && rivalHolds) return 'the rival and a caller hold the lock'
    const firstWaiting = this.#callers.findIndex(({ phase }) => phase === 'waiting')
    const lastGranted = this.#callers.findLastIndex(({ phase }) => phase === 'granted')
    if (firstWaiting !== -1 && firstWaiting < lastGranted)
      return `caller ${lastGranted} was granted before ${firstWaiting}`
    if (this.#kind === 'shared' && this.#rival && !rivalHolds && lastGranted >= this.#callersBefore)
      return `caller ${lastGranted} was granted before the rival`
    // After a failure, the box removes unused requests and grants at intervals.
    return this.#engine.calls.length > 0 || this.#hasFailed ? undefined : this.#surplus()
  }

  /** Returns a message if the engine has requests or grants that no caller uses. */
  #surplus(): string | undefined {
    const count = (phases: readonly string[], all: Iterable<{ readonly phase: string }>): number =>
      [...all].filter(({ phase }) => phases.includes(phase)).length
    const own = this.#own()
    if (count(['waiting', 'reserved'], own) > count(['waiting'], this.#callers))
      return 'more requests wait than callers'
    if (count(['held'], own) > count(['granted'], this.#callers))
      return 'more grants are held than callers use'
    return undefined
  }

  /** The requests of the box in the engine. A grant that has expired is removed when its key is used again. */
  #own() {
    return [...this.#engine.state.requests()].filter(
      ({ session, expires, phase }) => session !== RIVAL && (phase !== 'held' || this.#clock.now() < expires),
    )
  }

  /** Continues without disturbances until nothing is left to do. Returns a message about a fault, if there is one. */
  async end(): Promise<string | undefined> {
    // Earlier failures do not delay the following steps.
    let delay = 0
    for (let round = 0; round < 400; round++) {
      const fault = this.fault()
      if (fault) return fault
      const { calls, hints } = this.#engine
      if (calls.length > 0) await this.take('answer')
      else if (hints.length > 0) await this.take('hint')
      else if (this.#rival) await this.take('rival leaves')
      else {
        const granted = this.#callers.findIndex(({ phase }) => phase === 'granted')
        if (granted !== -1) await this.take(`release ${granted}`)
        else if (this.#nextAt() === Infinity || this.#clock.now() > 100_000) break
        else {
          const from = this.#clock.now()
          this.#clock.advanceTo(this.#nextAt())
          await settled()
          if (this.#callers.every(({ phase }) => phase !== 'waiting') || this.#isDead()) delay = 0
          else delay += this.#clock.now() - from
          if (delay > (this.#isSmooth ? 0 : MAX_DELAY)) return `a caller waits ${delay} ms for a free key`
        }
      }
    }
    if (this.#callers.some(({ phase }) => phase === 'waiting')) return 'a caller waits for ever'
    // A removal that failed is not repeated if the request expires before.
    if (this.#hasFailed) this.#clock.advance(RETRY_DELAY)
    const left = this.#own().map(({ id, phase }) => `${id} ${phase}`)
    return left.length > 0 ? `requests are left: ${left.join(', ')}` : undefined
  }

  /** Whether the engine still has a request of a rival that has died. */
  #isDead(): boolean {
    return [...this.#engine.state.requests()].some(
      ({ session, phase }) => session === RIVAL && phase === 'held',
    )
  }

  /** When the next timer is due: clock time, Infinity if none is set. */
  #nextAt(): number {
    return this.#clock.nextAt() ?? Infinity
  }

  #call(): void {
    const abort = new AbortController()
    const caller: Caller = { abort, phase: 'waiting' }
    this.#callers.push(caller)
    const options = { lease: LEASE, renew: false, signal: abort.signal }
    this.#lock()
      .acquire(options)
      .then(
        grant => {
          caller.grant = grant
          caller.phase = 'granted'
        },
        () => (caller.phase = 'done'),
      )
  }

  #lock(): { acquire(options: object): Promise<Grant> } {
    switch (this.#kind) {
      case 'exclusive':
        return this.#box.readWriteLock(KEY).write
      case 'shared':
        return this.#box.readWriteLock(KEY).read
      case 'permits':
        return this.#box.semaphore(KEY, { max: 2 })
    }
  }

  #release(caller: Caller): void {
    caller.phase = 'done'
    caller.grant!.release().catch(() => undefined)
  }

  #rivalComes(): void {
    const kind = this.#kind === 'permits' ? 'permits' : 'exclusive'
    this.#rival = { id: `${RIVAL}.${++this.#visits}`, session: RIVAL, claims: claims[kind], label: undefined }
    const isQuiet = this.#engine.calls.length === 0 && this.#callers.every(({ phase }) => phase !== 'waiting')
    this.#callersBefore = isQuiet ? this.#callers.length : Infinity
    this.#engine.decide({ type: 'enqueue', request: this.#rival, lease: LEASE, wait: Infinity })
  }
}

/** Lets all promises settle that need no further step. A loop of ticks takes a tenth of the time of `setImmediate`. */
async function settled(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await Promise.resolve()
}

function isHeld(grant: Grant): boolean {
  return grant.expiresIn() > 0
}

/** Steps to the states in which searches begin: one caller holds or waits, with or without the rival. */
const starts: readonly (readonly string[])[] = [
  [],
  ['call', 'answer', 'call'],
  ['call', 'answer', 'rival comes', 'call'],
  ['rival comes', 'call', 'answer', 'call'],
  ['rival comes', 'call', 'answer', 'rival leaves', 'call'],
]

/**
 * Takes every sequence of up to `depth` steps from each start, breadth first. Of several that lead to the same state,
 * takes only the first. Ends each of them without disturbances. Returns the number of states, or the steps to a fault.
 */
export async function searchQueue(
  kind: Kind,
  depth: number,
): Promise<{ readonly states: number; readonly fault: string | undefined }> {
  const known = new Set<string>()
  let paths = starts
  for (let length = 0; length <= depth; length++) {
    const next: string[][] = []
    for (const path of paths) {
      const world = await QueueWorld.start(kind)
      for (const step of path) await world.take(step)
      const signature = world.signature()
      if (known.has(signature)) continue
      known.add(signature)
      for (const step of world.steps()) next.push([...path, step])
      const fault = await world.end()
      if (fault) return { states: known.size, fault: `${fault} after: ${path.join(', ')}` }
    }
    paths = next
  }
  return { states: known.size, fault: undefined }
}
