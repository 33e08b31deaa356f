import type { Message } from '../messages/message.js'
import type { FromWorker, GivenUp } from '../protocol.js'
import { bucketOf } from '../report/histogram.js'
import type { Settlement } from './message-processor.js'
import { TrainChains, type ChainLimits } from './train-chains.js'

interface Delivery {
  readonly sequence: number
  readonly message: Message
}

/** Applies the messages that the supervisor sends, and acknowledges them, all that one tick brings together. */
export class MessageWorker {
  readonly #process: (run: readonly Message[]) => Promise<readonly Settlement[]>
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
   * @param process applies messages of one train that follow each other; what it throws ends the worker.
   * @param send tells the supervisor.
   * @param fail is called when the worker can't go on.
   */
  constructor(
    process: (run: readonly Message[]) => Promise<readonly Settlement[]>,
    send: (message: FromWorker) => void,
    fail: (error: unknown) => void,
    limits: ChainLimits,
  ) {
    this.#chains = new TrainChains(run => this.#settle(run), limits)
    this.#process = process
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

  async #settle(run: readonly Delivery[]): Promise<void> {
    try {
      const settlements = await this.#process(run.map(({ message }) => message))
      for (const [index, { event, lockWait, failure }] of settlements.entries()) {
        const { sequence } = run[index]!
        this.#sequences.push(sequence)
        this.#events.push(event)
        this.#waits.push(bucketOf(lockWait))
        if (failure !== undefined) this.#givenUp.push({ sequence, reason: failure })
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
