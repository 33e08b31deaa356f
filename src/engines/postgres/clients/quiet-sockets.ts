import { connect, type Socket } from 'node:net'
import type { Clock } from '../../../base/clock.js'

/** Pause after a failed connection, in milliseconds; doubles with each failure. */
const MIN_PAUSE = 50
const MAX_PAUSE = 1000

/** The address of a server. */
export type SocketPlace = { readonly host: string; readonly port: number } | { readonly path: string }

/** Makes sockets for the package `postgres` that let the process end, unlike the package's own. */
export class QuietSockets {
  readonly #place: SocketPlace
  readonly #limit: number
  readonly #clock: Clock
  #failures = 0

  /** @param limit maximum time until the server answers, in milliseconds */
  constructor(place: SocketPlace, limit: number, clock: Clock) {
    this.#place = place
    this.#limit = limit
    this.#clock = clock
  }

  /** Returns a socket that is still connecting. If this rejected, the package would never use that connection again. */
  async connect(): Promise<Socket> {
    await this.#pause()
    const socket: Socket & { host?: string } = connect(this.#place)
    // The server name that the package sends in TLS.
    if ('host' in this.#place) socket.host = this.#place.host
    socket.setNoDelay(true)
    socket.unref()
    let hasAnswered = false
    const late = this.#clock.after(this.#limit, () => socket.destroy(noAnswer(this.#limit)), false)
    socket.once('data', () => {
      hasAnswered = true
      late.cancel()
      this.#failures = 0
    })
    // Without an error, the package would retry forever.
    socket.once('end', () => socket.destroy(new Error('the server has closed the connection')))
    socket.once('close', () => {
      late.cancel()
      if (!hasAnswered) this.#failures++
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
