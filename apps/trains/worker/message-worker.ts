import type { Message, NumberedMessage } from '../messages/message.js'
import type { Acknowledgement, FromWorker } from '../protocol.js'
import { bucketOf } from '../report/histogram.js'
import type { MessageProcessor } from './message-processor.js'
import { TrainQueues, type QueueLimits } from './train-queues.js'

/** Applies the messages that the supervisor sends. Acknowledges together the messages that end in the same tick. */
export class MessageWorker {
  readonly #processor: Pick<MessageProcessor, 'process'>
  readonly #send: (message: FromWorker) => void
  readonly #fail: (error: unknown) => void
  readonly #queues: TrainQueues<NumberedMessage>
  /** Messages that are done and not yet acknowledged. */
  #done = noMessages()
  /** Number of accepted messages that are not done. */
  unfinished = 0
  #holding = false
  #reportedHolding = false
  #flushScheduled = false

  constructor(
    processor: Pick<MessageProcessor, 'process'>,
    send: (message: FromWorker) => void,
    fail: (error: unknown) => void,
    limits: QueueLimits,
  ) {
    this.#queues = new TrainQueues(run => this.#settle(run), limits)
    this.#processor = processor
    this.#send = send
    this.#fail = fail
  }

  /** Accepts messages. Applies those of each train in this order. */
  work(sequences: readonly number[], messages: readonly Message[]): void {
    this.unfinished += messages.length
    for (const [index, message] of messages.entries()) {
      this.#queues.add(message.train, { sequence: sequences[index]!, message })
    }
  }

  /** Acknowledges nothing while `holding`. Afterwards, acknowledges all messages that are done. */
  hold(holding: boolean): void {
    this.#holding = holding
    this.#reportedHolding = false
    if (!holding) this.#flush()
  }

  /** Resolves when all accepted messages are done and acknowledged. */
  async drain(): Promise<void> {
    await this.#queues.idle()
    this.#flush()
  }

  async #settle(run: readonly NumberedMessage[]): Promise<void> {
    try {
      const settlements = await this.#processor.process(run.map(({ message }) => message))
      this.unfinished -= run.length
      for (const [index, { event, lockWait, failure }] of settlements.entries()) {
        const { sequence } = run[index]!
        this.#done.sequences.push(sequence)
        this.#done.events.push(event)
        this.#done.waits.push(bucketOf(lockWait))
        if (failure !== undefined) this.#done.deadLettered.push({ sequence, reason: failure })
      }
      if (this.#flushScheduled) return
      this.#flushScheduled = true
      setImmediate(() => this.#flush())
    } catch (error) {
      this.#fail(error)
    }
  }

  #flush(): void {
    this.#flushScheduled = false
    if (this.#done.sequences.length === 0) return
    if (this.#holding) {
      if (!this.#reportedHolding) this.#send({ kind: 'holding', committed: this.#done.sequences.length })
      this.#reportedHolding = true
      return
    }
    this.#send(this.#done)
    this.#done = noMessages()
  }
}

function noMessages(): Acknowledgement {
  return { kind: 'settled', sequences: [], events: [], waits: [], deadLettered: [] }
}
