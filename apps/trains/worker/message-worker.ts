import type { Message, NumberedMessage } from '../messages/message.js'
import type { Acknowledgement, FromWorker } from '../protocol.js'
import { bucketOf } from '../report/histogram.js'
import type { MessageProcessor } from './message-processor.js'
import { TrainQueues, type QueueLimits } from './train-queues.js'

/** Applies messages: see MessageProcessor. */
export type Processor = Pick<MessageProcessor, 'process'>

/** Applies the messages that the supervisor sends, and acknowledges them, all that one tick brings together. */
export class MessageWorker {
  readonly #processor: Processor
  readonly #send: (message: FromWorker) => void
  readonly #fail: (error: unknown) => void
  readonly #queues: TrainQueues<NumberedMessage>
  /** What is done and not acknowledged yet. */
  #done = nothing()
  #holding = false
  #reportedHolding = false
  #flushPlanned = false

  /**
   * @param processor applies messages; what it throws ends the worker.
   * @param send sends to the supervisor.
   * @param fail is called when the worker can't continue.
   */
  constructor(
    processor: Processor,
    send: (message: FromWorker) => void,
    fail: (error: unknown) => void,
    limits: QueueLimits,
  ) {
    this.#queues = new TrainQueues(run => this.#settle(run), limits)
    this.#processor = processor
    this.#send = send
    this.#fail = fail
  }

  /** Takes messages over. Those of one train are applied in this order. */
  work(sequences: readonly number[], messages: readonly Message[]): void {
    for (const [index, message] of messages.entries()) {
      this.#queues.add(message.train, { sequence: sequences[index]!, message })
    }
  }

  /** Acknowledges nothing while it is to hold, and all that is due when it no longer is. */
  hold(holding: boolean): void {
    this.#holding = holding
    this.#reportedHolding = false
    if (!holding) this.#flush()
  }

  /** Resolves when all that was taken over is applied and acknowledged. */
  async drain(): Promise<void> {
    await this.#queues.idle()
    this.#flush()
  }

  async #settle(run: readonly NumberedMessage[]): Promise<void> {
    try {
      const settlements = await this.#processor.process(run.map(({ message }) => message))
      for (const [index, { event, lockWait, failure }] of settlements.entries()) {
        const { sequence } = run[index]!
        this.#done.sequences.push(sequence)
        this.#done.events.push(event)
        this.#done.waits.push(bucketOf(lockWait))
        if (failure !== undefined) this.#done.givenUp.push({ sequence, reason: failure })
      }
      if (this.#flushPlanned) return
      this.#flushPlanned = true
      setImmediate(() => this.#flush())
    } catch (error) {
      this.#fail(error)
    }
  }

  #flush(): void {
    this.#flushPlanned = false
    if (this.#done.sequences.length === 0) return
    if (this.#holding) {
      if (!this.#reportedHolding) this.#send({ kind: 'holding', committed: this.#done.sequences.length })
      this.#reportedHolding = true
      return
    }
    this.#send(this.#done)
    this.#done = nothing()
  }
}

function nothing(): Acknowledgement {
  return { kind: 'settled', sequences: [], events: [], waits: [], givenUp: [] }
}
