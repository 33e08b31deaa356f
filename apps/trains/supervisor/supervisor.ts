import type { TimedMessage } from '../input/source.js'
import type { Log } from '../log/log.js'
import type { Message } from '../messages/message.js'
import type { Acknowledgement, FromWorker, WorkerSettings } from '../protocol.js'
import { reasonOf } from '../reason.js'
import { ALREADY_APPLIED } from '../worker/message-processor.js'
import type { Kills } from './kills.js'
import { Routes } from './routes.js'
import { Slot } from './slot.js'
import { StreamWindow, type OnDone } from './stream-window.js'
import { Turns } from './turns.js'
import type { StartWorker } from './worker-process.js'

/** How many messages a worker has in flight at most. */
const IN_FLIGHT = 2048

/** How many messages are sent at a time at most. */
const BATCH = 256

/** How many messages must fit before more are sent to a busy worker: many small sends would cost more. */
const WORTH_SENDING = 32

/** How many messages are under way at most: read, and not yet done, or done before an older one is. */
const UNDER_WAY = 16_384

/** How often a worker may die without having acknowledged anything in between, before the run is given up. */
const DEATHS_IN_A_ROW = 5

/** A message that was given up. */
export interface DeadLetter {
  readonly message: Message
  readonly reason: string
}

/** What a supervisor works with. */
export interface SupervisorParts {
  readonly processes: number
  /** How many of them are at work at the same time. */
  readonly atOnce: number
  readonly startWorker: StartWorker
  /** The settings of a worker, by its number. */
  settingsOf(worker: number): WorkerSettings
  /** Frees at once what a session of a dead process held. */
  revoke(session: string): Promise<void>
  readonly kills: Kills
  /** The sequence number of the first message. */
  readonly first: number
  /** Receives each message in the order of the stream, when it and all before it are done. */
  readonly onDone: OnDone
  /** Receives every acknowledgement. */
  onAcknowledged(acknowledgement: Acknowledgement): void
  /** Receives each acknowledged message and its outcome. */
  readonly onSettled?: ((message: Message, event: string) => void) | undefined
  /** Where a message happens, as far as that is known. */
  placeOf(message: Message): string | undefined
  /** Keeps a message that was given up; only then does it count as done. */
  keepDeadLetter(letter: DeadLetter): void
  readonly log: Log
}

/** What each worker has done. */
export interface WorkerTotals {
  readonly worker: number
  readonly messages: number
  /** How often its process died and was replaced. */
  readonly replaced: number
  /** The most memory that its last process used: bytes; null where that died before it was to end. */
  readonly peakMemory: number | null
}

/**
 * Runs the worker processes and gives each message to one of them, so that the order of one train's messages is kept. A
 * worker that dies is replaced, and what it had not acknowledged is delivered again, in order.
 */
export class Supervisor {
  readonly #parts: SupervisorParts
  readonly #window: StreamWindow
  readonly #slots: readonly Slot[]
  readonly #routes: Routes
  readonly #turns: Turns
  #acknowledged = 0
  #redelivered = 0
  #stopping = false
  /** Whether the stream was read to its end. */
  #ended = false
  #failure: Error | undefined
  #awaited: Awaited[] = []
  /** Ends the wait for the next messages of the stream. */
  #endReading: () => void = () => undefined

  constructor(parts: SupervisorParts) {
    this.#parts = parts
    this.#window = new StreamWindow(UNDER_WAY, parts.first, parts.onDone)
    this.#slots = Array.from({ length: parts.processes }, (_, index) => new Slot(index + 1))
    this.#routes = new Routes(parts.processes, message => parts.placeOf(message))
    this.#turns = new Turns(parts.atOnce)
  }

  /** How many messages were delivered again because their worker died. */
  get redelivered(): number {
    return this.#redelivered
  }

  /** How many messages were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  get perWorker(): readonly WorkerTotals[] {
    return this.#slots.map(({ number, done, replaced, peakMemory = null }) => ({
      worker: number,
      messages: done,
      replaced,
      peakMemory,
    }))
  }

  /** Whether a worker takes messages. @param worker its number. */
  isReady(worker: number): boolean {
    return this.#slots[worker - 1]!.ready
  }

  /** Starts the workers; resolves when all of them take messages. @throws Error when one can't be started. */
  async start(): Promise<void> {
    for (const slot of this.#slots) this.#startProcess(slot)
    await this.#until(() => this.#slots.every(slot => slot.ready))
  }

  /**
   * Delivers all messages; resolves when all of them are done, or, after `stop`, all that were read by then. Reports
   * whether that was all there is.
   * @throws Error when workers die again and again, and what reading the messages throws.
   */
  async deliver(batches: AsyncIterable<readonly TimedMessage[]>): Promise<boolean> {
    const stream = batches[Symbol.asyncIterator]()
    try {
      for (let batch = await this.#read(stream); batch !== undefined; batch = await this.#read(stream)) {
        for (const { message } of batch) {
          if (this.#window.full) {
            this.#sendAll()
            await this.#until(() => !this.#window.full)
          }
          if (this.#stopping) break
          const numbered = { sequence: this.#window.add(message), message }
          const worker = this.#routes.add(numbered)
          if (worker !== undefined) this.#slots[worker]!.add(numbered)
        }
        this.#sendAll()
      }
      await this.#until(() => this.#window.empty)
      return this.#ended
    } finally {
      // A stream that waits for input ends only when the input does, so this does not wait for it.
      stream.return?.().catch(() => undefined)
    }
  }

  /** Reads no further messages; `deliver` resolves when those already read are done. */
  stop(): void {
    this.#stopping = true
    this.#endReading()
  }

  /** Lets the workers end; resolves when their processes are gone. */
  async finish(): Promise<void> {
    for (const slot of this.#slots) {
      slot.draining = true
      slot.process?.send({ kind: 'drain' })
    }
    await this.#until(() => this.#slots.every(slot => slot.process === undefined))
  }

  /** Ends the workers at once; what they have not acknowledged is not done. */
  abandon(): void {
    for (const slot of this.#slots) {
      slot.draining = true
      slot.process?.kill()
    }
  }

  /** The next messages of the stream; undefined at its end, and when the supervisor is to stop. */
  async #read(stream: AsyncIterator<readonly TimedMessage[]>): Promise<readonly TimedMessage[] | undefined> {
    if (this.#failure) throw this.#failure
    if (this.#stopping) return undefined
    return new Promise((resolve, reject) => {
      this.#endReading = () => (this.#failure ? reject(this.#failure) : resolve(undefined))
      stream.next().then(({ done, value }) => {
        // One that ends because it was to stop has more to give.
        if (done === true) this.#ended = !this.#stopping
        resolve(done === true ? undefined : value)
      }, reject)
    })
  }

  #startProcess(slot: Slot): void {
    const process = this.#parts.startWorker({
      message: message => this.#guarded(() => this.#receive(slot, message)),
      gone: how => void this.#bury(slot, how).catch((error: unknown) => this.#fail(error)),
    })
    slot.process = process
    process.send({ kind: 'start', settings: this.#parts.settingsOf(slot.number) })
  }

  #receive(slot: Slot, message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        slot.session = message.session
        slot.ready = true
        this.#parts.log.info('worker ready', { worker: slot.number, pid: slot.process?.pid })
        if (slot.draining) slot.process?.send({ kind: 'drain' })
        else this.#sendAll()
        break
      case 'settled':
        this.#settle(slot, message)
        break
      case 'holding':
        this.#parts.kills.strike(slot, this.#acknowledged, message.committed)
        break
      case 'drained':
        slot.peakMemory = message.peakMemory
        break
      case 'failed':
        this.#parts.log.error('worker failed', { worker: slot.number, reason: message.reason })
        slot.lastFailure = message.reason
        if (message.abortsRun) this.#fail(new Error(message.reason))
        break
    }
    this.#changed()
  }

  #settle(slot: Slot, acknowledgement: Acknowledgement): void {
    const reasons = new Map(acknowledgement.givenUp.map(({ sequence, reason }) => [sequence, reason]))
    for (const [index, sequence] of acknowledgement.sequences.entries()) {
      const message = slot.settle(sequence)
      if (!message) continue
      const reason = reasons.get(sequence)
      if (reason !== undefined) this.#parts.keepDeadLetter({ message, reason })
      const route = this.#routes.done(message)
      if (route) {
        const next = this.#slots[route.worker]!
        for (const numbered of route.messages) next.add(numbered)
      }
      const kill = slot.redelivered.get(sequence)
      if (kill) {
        slot.redelivered.delete(sequence)
        if (acknowledgement.events[index] === ALREADY_APPLIED) kill.alreadyApplied++
      }
      this.#parts.onSettled?.(message, acknowledgement.events[index]!)
      this.#window.settle(sequence, reason !== undefined)
    }
    this.#acknowledged += acknowledgement.sequences.length
    this.#parts.onAcknowledged(acknowledgement)
    this.#sendAll()
    this.#parts.kills.spareIdle(slot)
    this.#parts.kills.begin(this.#slots, this.#acknowledged)
  }

  #sendAll(): void {
    for (const slot of this.#turns.look(this.#slots)) this.#send(slot)
  }

  #send(slot: Slot): void {
    while (this.#turns.maySend(slot)) {
      const fits = Math.min(IN_FLIGHT - slot.inFlight, slot.waiting, BATCH)
      if (fits === 0 || (fits < WORTH_SENDING && fits < slot.waiting)) break
      const batch = slot.take(fits)
      const sequences = batch.map(({ sequence }) => sequence)
      this.#turns.sent(slot, fits)
      slot.process!.send({ kind: 'work', sequences, messages: batch.map(({ message }) => message) })
    }
  }

  /** Replaces a process that is gone. Nothing is delivered again before what the old one held is free. */
  async #bury(slot: Slot, how: string): Promise<void> {
    const { log } = this.#parts
    const { session, process, killed } = slot
    slot.process = undefined
    slot.session = undefined
    slot.ready = false
    // Its turn is another one's meanwhile.
    this.#sendAll()
    if (session !== undefined && !(slot.draining && slot.inFlight === 0)) await this.#revoke(session)
    if (slot.draining) {
      this.#changed()
      return
    }
    const back = slot.takeBack()
    log.warn('worker died', { worker: slot.number, pid: process?.pid, how, inFlight: back.length })
    this.#parts.kills.gone(slot, back)
    this.#redelivered += back.length
    slot.replaced++
    if (!killed && ++slot.deathsInARow >= DEATHS_IN_A_ROW) {
      this.#fail(
        new Error(`worker ${slot.number} died ${DEATHS_IN_A_ROW} times in a row: ${slot.lastFailure ?? how}`),
      )
      return
    }
    this.#startProcess(slot)
  }

  async #revoke(session: string): Promise<void> {
    try {
      await this.#parts.revoke(session)
    } catch (error) {
      // Then its leases decide: its messages are delivered again all the same and wait for them.
      this.#parts.log.warn('session not revoked', { session, reason: reasonOf(error) })
    }
  }

  #guarded(task: () => void): void {
    try {
      task()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Ends the run: what waits for it learns the reason. */
  #fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(reasonOf(error))
    this.abandon()
    this.#endReading()
    this.#changed()
  }

  /** Resolves as soon as the condition holds; rejects when the run has failed. */
  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#awaited.push({ condition, resolve, reject })
      this.#changed()
    })
  }

  /** Looks again at all that is waited for. */
  #changed(): void {
    this.#awaited = this.#awaited.filter(({ condition, resolve, reject }) => {
      if (this.#failure) reject(this.#failure)
      else if (condition()) resolve()
      else return true
      return false
    })
  }
}

/** Something that the run waits for. */
interface Awaited {
  readonly condition: () => boolean
  readonly resolve: () => void
  readonly reject: (reason: Error) => void
}
