import { connect, type Socket } from 'node:net'
import type { Clock } from '../../../clock.js'

/** How long a connection waits after one that came to nothing: milliseconds, twice as many each time. */
const MIN_PAUSE = 50
const MAX_PAUSE = 1000

/** Where a server is reached. */
export type SocketPlace = { readonly host: string; readonly port: number } | { readonly path: string }

/** Makes sockets for the package `postgres` that keep no process alive, which its own do. */
export class QuietSockets {
  readonly #place: SocketPlace
  readonly #limit: number
  readonly #clock: Clock
  #failures = 0

  /** @param limit on the time until the server answers: milliseconds */
  constructor(place: SocketPlace, limit: number, clock: Clock) {
    this.#place = place
    this.#limit = limit
    this.#clock = clock
  }

  /** Makes one. It is still connecting: the package would never use a connection again for which this rejects. */
  async connect(): Promise<Socket> {
    await this.#pause()
    const socket: Socket & { host?: string } = connect(this.#place)
    // The name that the package asks for in TLS.
    if ('host' in this.#place) socket.host = this.#place.host
    socket.setNoDelay(true)
    socket.unref()
    let hasHeard = false
    const late = this.#clock.after(this.#limit, () => socket.destroy(noAnswer(this.#limit)), false)
    socket.once('data', () => {
      hasHeard = true
      late.cancel()
      this.#failures = 0
    })
    // Without an error, the package tries again for ever.
    socket.once('end', () => socket.destroy(new Error('the server has closed the connection')))
    socket.once('close', () => {
      late.cancel()
      if (!hasHeard) this.#failures++
    })
    return socket
  }

  async #pause(): Promise<void> {
    if (this.#failures === 0) return
    const pause = Math.min(MIN_PAUSE * 2 ** (this.#failures - 1), MAX_PAUSE)
    await new Promise<void>(resolve => this.#clock.after(pause, resolve, false))
  }
}

function noAnswer(limit: number): Error {
  const error = new Error(`the server has not answered within ${limit} ms`)
  return Object.assign(error, { code: 'CONNECT_TIMEOUT' })
}
