import { Agent, request } from 'node:http'
import type { Order, Times } from './order.js'
import { realClock } from './real-clock.js'
import type { Throttle } from './strategies/strategy.js'
import { sleepUntil } from './strategies/waiting.js'

/**
 * Number of calls that a worker sends before the run. The first calls of a thread are slow, until its code is compiled.
 */
const WARM_UP = 5

/** One worker with its own connection, so that a call is sent in the same turn of the event loop as its permit. */
export class Caller {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #order: Order

  constructor(order: Order) {
    this.#order = order
  }

  /** Connects and sends a few calls that do not count. */
  async ready(): Promise<void> {
    for (let call = 0; call < WARM_UP; call++) await this.#send(0, 0)
  }

  /** Calls the service repeatedly. Passes the throttle before each call. */
  async work(throttle: Throttle, { startAt, endAt }: Times): Promise<void> {
    await sleepUntil(realClock, startAt)
    while (realClock.now() < endAt) {
      const asked = realClock.now()
      await throttle.pass()
      await this.#send(asked, realClock.now())
    }
  }

  #send(asked: number, sent: number): Promise<void> {
    const { port, path } = this.#order
    return new Promise((resolve, reject) => {
      const call = request({
        agent: this.#agent,
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: `${path}?asked=${asked}&sent=${sent}`,
      })
      call.once('error', reject)
      call.once('response', response => response.resume().once('end', resolve))
      call.end()
    })
  }
}
