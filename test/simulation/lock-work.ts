import type { WriteGrant } from '../../src/core/grant.js'
import type { Lock } from '../../src/core/lock.js'
import type { LockAction, NestedLock } from './action.js'
import type { Holder } from './grant-watch.js'
import type { SimulatedProcess } from './process.js'
import type { Call } from './turn-order.js'
import type { World } from './world.js'

/** Errors that a caller of a lock may get, besides rejected permits. */
const EXPECTED = new Set(['BUSY', 'TIMED_OUT', 'ABORTED', 'UNAVAILABLE', 'INDETERMINATE', 'LOST', 'CLOSED'])
/** Errors that must not occur without faults. */
const FAULTS = new Set(['UNAVAILABLE', 'INDETERMINATE'])
/** Tolerance for the comparison of times, which are fractions, in milliseconds. */
const TINY = 1e-6

/** One caller of a lock. It waits, works, releases and checks the results. */
export class LockWork {
  readonly #world: World
  readonly #process: SimulatedProcess
  readonly #action: LockAction
  readonly #calledAt: number
  #settled = false
  /** The step in which the caller aborted its call. */
  #abortedIn: number | undefined

  constructor(world: World, process: SimulatedProcess, action: LockAction) {
    this.#world = world
    this.#process = process
    this.#action = action
    this.#calledAt = process.clock.now()
  }

  async run(): Promise<void> {
    const { verb, claims, lease, renew, label, wait } = this.#action
    const lock = this.#lock()
    const held = { lease, renew, label }
    const signal = this.#abortLater()
    try {
      if (verb === 'tryAcquire') {
        const grant = await lock.tryAcquire(held)
        this.#settled = true
        if (grant) await this.#work(this.#given(grant))
        return
      }
      this.#expectTimeout()
      const call = this.#world.turns.called(this.#process.name, JSON.stringify(claims))
      const options = { ...held, ...(wait === undefined ? {} : { wait }), ...(signal ? { signal } : {}) }
      if (verb === 'run') await lock.run(grant => this.#work(this.#given(grant, call), true), options)
      else await this.#work(this.#given(await lock.acquire(options), call))
    } catch (error) {
      this.#failed(error)
    } finally {
      this.#settled = true
    }
  }

  #lock(): Lock {
    const { claims, ending } = this.#action
    const box = this.#process.box!
    return ending === 'downgrade' ? box.readWriteLock(claims[0]!.key).write : box.lock(...claims)
  }

  #abortLater(): AbortSignal | undefined {
    const { abortAfter } = this.#action
    if (abortAfter === undefined) return undefined
    const controller = new AbortController()
    const { timeline, history } = this.#world
    this.#process.exactly(abortAfter, () => {
      this.#abortedIn = timeline.steps
      const waited = !this.#settled
      controller.abort('given up')
      if (waited) {
        timeline.at(timeline.now, () => {
          if (!this.#settled) history.violate('P8', `${this.#process.name} aborted and still waits`)
        })
      }
    })
    return controller.signal
  }

  /** Checks that the wait ends in time. A frozen process may be late. */
  #expectTimeout(): void {
    const { wait, verb } = this.#action
    if (wait === undefined || verb === 'tryAcquire' || wait === 0) return
    const { history, climate } = this.#world
    this.#process.exactly(wait + climate.lateness + TINY, () => {
      if (!this.#settled) history.violate('P8', `${this.#process.name} waits longer than its ${wait} ms`)
    })
  }

  #given(grant: Holder['grant'], call?: Call): Holder {
    this.#settled = true
    const { claims, renew, lease } = this.#action
    const heldAt = this.#world.timeline.now
    const holder: Holder = { process: this.#process, grant, claims, renew, lease, released: false, heldAt }
    this.#world.grants.given(holder)
    if (call) this.#world.turns.served(call)
    if (this.#action.watchesSignal) this.#watchSignal(holder)
    return holder
  }

  /** Checks that the signal of a grant without renewal aborts at its deadline. */
  #watchSignal(holder: Holder): void {
    const { grant, renew } = holder
    const { signal } = grant
    if (renew) return
    const { history, climate } = this.#world
    this.#process.exactly(grant.expiresIn() + climate.lateness + TINY, () => {
      if (!holder.released && !signal.aborted)
        history.violate('P3', `${this.#process.name} is not told by its signal that its grant is over`)
    })
  }

  async #work(holder: Holder, withinRun = false): Promise<void> {
    const { steps, ending, nested } = this.#action
    for (const [step, pause] of steps.entries()) {
      await this.#process.sleep(pause)
      if (ending === 'downgrade' && step === 1) await this.#downgrade(holder)
      if (!this.#world.grants.probe(holder)) break
      this.#write(holder)
    }
    if (nested) await this.#nest(nested, holder)
    if (withinRun) {
      // `run` releases by itself as soon as this function returns.
      holder.released = true
      this.#world.history.note(this.#process.name, 'releases', { token: holder.grant.token })
    } else if (ending !== 'forget') await this.#release(holder)
  }

  /** Acquires another lock within a task that holds one. The task may already hold the same lock. */
  async #nest({ claims, wait, reentrant }: NestedLock, outer: Holder): Promise<void> {
    const { lease, renew } = this.#action
    try {
      await this.#process.box!.lock(...claims).run(
        async grant => {
          if (grant.token === outer.grant.token) return
          const heldAt = this.#world.timeline.now
          const holder = { process: this.#process, grant, claims, renew, lease, released: false, heldAt }
          this.#world.grants.given(holder)
          await this.#process.sleep(wait / 10)
          this.#world.grants.probe(holder)
          holder.released = true
        },
        { wait, lease, renew, reentrant },
      )
    } catch (error) {
      const { detectDeadlocks } = this.#world.climate
      if (!detectDeadlocks || (error as { code?: string }).code !== 'DEADLOCK') this.#failed(error, wait)
    }
  }

  async #downgrade(holder: Holder): Promise<void> {
    this.#world.history.note(this.#process.name, 'downgrades', { token: holder.grant.token })
    // From here on, the caller counts on a shared grant only.
    holder.claims = holder.claims.map(({ key }) => ({ key, mode: 'shared' }))
    await (holder.grant as WriteGrant).downgrade().catch((error: unknown) => this.#failed(error))
  }

  /** Writes to an external resource. The write takes time and carries the token of the grant. */
  #write(holder: Holder): void {
    const { history, resource, timeline, table } = this.#world
    const { grant, claims } = holder
    const { token } = grant
    const number = Number(token / 1024n)
    const record = table.grants.get(number)
    if (!record) return
    // Numbers start from the wall clock, so only their differences are the same in each run.
    const delay = (((number - history.origin + Number(token % 1024n)) % 7) + 1) * 3
    for (const { key, mode } of claims) {
      if (mode !== 'exclusive') continue
      timeline.at(timeline.now + delay, () => {
        const held = !holder.released && this.#process.alive && grant.expiresIn() > TINY && !record.overridden
        resource.write(key, token, record, held)
      })
    }
  }

  async #release(holder: Holder): Promise<void> {
    const { grant } = holder
    const { history } = this.#world
    const over = grant.expiresIn() === 0
    holder.released = true
    history.note(this.#process.name, 'releases', { token: grant.token })
    try {
      await grant.release()
      if (over) history.violate('P7', `${this.#process.name} released a lost grant and was not told`)
    } catch (error) {
      if ((error as { code?: string }).code === 'LOST') this.#world.grants.lost(holder)
      this.#failed(error)
    }
    if (this.#action.ending === 'release twice') await grant.release()
  }

  #failed(error: unknown, wait = this.#action.wait): void {
    const { history, direct, climate } = this.#world
    const { code, message } = error as { code?: string; message: string }
    history.note(this.#process.name, `fails: ${String(code)}`)
    const waited = this.#process.clock.now() - this.#calledAt
    if (code === 'INVALID_ARGUMENT' && message.includes('is in use with max')) return
    if (code === undefined || !EXPECTED.has(code))
      history.violate('P10', `a caller of a lock gets ${String(error)}`)
    else if (FAULTS.has(code) && (direct || climate.kind === 'calm') && this.#process.open)
      history.violate('P10', `without any fault a caller gets ${code}: ${message}`)
    else if (code === 'TIMED_OUT' && waited < (wait ?? Infinity) - TINY)
      history.violate('P8', `timed out after ${waited} of ${String(wait)} ms`)
    else if (code === 'ABORTED' && this.#abortedIn !== this.#world.timeline.steps)
      history.violate('P8', `${this.#process.name} is notified of its abort late, or without one`)
  }
}
