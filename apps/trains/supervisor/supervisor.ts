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

const MAX_IN_FLIGHT = 2048

/** Maximum number of messages in one send. */
const BATCH = 256

/** Minimum number of messages in one send, unless fewer wait, because many small sends would cost more. */
const MIN_SEND = 32

/** Maximum number of messages in the window: from the oldest unfinished one to the newest that was read. */
const WINDOW_SIZE = 16_384

/** Number of deaths of a worker in a row, without an acknowledgement in between, at which the run is aborted. */
const MAX_DEATHS = 5

export interface DeadLetter {
  readonly message: Message
  readonly reason: string
}

export interface SupervisorParts {
  readonly processes: number
  /** Maximum number of workers that work at the same time. */
  readonly atOnce: number
  readonly startWorker: StartWorker
  settingsOf(worker: number): WorkerSettings
  /** Releases at once the locks that the session of a dead process held. */
  revoke(session: string): Promise<void>
  readonly kills: Kills
  /** The sequence number of the first message. */
  readonly first: number
  /** Receives each message in the order of the stream, when it and all earlier ones are done. */
  readonly onDone: OnDone
  onAcknowledged(acknowledgement: Acknowledgement): void
  readonly onSettled?: ((message: Message, event: string) => void) | undefined
  placeOf(message: Message): string | undefined
  /** Stores a dead-lettered message. The message is done only after that. */
  keepDeadLetter(letter: DeadLetter): void
  readonly log: Log
}

export interface WorkerTotals {
  readonly worker: number
  readonly messages: number
  /** Number of times that its process died and was replaced. */
  readonly replaced: number
  /** The peak memory of its last process in bytes; null if that process died. */
  readonly peakMemory: number | null
}

/**
 * Runs the worker processes, and sends each message to one of them so that each train's messages stay in order.
 * Replaces a worker that dies, and delivers the messages that it had not acknowledged again, in order.
 */
export class Supervisor {
  readonly #parts: SupervisorParts
  readonly #window: StreamWindow
  readonly #slots: readonly Slot[]
  readonly #routes: Routes
  readonly #turns: Turns
  /** Number of messages that were acknowledged. */
  acknowledged = 0
  /** Number of messages that were delivered again because their worker died. */
  redelivered = 0
  /** Number of these that were already committed. */
  alreadyApplied = 0
  #stopping = false
  /** Whether the stream was read to its end. */
  #ended = false
  #failure: Error | undefined
  #awaited: Awaited[] = []
  /** Ends the wait for the next messages of the stream. */
  #endReading: () => void = () => undefined

  constructor(parts: SupervisorParts) {
    this.#parts = parts
    this.#window = new StreamWindow(WINDOW_SIZE, parts.first, parts.onDone)
    this.#slots = Array.from({ length: parts.processes }, (_, index) => new Slot(index + 1))
    this.#routes = new Routes(parts.processes, message => parts.placeOf(message))
    this.#turns = new Turns(parts.atOnce)
  }

  get perWorker(): readonly WorkerTotals[] {
    return this.#slots.map(({ number, done, replaced, peakMemory = null }) => ({
      worker: number,
      messages: done,
      replaced,
      peakMemory,
    }))
  }

  /** Whether a worker accepts messages. @param worker its number. */
  isReady(worker: number): boolean {
    return this.#slots[worker - 1]!.ready
  }

  /** Starts the workers. Resolves when all of them accept messages. @throws Error if a worker can't be started. */
  async start(): Promise<void> {
    for (const slot of this.#slots) this.#startProcess(slot)
    await this.#until(() => this.#slots.every(slot => slot.ready))
  }

  /**
   * Delivers all messages. Resolves when all of them are done; after `stop`, when those that were read are done.
   * @returns whether the stream was read to its end.
   * @throws Error if a worker dies repeatedly or aborts the run; the errors of reading the messages.
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
      // This is not awaited, because a stream that waits for input returns only when the input ends.
      stream.return?.().catch(() => undefined)
    }
  }

  /** Stops reading. `deliver` resolves when the messages that were read are done. */
  stop(): void {
    this.#stopping = true
    this.#endReading()
  }

  /** Ends the workers. Resolves when their processes are gone. */
  async finish(): Promise<void> {
    for (const slot of this.#slots) {
      slot.draining = true
      slot.process?.send({ kind: 'drain' })
    }
    await this.#until(() => this.#slots.every(slot => slot.process === undefined))
  }

  /** Kills the workers. Their unacknowledged messages are not done. */
  abandon(): void {
    for (const slot of this.#slots) {
      slot.draining = true
      slot.process?.kill()
    }
  }

  /** Returns the next messages of the stream; undefined at its end or after `stop`. */
  async #read(stream: AsyncIterator<readonly TimedMessage[]>): Promise<readonly TimedMessage[] | undefined> {
    if (this.#failure) throw this.#failure
    if (this.#stopping) return undefined
    return new Promise((resolve, reject) => {
      this.#endReading = () => (this.#failure ? reject(this.#failure) : resolve(undefined))
      stream.next().then(({ done, value }) => {
        // After `stop`, the end of the iteration is not the end of the stream.
        if (done === true) this.#ended = !this.#stopping
        resolve(done === true ? undefined : value)
      }, reject)
    })
  }

  #startProcess(slot: Slot): void {
    const process = this.#parts.startWorker({
      message: message => {
        try {
          this.#receive(slot, message)
        } catch (error) {
          this.#fail(error)
        }
      },
      gone: how => void this.#replace(slot, how).catch((error: unknown) => this.#fail(error)),
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
        this.#parts.kills.kill(slot, this.acknowledged, message.committed)
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
    const reasons = new Map(acknowledgement.deadLettered.map(({ sequence, reason }) => [sequence, reason]))
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
      if (slot.redelivered.delete(sequence) && acknowledgement.events[index] === ALREADY_APPLIED) {
        this.alreadyApplied++
        if (kill) kill.alreadyApplied++
      }
      this.#parts.onSettled?.(message, acknowledgement.events[index]!)
      this.#window.settle(sequence, reason !== undefined)
    }
    this.acknowledged += acknowledgement.sequences.length
    this.#parts.onAcknowledged(acknowledgement)
    this.#sendAll()
    this.#parts.kills.cancelIfIdle(slot)
    this.#parts.kills.begin(this.#slots, this.acknowledged)
  }

  #sendAll(): void {
    for (const slot of this.#turns.look(this.#slots)) this.#send(slot)
  }

  #send(slot: Slot): void {
    while (this.#turns.maySend(slot)) {
      const fits = Math.min(MAX_IN_FLIGHT - slot.inFlight, slot.waiting, BATCH)
      if (fits === 0 || (fits < MIN_SEND && fits < slot.waiting)) break
      const batch = slot.take(fits)
      const sequences = batch.map(({ sequence }) => sequence)
      this.#turns.sent(slot, fits)
      slot.process!.send({ kind: 'work', sequences, messages: batch.map(({ message }) => message) })
    }
  }

  /** Replaces a process that is gone. Revokes its session first, so that its messages find its locks free. */
  async #replace(slot: Slot, how: string): Promise<void> {
    const { log } = this.#parts
    const { session, process, killed } = slot
    slot.process = undefined
    slot.session = undefined
    slot.ready = false
    // Meanwhile, another worker gets its turn.
    this.#sendAll()
    if (session !== undefined && !(slot.draining && slot.inFlight === 0)) {
      await this.#parts.revoke(session).catch((error: unknown) => {
        // Its messages are delivered again, but wait for its locks until their leases end.
        log.warn('session not revoked', { session, reason: reasonOf(error) })
      })
    }
    if (slot.draining) {
      this.#changed()
      return
    }
    const back = slot.takeBack()
    log.warn('worker died', { worker: slot.number, pid: process?.pid, how, inFlight: back.length })
    for (const sequence of back) slot.redelivered.set(sequence, slot.killed)
    this.#parts.kills.gone(slot, back)
    this.redelivered += back.length
    slot.replaced++
    if (!killed && ++slot.deathsInARow >= MAX_DEATHS) {
      this.#fail(
        new Error(`worker ${slot.number} died ${MAX_DEATHS} times in a row: ${slot.lastFailure ?? how}`),
      )
      return
    }
    this.#startProcess(slot)
  }

  /** Aborts the run. All waits reject with the error. */
  #fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(reasonOf(error))
    this.abandon()
    this.#endReading()
    this.#changed()
  }

  /** Resolves when the condition holds; rejects if the run fails. */
  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#awaited.push({ condition, resolve, reject })
      this.#changed()
    })
  }

  #changed(): void {
    this.#awaited = this.#awaited.filter(({ condition, resolve, reject }) => {
      if (this.#failure) reject(this.#failure)
      else if (condition()) resolve()
      else return true
      return false
    })
  }
}

interface Awaited {
  readonly condition: () => boolean
  readonly resolve: () => void
  readonly reject: (reason: Error) => void
}
