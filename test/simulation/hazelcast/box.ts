import type { Claim } from '../../../src/engine/claim.js'
import type {
  CheckIn,
  Commit,
  Enqueue,
  Granted,
  LockRequest,
  ReadOutcome,
  RequestStatus,
} from '../../../src/engine/contract.js'
import { SignOfLife, type CoveredRequest } from '../../../src/core/sign-of-life.js'
import { parseHazelcastUrl } from '../../../packages/hazelcast/src/hazelcast-url.js'
import type { KeyOperations } from '../../../packages/hazelcast/src/key-operations.js'
import { Sessions } from '../../../packages/hazelcast/src/sessions.js'
import type { SignalboxError } from '../../../src/base/errors.js'
import { searchIn } from './search.js'
import type { EntryWorld, SimulatedProcess } from './world.js'

/** Lease of all locks, in milliseconds. */
export const LEASE = 4000

/** A grant as its box sees it. */
export interface Hold {
  readonly box: string
  readonly granted: Granted
  claims: readonly Claim[]
  /** End of the lease, as time of the world. */
  until: number
  /** Step of the world at which the first call that may have granted it was sent. */
  readonly sentAt: number
  /** Step of the world at which its box learned of it. */
  readonly grantedAt: number
  isOver: boolean
}

export interface Job {
  readonly name: string
  readonly claims: readonly Claim[]
  readonly wait: number
  readonly then: 'commit' | 'release' | 'downgrade' | 'renew' | 'forget'
}

/** A change, with its outcome and the keys that it must have changed. */
export interface Change {
  readonly id: string
  readonly keys: readonly string[]
  outcome: 'committed' | 'refused' | 'unknown'
}

/** The events of a world, as its boxes report them. */
export interface Story {
  readonly holds: Hold[]
  readonly changes: Change[]
  /** A message about the first fault. */
  wrong: string | undefined
}

const place = parseHazelcastUrl('hazelcast://127.0.0.1/dev')

/** A box with a short version of the core. */
export class SimulatedBox {
  readonly operations: KeyOperations
  readonly #process: SimulatedProcess
  readonly #world: EntryWorld
  readonly #story: Story
  readonly #signs: SignOfLife
  readonly #own = new Map<string, LockRequest>()
  readonly #wake = new Map<string, () => void>()
  readonly #lost = new Set<string>()

  constructor(
    process: SimulatedProcess,
    world: EntryWorld,
    story: Story,
    boxes: Map<string, SimulatedBox>,
    Operations: typeof KeyOperations,
  ) {
    this.#process = process
    this.#world = world
    this.#story = story
    boxes.set(process.name, this)
    const { clock, name } = process
    const locks = { tryLock: () => Promise.resolve(false), unlockOnce: () => Promise.resolve() }
    const send = (
      session: string,
      message: { type: string; id: string; key: string; text?: string | undefined },
    ) => {
      const other = boxes.get(session)
      if (other) world.hint(other.#process, `hint ${JSON.stringify(message)}`, () => other.#hinted(message))
    }
    const sessions = new Sessions(() => Promise.resolve(world.boxes(process)), clock)
    sessions.join({ session: name, host: '', pid: 0, label: undefined })
    this.operations = new Operations({
      place,
      by: () => name,
      clock,
      keys: { store: world.store(process, ''), locks },
      room: { store: world.store(process, 'room '), locks },
      signs: world.store(process, 'sign '),
      scan: searchIn(world.texts),
      repeat: async (work, until = Infinity) => {
        for (;;) {
          try {
            return await work()
          } catch (error) {
            if (clock.now() + 200 >= until) throw error
            await new Promise<void>(resolve => void clock.after(200, resolve))
          }
        }
      },
      sessions,
      notify: (effects, text) => {
        for (const effect of effects)
          if (effect.type !== 'changed') {
            const { type, id, key, session } = effect
            if (session === name) queueMicrotask(() => this.#hinted({ type, id, key }))
            else send(session, { type, id, key, text })
          }
      },
      waitsFor: (session, message) => send(session, message),
      members: {
        standing: () => undefined,
        granting: () => undefined,
        blocked: () => undefined,
        releasing: () => undefined,
      },
      unclear: () => undefined,
      isWithdrawn: () => false,
    })
    this.#signs = new SignOfLife(name, clock, sign => this.operations.execute(sign))
  }

  async run(job: Job): Promise<string> {
    const { claims, name, wait } = job
    const request: LockRequest = {
      id: `${this.#process.name}.${name}`,
      session: this.#process.name,
      claims,
      label: undefined,
    }
    const covered: CoveredRequest = {
      request,
      lease: LEASE,
      wait,
      covered: () => undefined,
      due: () => this.#wake.get(request.id)?.(),
      uncovered: () => undefined,
    }
    try {
      return await this.#run(job, request, covered)
    } finally {
      this.#signs.remove(covered)
    }
  }

  async #run(job: Job, request: LockRequest, covered: CoveredRequest): Promise<string> {
    const { clock, name } = this.#process
    const { claims, wait } = job
    const keys = claims.map(({ key }) => key)
    const read = { keys, ids: [] }
    const until = clock.now() + wait
    this.#own.set(request.id, request)
    let sentAt: number
    // The first call that may have granted the request counts, even if it fails.
    let worldSentAt: number | undefined
    let operation: Enqueue | CheckIn = { type: 'enqueue', request, lease: LEASE, wait, read }
    let status: RequestStatus
    for (;;) {
      sentAt = clock.now()
      worldSentAt ??= this.#world.step
      const waking = new Promise<void>(resolve => this.#wake.set(request.id, resolve))
      try {
        status = await this.operations.execute(operation)
        if (status.state === 'queued') worldSentAt = undefined
      } catch (error) {
        if (operation.type === 'enqueue') {
          this.#own.delete(request.id)
          await this.#cancel(request, (error as SignalboxError).code === 'INDETERMINATE')
          return 'failed'
        }
        status = { state: 'queued', id: request.id, place: 0, checkInAfter: 500, sessionsAhead: [] }
      }
      if (status.state !== 'queued') {
        this.#signs.remove(covered)
        break
      }
      this.#signs.add(covered)
      if (clock.now() >= until) {
        this.#own.delete(request.id)
        this.#signs.remove(covered)
        await this.#cancel(request, false)
        return 'timeout'
      }
      const { checkInAfter } = status
      const left = Math.max(until - clock.now(), 0)
      await this.#pause(Math.min(checkInAfter, left || 1), waking)
      operation = { type: 'checkIn', request, lease: LEASE, wait: Math.max(until - clock.now(), 0), read }
    }
    if (status.state !== 'held') {
      this.#own.delete(request.id)
      return status.state
    }
    const hold: Hold = {
      box: name,
      granted: { request, number: status.number },
      claims,
      // The clock of a paused process is behind. It catches up as soon as the process continues.
      until: sentAt + LEASE,
      sentAt: worldSentAt!,
      grantedAt: this.#world.step,
      isOver: false,
    }
    this.#judgeGrant(hold)
    this.#story.holds.push(hold)
    this.#world.note(`${name} HOLDS ${keys.join()} ${status.number}`)
    const outcome = await this.#work(job, hold, status.read!)
    hold.isOver = true
    this.#own.delete(request.id)
    return outcome
  }

  async #work(job: Job, hold: Hold, found: ReadOutcome): Promise<string> {
    const { clock, name } = this.#process
    const { granted } = hold
    const keys = job.claims.map(({ key }) => key)
    if (job.then === 'forget') return 'forgotten'
    if (job.then === 'renew' || job.then === 'downgrade') {
      const begun = clock.now()
      if (job.then === 'renew') {
        // The first renewal changes the entry. The later ones only send the sign of the box.
        for (let sent = clock.now(); sent < begun + 2 * LEASE; sent = clock.now()) {
          const kept = await this.operations
            .execute({ type: 'renew', ...granted, lease: LEASE })
            .catch(() => undefined)
          if (kept === false || clock.now() >= hold.until) {
            await this.#release(hold, granted)
            return 'lost'
          }
          if (kept) hold.until = Math.max(hold.until, sent + LEASE)
          await this.#pause(LEASE / 3)
        }
      } else {
        const request = {
          ...granted.request,
          claims: job.claims.map(({ key }) => ({ key, mode: 'shared' as const })),
        }
        hold.claims = request.claims
        await this.operations.execute({ type: 'downgrade', ...granted }).catch(() => undefined)
        await this.#pause(100)
        return this.#release(hold, { request, number: granted.number })
      }
    }
    const isWriter = job.claims.every(({ mode }) => mode === 'exclusive')
    if (job.then === 'release' || !isWriter || keys.includes('aa')) {
      await this.#pause(50)
      return this.#release(hold, granted)
    }
    const id = `${name}.${job.name}`
    const change: Change = { id, keys, outcome: 'unknown' }
    this.#story.changes.push(change)
    // Once the commit is decided, another box may get the keys before the reply arrives.
    hold.isOver = true
    try {
      const commit: Commit = {
        type: 'commit',
        guard: granted,
        expect: keys.map((key, at) => ({ key, version: found.values[at]!.version })),
        writes: keys.map((key, at) => ({ key, value: appended(found.values[at]!.value, id) })),
        record: [{ key: keys[0]!, id }],
        retention: 60_000,
        release: true,
      }
      // A failed commit is repeated once, because its outcome may be unknown.
      const committing = this.operations.execute(commit).catch(() => this.operations.execute(commit))
      // The box waits no longer than the lease.
      const answer = await Promise.race([committing, this.#pause(LEASE)])
      if (!answer) throw new Error('it takes too long')
      const { state } = answer
      change.outcome = state === 'committed' || state === 'repeated' ? 'committed' : 'refused'
      this.#world.note(`${name} ${state} ${id}`)
      if (change.outcome === 'committed') await this.#judgeRead(keys, [id])
      else await this.#release(hold, granted)
      return state
    } catch {
      await this.#release(hold, granted)
      return 'unknown'
    }
  }

  /** Writes a key without a lock. */
  async write(name: string, key: string): Promise<string> {
    const id = `${this.#process.name}.${name}`
    const change: Change = { id, keys: [key], outcome: 'unknown' }
    try {
      const { values } = await this.operations.execute({ type: 'read', keys: [key], ids: [] })
      this.#story.changes.push(change)
      const { state } = await this.operations.execute({
        type: 'commit',
        guard: undefined,
        expect: [{ key, version: values[0]!.version }],
        writes: [{ key, value: appended(values[0]!.value, id) }],
        record: [{ key, id }],
        retention: 60_000,
        release: false,
      })
      change.outcome = state === 'committed' || state === 'repeated' ? 'committed' : 'refused'
      this.#world.note(`${name} ${state} ${id}`)
      return state
    } catch {
      return 'unknown'
    }
  }

  /** Waits for a number of milliseconds. */
  rest(duration: number): Promise<void> {
    return this.#pause(duration)
  }

  async values(keys: readonly string[]): Promise<string[][]> {
    const { values } = await this.operations.execute({ type: 'read', keys, ids: [] })
    return values.map(({ value }) => (value === undefined ? [] : (JSON.parse(value) as string[])))
  }

  /** Checks that a later read of each key returns these commits. */
  async #judgeRead(keys: readonly string[], ids: readonly string[]): Promise<void> {
    const lists = await this.values(keys).catch(() => undefined)
    for (const [at, list] of (lists ?? []).entries())
      for (const id of ids) if (!list.includes(id)) this.#wrong(`${id} is not seen at ${keys[at]}`)
  }

  async #release(hold: Hold, granted: Granted): Promise<string> {
    hold.isOver = true
    for (let tries = 0; tries < 10; tries++)
      try {
        return (await this.operations.execute({ type: 'release', ...granted })) ? 'released' : 'lost'
      } catch {
        await this.#pause(200)
      }
    return 'unreleased'
  }

  async #cancel(request: LockRequest, isUnknown: boolean): Promise<void> {
    const times = isUnknown ? 3 : 1
    for (let time = 0; time < times; time++)
      for (let tries = 0; tries < 20; tries++)
        try {
          await this.operations.execute({ type: 'cancel', request })
          if (time + 1 < times) await this.#pause(10_000)
          break
        } catch {
          await this.#pause(200)
        }
  }

  #pause(duration: number, waking?: Promise<void>): Promise<void> {
    const passed = new Promise<void>(resolve => void this.#process.clock.after(duration, resolve))
    return waking ? Promise.race([passed, waking]) : passed
  }

  #hinted({
    type,
    id,
    key,
    text,
  }: {
    type: string
    id: string
    key: string
    text?: string | undefined
  }): void {
    this.operations.changed(key, text)
    const request = this.#own.get(id)
    if (!request) return
    if (type === 'lost') return void this.#lost.add(id)
    if (type !== 'wake') return
    this.operations.woken(request).then(
      mayBeGranted => {
        if (mayBeGranted) this.#wake.get(id)?.()
      },
      () => this.#wake.get(id)?.(),
    )
  }

  #judgeGrant(hold: Hold): void {
    const { now } = this.#world
    // A reply that arrives after the end of the lease grants nothing.
    if (hold.until <= now) return
    const { number } = hold.granted
    for (const other of this.#story.holds)
      for (const claim of hold.claims)
        for (const theirs of other.claims) {
          if (theirs.key !== claim.key) continue
          const isShared = claim.mode === 'shared' && theirs.mode === 'shared'
          if (!isShared && !other.isOver && other.until > now && hold.until > now)
            this.#wrong(`${hold.box} and ${other.box} hold ${claim.key}`)
          const isAfter = isShared ? other.grantedAt < hold.sentAt : true
          if (isAfter && other.granted.number >= number)
            this.#wrong(
              `${hold.granted.request.id} has ${number}, ${other.granted.request.id} had ${other.granted.number} at ${claim.key}`,
            )
        }
  }

  #wrong(what: string): void {
    this.#world.note(`WRONG ${what}`)
    this.#story.wrong ??= what
  }
}

function appended(text: string | undefined, id: string): string {
  return JSON.stringify([...(text === undefined ? [] : (JSON.parse(text) as string[])), id])
}
