import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientSettings, FromClient, ToClient } from './protocol.js'
import { reapLater } from './servers/reaper.js'

/** Maximum time that a client may take to start, in milliseconds. */
const START_LIMIT = 30_000
/** Maximum time that a client may take to set its wall clock, in milliseconds. */
const SHIFT_LIMIT = 30_000

/** One life of a client process. */
export class Client {
  readonly who: string
  readonly #child: ChildProcess
  readonly #ready: Promise<void>
  readonly #ended: Promise<void>
  #end: string | undefined
  #ahead = 0
  #onShifted: (wall: number) => void = () => undefined

  /** @param receive is called with each message of the client. */
  constructor(settings: ClientSettings, receive: (client: Client, message: FromClient) => void) {
    this.who = settings.who
    const module = new URL('./worker.js', import.meta.url)
    this.#child = fork(module, [JSON.stringify(settings)], {
      execArgv: [],
      serialization: 'json',
      // Its own process group. An interrupt at the terminal ends the run, and the run then ends its clients in order.
      detached: true,
    })
    reapLater(this.#child)
    // If a message can't be sent, the exit event follows.
    this.#child.on('error', () => undefined)
    this.#ready = new Promise((resolve, reject) => {
      const limit = setTimeout(() => reject(new Error(`client ${this.who} does not begin`)), START_LIMIT)
      this.#child.on('message', (message: FromClient) => {
        if (message.say === 'ready' || message.say === 'failed') clearTimeout(limit)
        if (message.say === 'ready') resolve()
        else if (message.say === 'failed') reject(new Error(message.message))
        else if (message.say === 'shifted') this.#onShifted(message.wall)
        receive(this, message)
      })
      this.#child.once('exit', () => {
        clearTimeout(limit)
        reject(new Error(`client ${this.who} ended before it began`))
      })
    })
    // Callers that await `ready` receive the error.
    this.#ready.catch(() => undefined)
    this.#ended = once(this.#child, 'exit').then(([status, signal]: unknown[]) => {
      this.#end = signal === null ? `status ${status as number}` : (signal as string)
    })
  }

  /** Resolves when the client works. @throws Error if it cannot start. */
  get ready(): Promise<void> {
    return this.#ready
  }

  get ended(): Promise<void> {
    return this.#ended
  }

  /** The end of the process: `status 0`, or the signal; undefined while it lives. */
  get end(): string | undefined {
    return this.#end
  }

  /** Offset of its wall clock from the true time, in milliseconds; negative if the clock is behind. */
  get ahead(): number {
    return this.#ahead
  }

  /**
   * Sets its wall clock `ahead` milliseconds ahead of the true time. Resolves when the client has read the new time, or
   * has ended.
   * @throws Error if the client does not answer, or reads another time.
   */
  async shiftWallClock(ahead: number): Promise<void> {
    const late = new AbortController()
    const earliest = Date.now() + ahead
    const seen = new Promise<number>(resolve => (this.#onShifted = resolve))
    this.send({ order: 'shift clock', ahead })
    this.#ahead = ahead
    try {
      const silent = sleep(SHIFT_LIMIT, NaN, { signal: late.signal })
      const wall = await Promise.race([seen, silent, this.#ended])
      if (wall !== undefined && !(wall >= earliest && wall <= Date.now() + ahead))
        throw new Error(`the wall clock of client ${this.who} can't be set`)
    } finally {
      late.abort()
    }
  }

  send(message: ToClient): void {
    if (this.#child.connected) this.#child.send(message, () => undefined)
  }

  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }
}
