import type { Message } from '../messages/message.js'
import type { FromWorker, GivenUp } from '../protocol.js'
import { bucketOf } from '../report/histogram.js'
import type { MessageProcessor } from './message-processor.js'
import { TrainChains, type ChainLimits } from './train-chains.js'

interface Delivery {
  readonly sequence: number
  readonly message: Message
}

/** Applies messages: see MessageProcessor. */
export type Processor = Pick<MessageProcessor, 'process' | 'placeOf'>

/** Applies the messages that the supervisor sends, and acknowledges them, all that one tick brings together. */
export class MessageWorker {
  readonly #processor: Processor
  readonly #send: (message: FromWorker) => void
  readonly #fail: (error: unknown) => void
  readonly #chains: TrainChains<Delivery>
  #sequences: number[] = []
  #events: string[] = []
  #waits: number[] = []
  #givenUp: GivenUp[] = []
  #holding = false
  #toldHolding = false
  #flushPlanned = false

  /**
   * @param processor applies messages; what it throws ends the worker.
   * @param send tells the supervisor.
   * @param fail is called when the worker can't go on.
   */
  constructor(
    processor: Processor,
    send: (message: FromWorker) => void,
    fail: (error: unknown) => void,
    limits: ChainLimits,
  ) {
    const work = {
      work: (runs: readonly (readonly Delivery[])[], goOn: () => void) => this.#settle(runs, goOn),
      placeOf: ({ message }: Delivery) => processor.placeOf(message),
    }
    this.#chains = new TrainChains(work, limits)
    this.#processor = processor
    this.#send = send
    this.#fail = fail
  }

  /** Takes messages over. Those of one train are applied in this order. */
  work(sequences: readonly number[], messages: readonly Message[]): void {
    for (const [index, message] of messages.entries()) {
      this.#chains.add(message.train, { sequence: sequences[index]!, message })
    }
  }

  /** Acknowledges nothing while it is to hold, and all that is due when it no longer is. */
  hold(holding: boolean): void {
    this.#holding = holding
    this.#toldHolding = false
    if (!holding) this.#flush()
  }

  /** Resolves when all that was taken over is applied and acknowledged. */
  async drain(): Promise<void> {
    await this.#chains.idle()
    this.#flush()
  }

  async #settle(runs: readonly (readonly Delivery[])[], goOn: () => void): Promise<void> {
    try {
      const messages = runs.map(run => run.map(({ message }) => message))
      const settlements = await this.#processor.process(messages, goOn)
      for (const [index, run] of runs.entries()) {
        for (const [place, { event, lockWait, failure }] of settlements[index]!.entries()) {
          const { sequence } = run[place]!
          this.#sequences.push(sequence)
          this.#events.push(event)
          this.#waits.push(bucketOf(lockWait))
          if (failure !== undefined) this.#givenUp.push({ sequence, reason: failure })
        }
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
    if (this.#sequences.length === 0) return
    if (this.#holding) {
      if (!this.#toldHolding) this.#send({ kind: 'holding', committed: this.#sequences.length })
      this.#toldHolding = true
      return
    }
    this.#send({
      kind: 'settled',
      sequences: this.#sequences,
      events: this.#events,
      waits: this.#waits,
      givenUp: this.#givenUp,
    })
    this.#sequences = []
    this.#events = []
    this.#waits = []
    this.#givenUp = []
  }
}
